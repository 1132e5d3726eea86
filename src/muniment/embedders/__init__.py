"""Adapters of the embedder port: each module needs its own extra and is imported where used."""
