"""The HTTP service (extra `server`)."""
