"""Scripts that run in a peer's own environment: one JSON argument in, one line of JSON out."""
