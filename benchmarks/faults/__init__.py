"""Processes killed at work, and what must agree afterwards."""
