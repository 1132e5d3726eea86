"""Long work: a bar on a terminal, a plain line elsewhere, nothing where JSON is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from muniment.cli.output import error_console, say

Advance = Callable[[int], None]


@contextmanager
def progress(words: str, *, total: int | None, silent: bool) -> Iterator[Advance]:
    """What tells how far the work is: called with how much of `total` is done.

    It goes to standard error, so that standard output holds the result alone; a bar goes away
    when the work is done.
    """
    out = error_console()
    if silent or not out.is_terminal:
        if not silent:
            say(out, f"{words} ...")
        yield _unseen
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=out, transient=True) as bar:
        task = bar.add_task(words, total=total)
        yield lambda done: bar.update(task, completed=done)


def _unseen(_: int) -> None:
    """Nobody watches."""
