"""Muniment inside other frameworks."""
