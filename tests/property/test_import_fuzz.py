"""Whatever bytes are imported: a clear refusal that stores nothing, or sound entries."""

from __future__ import annotations

import asyncio
import io
import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muniment import InMemoryStore, InvalidEntryError, Scope
from muniment.domain.strict_json import read_object
from muniment.stores.transfer import ImportResult
from muniment.stores.transfer_lines import quick_parser

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


NUMBERS = "0 -0 -0.0 0.5 1e400 -1e400 1E2 01 1. .5 NaN Infinity 123456789012345678901234567890"
TEXTS = ('"\\ud800"', '"\\u0041"', '"\t"', '":"')
WRITTEN = st.one_of(
    VALUES.map(json.dumps),
    VALUES.map(lambda value: json.dumps(value, ensure_ascii=False)),
    st.sampled_from(
        [*NUMBERS.split(), '"\\ud800"', '"\\u0041"', '"\t"', '{"a":1,"a":1}', '":"', ""]
    ),
)
NAMES = st.sampled_from(["a", "id", "text", "scope", "", "é"])
LINES = st.lists(st.tuples(NAMES, WRITTEN), max_size=5).map(
    lambda pairs: "{" + ", ".join(f'"{name}" : {value}' for name, value in pairs) + "}"
)


def _outcome(parse: Any, line: bytes) -> str:
    try:
        value = parse(line)
    except ValueError as error:
        return str(error)
    infinite = any(each in (math.inf, -math.inf) for each in value.values())
    return "must hold finite numbers only" if infinite else repr(value)


@given(LINES.map(lambda line: line.encode("utf-8", "surrogatepass")), st.data())
@settings(max_examples=600, deadline=None, derandomize=True)
def test_a_long_files_parser_reads_and_refuses_what_the_strict_one_does(
    line: bytes, data: st.DataObject
) -> None:
    quick = quick_parser()
    assert _outcome(quick, line) == _outcome(read_object, line)
    place, cut = data.draw(st.integers(0, len(line))), data.draw(st.integers(0, 3))
    changed = line[:place] + data.draw(st.binary(max_size=3)) + line[place + cut :]
    assert _outcome(quick, changed) == _outcome(read_object, changed)
