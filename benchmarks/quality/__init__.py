"""Recall quality on question sets over long conversations."""
