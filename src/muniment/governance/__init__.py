"""Governance: what was done is recorded, and what is held is measured."""
