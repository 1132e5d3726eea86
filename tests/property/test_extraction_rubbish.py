"""Whatever a model writes: extraction never raises, keeps the good, counts the bad (hazard 11)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment import ConversationMessage, MemoryExtractor, MemoryOwner, MemoryPolicy
from muniment.extraction.plain_json import read_facts
from muniment.replies import ExtractedFact, ProposedFacts
from tests.doubles.proposing_model import ProposingModel
from tests.doubles.repositories import FactRepository

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ANA = MemoryOwner("acme", user_id="ana", session_id="s")
TURN = (ConversationMessage("m1", "user", "I live in Oslo", NOW),)  # type: ignore[arg-type]
GOOD = {"content": "The user lives in Oslo", "memory_type": "fact", "scope": "user"}
GOOD_TEXT = json.dumps({"facts": [GOOD]})

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(["facts", "content"]), inner)
    ),
    max_leaves=12,
)
no_facts = values.filter(lambda value: not (isinstance(value, dict) and "content" in value))
fields = st.fixed_dictionaries(
    {}, optional={name: values for name in ExtractedFact.model_fields if name != "content"}
)


async def stored(reply: Any) -> tuple[list[str], MemoryExtractor]:
    extractor = MemoryExtractor(
        policy=MemoryPolicy(),
        memories=FactRepository(NOW),
        model=ProposingModel(text=reply),
        clock=lambda: NOW,
    )
    found = await extractor.extract(ANA, messages=TURN)
    return [memory.content for memory in found], extractor


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(reply=values | st.binary(max_size=20))
async def test_any_reply_of_any_kind_is_survived(reply: Any) -> None:
    await stored(reply)
    await stored(json.dumps(reply) if not isinstance(reply, bytes) else reply)


@settings(deadline=None)
@given(text=st.text(alphabet='{}[]",:\\ \nfactsconte01nulN`<think>/', max_size=120))
def test_any_text_is_read_without_an_error(text: str) -> None:
    read_facts(text)


@settings(deadline=None)
@given(bad=st.lists(no_facts, max_size=4), at=st.integers(0, 4))
async def test_the_good_is_kept_and_every_bad_one_is_counted(bad: list[Any], at: int) -> None:
    entries = [*bad[:at], GOOD, *bad[at:]]
    contents, extractor = await stored(json.dumps({"facts": entries}))
    assert contents == [GOOD["content"]]
    assert extractor.counts.malformed == len(bad)
    assert ProposedFacts.model_validate({"facts": entries}).malformed == len(bad)


@settings(deadline=None)
@given(others=fields)
async def test_no_odd_field_costs_more_than_its_own_fact(others: dict[str, Any]) -> None:
    odd = {"content": "The user sails", **others}
    contents, extractor = await stored(json.dumps({"facts": [odd, GOOD]}))
    assert GOOD["content"] in contents
    assert extractor.counts.malformed == 0


@settings(deadline=None)
@given(before=st.text(alphabet=st.characters(exclude_characters="{[<"), max_size=40))
def test_prose_around_and_fences_are_read_through(before: str) -> None:
    for text in (
        f"{before}\n```json\n{GOOD_TEXT}\n```\nHope this helps!",
        f"<think>{before} {{'a': [1]}} </think>{GOOD_TEXT}",
        f"{before} [1] {{oops}} {GOOD_TEXT}",
        f"{before}{GOOD_TEXT}{before}",
    ):
        assert [fact.content for fact in read_facts(text).facts] == [GOOD["content"]]


@pytest.mark.parametrize(
    ("text", "facts", "malformed"),
    [
        ("null", 0, 1),
        ("42", 0, 1),
        ("", 0, 1),
        ("no facts today", 0, 1),
        ("[" * 60_000, 0, 1),
        ('{"facts":' * 60_000, 0, 1),
        ('{"facts": []}', 0, 0),
        ("[]", 0, 0),
        ('{"facts": null}', 0, 1),
        ('{"facts": {"content": "a"}}', 1, 0),
        ('[{"content": "a"}, 3]', 1, 1),
        ('{"content": "a"}', 1, 0),
        ('{"facts": [{"content": "a\nb"}]}', 1, 0),
        ('{"facts": [{"content": "a"}, {"content": "b"}, {"con', 2, 1),
        ('{"facts": [{"content": "a", "content": "b"}]}', 1, 0),
        ('{"facts": [{"content": "a", "importance": NaN}]}', 1, 0),
        ('{"facts": [{"content": ["a"]}, {"content": "b"}]}', 1, 1),
        ('<think>{"facts": [{"content": "draft"}]}</think>{"facts": []}', 0, 0),
        ('<think>I see {"facts": [{"content": "never closed"}]}', 0, 1),
    ],
)
def test_known_kinds_of_rubbish(text: str, facts: int, malformed: int) -> None:
    read = read_facts(text)
    assert (len(read.facts), read.malformed) == (facts, malformed)
