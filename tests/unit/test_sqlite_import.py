"""What an import counts for is what the rows that it stored count for."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import apsw
import pytest

from muniment import QuotaExceededError, Scope, SQLiteStore

ANA = Scope("acme", subject="ana")


def _file(*texts: str) -> BytesIO:
    lines: list[object] = [{"format": "muniment-entries", "version": 1, "count": len(texts)}]
    lines += [{"scope": ANA.key, "kind": "fact", "text": text, "trust": "model"} for text in texts]
    return BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def _counted(path: Path) -> tuple[list[object], list[object]]:
    connection = apsw.Connection(str(path))
    kept = list(connection.execute("SELECT entries, tokens FROM tenant"))
    found = list(connection.execute("SELECT count(*), sum(tokens) FROM memory GROUP BY tenant"))
    connection.close()
    return kept, found


def test_a_tenants_totals_are_those_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.import_stream(ANA, _file("first of a new tenant"))
        store.add(ANA, "zebra")
        result = store.import_stream(ANA, _file("zebra", "a tiger", "two lions are here"))
        assert (result.imported, result.skipped_duplicates) == (2, 1)
        kept, found = _counted(path)
        assert kept == found != []
        store.add(ANA, "counted one by one as before")
        store.forget(ANA, [store.search(ANA, "zebra")[0].entry.id])
        kept, found = _counted(path)
        assert kept == found == [(4, found[0][1])]  # type: ignore[index]


def test_an_import_over_the_quota_leaves_the_count_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path, quota_entries=2) as store:
        store.add(ANA, "zebra")
        with pytest.raises(QuotaExceededError):
            store.import_stream(ANA, _file("a tiger", "two lions"))
        assert _counted(path)[0] == _counted(path)[1]
        store.add(ANA, "the second is counted")
        with pytest.raises(QuotaExceededError):
            store.add(ANA, "and the third refused")
