"""Proposing, checking and storing the durable facts that a finished turn stated."""
