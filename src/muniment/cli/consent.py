"""Asking before something is destroyed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from muniment.cli.exits import BadInput, Failed


def ask(deed: str, *, yes: bool = False) -> None:
    """Say what will be done and ask; without a terminal to ask, --yes is needed.

    BadInput where nobody can be asked, Failed where the answer is no: nothing was done then.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"this would {deed}; give --yes to do it")
    with _interruptible():
        agreed = typer.confirm(f"This will {deed}. Go on?", err=True)
    if not agreed:
        raise Failed("nothing was done")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the wait for an answer: an event loop's handler would only note it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
