"""Asking before something is destroyed."""

from __future__ import annotations

import sys

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
    if not typer.confirm(f"This will {deed}. Go on?", err=True):
        raise Failed("nothing was done")
