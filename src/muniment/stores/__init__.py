"""Stores: one contract, several places to keep the rows."""
