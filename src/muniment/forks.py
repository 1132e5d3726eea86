"""What a process that is forked off must not share with the one that goes on.

SQLite keeps its locks by process and its knowledge of them in memory, which a fork copies: in the
child it believes in locks that only the parent has, also for files that the child opens itself,
and what was written is lost when either closes. So files are closed while a process forks.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import Any, Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something that lets processes be forked."""

    def rest(self) -> None:
        """Before the fork, in the thread that forks: hold everybody up."""
        ...

    def go_on(self) -> None:
        """After it, in the process that goes on, whether or not `rest` was interrupted."""
        ...

    def begin_anew(self) -> None:
        """After it, in the new process, which has none of the other threads."""
        ...


class Unshared:
    """What needs nothing before a fork; only the new process begins anew."""

    def rest(self) -> None:
        """Nothing to do."""

    def go_on(self) -> None:
        """Nothing to do."""


_told: WeakSet[Forked] = WeakSet()
_given_up: list[Any] = []
_state = threading.local()


class _Fork:
    one_at_a_time = threading.RLock()


def tell(target: Forked) -> None:
    """Have `target` told of every fork while it lives."""
    _told.add(target)


def give_up(*inherited: object) -> None:
    """Keep what the new process must neither use nor close."""
    _given_up.extend(inherited)


def _before() -> None:
    _Fork.one_at_a_time.acquire()
    _state.resting = list(_told)
    _each("rest")


def _in_parent() -> None:
    try:
        _each("go_on")
    finally:
        _Fork.one_at_a_time.release()


def _in_child() -> None:
    _Fork.one_at_a_time = threading.RLock()
    _each("begin_anew")


def _each(verb: str) -> None:
    """Call it on each that was told before the fork, whatever befalls another."""
    with ExitStack() as calls:
        for target in _state.resting:
            calls.callback(getattr(target, verb))


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
