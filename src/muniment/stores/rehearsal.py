"""Asking a change what it would do."""

from __future__ import annotations


class Rehearsed(Exception):
    """Raised in a job to have it undone; carries what the job would have answered."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer
