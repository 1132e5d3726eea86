"""Ranking: which rows answer a question, on what evidence."""
