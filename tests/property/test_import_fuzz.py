"""Whatever bytes are imported: a clear refusal that stores nothing, or sound entries."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muniment import InMemoryStore, InvalidEntryError, Scope
from muniment.stores.transfer import ImportResult

ANA = Scope("acme", subject="ana")
ENTRY: dict[str, Any] = {
    "id": "a", "scope": ANA.key, "kind": "fact", "text": "quokka", "source": "api",
    "trust": "model", "importance": 0.5, "created_at": "2026-03-10T12:00:00+00:00",
    "expires_at": None, "superseded_by": "b", "derived_from": ["b"], "metadata": {"a": [1]},
    "details": {"valid_from": "2026-03-10T12:00:00+00:00", "source_message_ids": ["m"]},
}  # fmt: skip
HEAD = {"format": "muniment-entries", "version": 1, "count": 2}
OTHER = {**ENTRY, "id": "b", "superseded_by": None, "derived_from": []}
FILE = b"".join(json.dumps(line).encode() + b"\n" for line in (HEAD, ENTRY, OTHER))

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


async def _sound(store: InMemoryStore, result: ImportResult) -> None:
    stored = [entry async for entry in store.entries.export(Scope("acme"))]
    assert len(stored) == result.imported
    assert all(entry["trust"] == "untrusted" for entry in stored)
    assert "NaN" not in json.dumps(stored)


def _import(data: bytes) -> ImportResult | None:
    async def run() -> ImportResult | None:
        store = InMemoryStore()
        try:
            result = await store.entries.import_stream(ANA, io.BytesIO(data))
        except InvalidEntryError as error:
            problem = str(error)
        else:
            await _sound(store, result)
            return result
        assert await store.count(ANA) == 0
        assert problem.startswith("line ")
        assert len(problem) < 200
        assert "quokka" not in problem
        return None

    return asyncio.run(run())


def test_the_file_itself_is_sound() -> None:
    assert _import(FILE) == ImportResult(2, 0, 0)


@given(st.integers(0, len(FILE) - 1), st.binary(max_size=4), st.integers(0, 5))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_changed_bytes_are_refused_or_read(place: int, put: bytes, cut: int) -> None:
    _import(FILE[:place] + put + FILE[place + cut :])


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_any_bytes_after_the_header_are_refused(rubbish: bytes) -> None:
    head = json.dumps({**HEAD, "count": 1}).encode() + b"\n"
    assert _import(head + rubbish) is None


@given(st.sampled_from(sorted(ENTRY)), VALUES, st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_value_in_any_field_is_refused_or_read(name: str, value: Any, inside: bool) -> None:
    changed = {**ENTRY, name: {**ENTRY["details"], "valid_from": value} if inside else value}
    lines = (HEAD, changed, OTHER)
    _import(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
