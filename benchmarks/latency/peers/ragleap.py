"""ragleap-memory's SQLiteStore: search, noisy neighbours, durable adds."""

import sqlite3
import threading
import time
from importlib.metadata import version
from pathlib import Path

from ragleap_memory import SQLiteStore
from ragleap_security import Scope
from shared import asked, tell, texts, timed

SYSTEM = f"ragleap-memory {version('ragleap-memory')}"
wanted = asked()


def opened(name):
    """A store at the level of durability that is asked for."""
    store = SQLiteStore(str(Path(wanted["place"]) / name))
    store._db.execute(f"PRAGMA synchronous = {wanted['synchronous']}")
    return store


def filled(store, lines, scopes):
    """Rows written as the library writes them, in one transaction (its own has one a row)."""
    store._tx = lambda: _Nothing(store._db)
    store._db.execute("BEGIN")
    for number, line in enumerate(lines):
        store.add(scopes[number % len(scopes)], line)
    store._db.execute("COMMIT")
    del store._tx


class _Nothing:
    def __init__(self, connection):
        self._connection = connection

    def __enter__(self):
        return self._connection

    def __exit__(self, *_):
        return None


def search():
    """A question over one scope's rows, other tenants' beside them where there are any."""
    lines, questions = texts(wanted)
    store, own = opened("search.db"), Scope("tenant0", subject="u")
    foreign = [Scope(f"tenant{number}", subject="u") for number in range(1, wanted["tenants"])]
    filled(store, lines, [own, *foreign])
    tell(SYSTEM, **timed(lambda n: store.search(own, questions[n % len(questions)], k=5), 30))


def add():
    """Adds a second, each durable before the next begins, by one and by several threads."""
    lines, _ = texts(wanted)
    store, scope = opened("add.db"), Scope("acme", subject="u")
    rates = {}
    for writers in wanted["writers"]:
        parts = [lines[start::writers] for start in range(writers)]
        threads = [threading.Thread(target=each, args=(store, scope, part)) for part in parts]
        begun, worked = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall, cpu = time.perf_counter() - begun, time.process_time() - worked
        rates[str(writers)] = {"rate": len(lines) / wall, "cpu_rate": len(lines) / cpu}
    tell(SYSTEM, rates=rates, sqlite=sqlite3.sqlite_version)


def each(store, scope, lines):
    """One writer."""
    for line in lines:
        store.add(scope, line)


{"search": search, "add": add}[wanted["what"]]()
