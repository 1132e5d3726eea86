"""A process whose threads write at random until they are killed."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.faults.journal import Journal, State, after
from muniment import Scope, SQLiteStore

TENANT = "acme"
_SESSIONS = (None, "s1", "s2")
_IMPORTED = 25
_KINDS = ("add", "supersede", "forget", "erase", "import")
_WEIGHTS = (8, 4, 2, 1, 2)


def write_until_killed(folder: Path, name: str, seed: int, threads: int) -> None:
    """Open the file and write with several threads, for ever."""
    store = SQLiteStore(folder / "memory.db", audit=folder / "audit.jsonl")
    writers = [Writer(store, folder, f"{name}-{n}", seed + n) for n in range(threads)]
    for writer in writers:
        threading.Thread(target=writer.run, daemon=True).start()
    (folder / f"{name}.ready").touch()
    threading.Event().wait()


class Writer:
    """One user's writes, of the acknowledged state of which the writer keeps a model."""

    def __init__(self, store: SQLiteStore, folder: Path, subject: str, seed: int) -> None:
        self._store = store
        self._realm = Scope(TENANT, subject=subject)
        self._journal = Journal(folder / f"{subject}.journal")
        self._file = folder / f"{subject}.import"
        self._random = random.Random(seed)
        self._texts = (f"{subject} says {n}" for n in itertools.count())
        self._state: State = {}
        self._ids: dict[str, str] = {}

    def run(self) -> None:
        """Write for ever."""
        while True:
            kind = self._random.choices(_KINDS, _WEIGHTS)[0]
            getattr(self, f"_{kind}")()

    @contextmanager
    def _doing(self, operation: dict[str, Any]) -> Iterator[None]:
        with self._journal.doing(operation):
            yield
        self._state = after(self._state, operation)

    def _place(self, session: str | None) -> Scope:
        return self._realm if session is None else self._realm.narrow(session=session)

    def _current(self) -> list[str]:
        """The texts that nothing has replaced and whose ids are known."""
        return [
            text
            for text, held in self._state.items()
            if held.replaced_by is None and text in self._ids
        ]

    def _add(self) -> None:
        text, session = next(self._texts), self._random.choice(_SESSIONS)
        operation = {"op": "add", "texts": [text], "session": session}
        with self._doing(operation):
            self._ids[text] = self._store.add(self._place(session), text).id

    def _supersede(self) -> None:
        if not (current := self._current()):
            return
        old, new = self._random.choice(current), next(self._texts)
        operation = {"op": "supersede", "old": old, "new": new}
        with self._doing(operation):
            self._ids[new] = self._store.supersede(self._realm, self._ids[old], new).id

    def _forget(self) -> None:
        if not (current := self._current()):
            return
        gone = self._random.sample(current, min(3, len(current)))
        operation = {"op": "forget", "texts": gone}
        with self._doing(operation):
            self._store.forget(self._realm, [self._ids[text] for text in gone])

    def _erase(self) -> None:
        session = self._random.choice(_SESSIONS)
        operation = {"op": "erase", "session": session}
        with self._doing(operation):
            self._store.erase(self._place(session))

    def _import(self) -> None:
        texts, session = [next(self._texts) for _ in range(_IMPORTED)], "s1"
        head = {"format": "muniment-entries", "version": 1, "count": len(texts)}
        common = {"scope": self._place(session).key, "kind": "fact", "trust": "untrusted"}
        lines = [head, *({**common, "text": text} for text in texts)]
        self._file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        operation = {"op": "import", "texts": texts, "session": session}
        with self._doing(operation):
            self._store.import_file(self._place(session), self._file)
