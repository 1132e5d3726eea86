"""What a writer said that it would do, and what was acknowledged: a file that survives its kill."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Held:
    """One entry: its session, and the text of what replaced it."""

    session: str | None
    replaced_by: str | None = None


State = dict[str, Held]  # by text, which no two entries share


class Journal:
    """Begun and done operations of one writer, a line each."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    @contextmanager
    def doing(self, operation: dict[str, Any]) -> Iterator[None]:
        """Note the operation before it begins, and that it was acknowledged."""
        self._file.write(json.dumps(operation).encode() + b"\n")
        yield
        self._file.write(b"done\n")


def operations(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Those that were acknowledged, in order, and the one that was under way at the kill."""
    done: list[dict[str, Any]] = []
    begun: dict[str, Any] | None = None
    for line in path.read_bytes().split(b"\n"):
        if line == b"done" and begun is not None:
            done.append(begun)
            begun = None
        elif line.endswith(b"}"):
            begun = json.loads(line)
    return done, begun


def after(state: State, operation: dict[str, Any]) -> State:
    """What is stored once the operation is done."""
    return _EFFECTS[operation["op"]](dict(state), operation)


def _add(state: State, operation: dict[str, Any]) -> State:
    for text in operation["texts"]:
        state[text] = Held(operation["session"])
    return state


def _supersede(state: State, operation: dict[str, Any]) -> State:
    old, new = operation["old"], operation["new"]
    state[new] = Held(state[old].session)
    state[old] = replace(state[old], replaced_by=new)
    return state


def _forget(state: State, operation: dict[str, Any]) -> State:
    gone = set(operation["texts"])
    return {
        text: replace(held, replaced_by=None) if held.replaced_by in gone else held
        for text, held in state.items()
        if text not in gone
    }


def _erase(state: State, operation: dict[str, Any]) -> State:
    session = operation["session"]
    return {text: held for text, held in state.items() if session not in (None, held.session)}


_EFFECTS: dict[str, Callable[[State, dict[str, Any]], State]] = {
    "add": _add,
    "import": _add,
    "supersede": _supersede,
    "forget": _forget,
    "erase": _erase,
}
