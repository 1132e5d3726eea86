"""Recall: where candidates come from, what is trusted, what failure costs."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from muniment import (
    MemoryMatch,
    MemoryOwner,
    MemoryPolicy,
    MemoryRecall,
    MemoryScope,
    MemoryType,
    RecalledMemory,
    Trust,
)
from tests.doubles.turn import (
    NOW,
    OWNER,
    Embedder,
    Index,
    OneTrip,
    Repository,
    clock,
    fact,
    found,
)

POLICY = MemoryPolicy(call_timeout_seconds=0.05)


def recall_of(memories: Any, policy: MemoryPolicy = POLICY, **parts: Any) -> MemoryRecall:
    return MemoryRecall(policy=policy, memories=memories, clock=clock, **parts)


def ids(memories: Any) -> list[str]:
    return [each.memory_id for each in memories]


async def test_all_scopes_are_asked_in_one_round_trip() -> None:
    store = OneTrip(found(fact("a", "tea"), 0.2), found(fact("b", "coffee"), 0.9))
    recall = recall_of(store, embedder=Embedder(), index=store)
    assert ids(await recall.recall(OWNER, "drinks")) == ["b", "a"]
    assert store.calls == {"candidates": 1}
    (asked,) = store.asked
    assert set(asked["scopes"]) == set(POLICY.recall_scopes)
    assert MemoryType.SUMMARY not in asked["memory_types"]
    assert (asked["embedding"], asked["messages"]) == ((1.0, 0.0), "off")


async def test_a_scope_that_the_owner_cannot_address_is_skipped() -> None:
    store = OneTrip()
    await recall_of(store).recall(MemoryOwner("acme", user_id="ana"), "tea")
    assert store.asked[0]["scopes"] == (MemoryScope.USER, MemoryScope.TENANT)


async def test_a_query_is_shortened_and_made_encodable_never_refused() -> None:
    store = OneTrip()
    await recall_of(store).recall(OWNER, "te\ud800a\0 " + "x" * 200_000)
    assert len(store.asked[0]["text"]) <= 20_000
    store.asked[0]["text"].encode()


@pytest.mark.parametrize(
    ("query", "policy"),
    [
        (" \n", POLICY),
        ("tea", MemoryPolicy(recall_top_k=0)),
        ("tea", MemoryPolicy.disabled()),
    ],
)
async def test_nothing_asked_or_recall_off_is_no_call(query: str, policy: MemoryPolicy) -> None:
    store = OneTrip(found(fact("a", "tea")))
    assert await recall_of(store, policy).recall(OWNER, query) == ()
    assert store.calls == {}


async def test_explain_gives_every_factor_and_lane_of_a_rank() -> None:
    memory = fact("a", "tea", importance=0.5, entity_ids=("n1",))
    recall = recall_of(OneTrip(found(memory, 0.8, words=0.7, meaning=0.9)))
    (best,) = await recall.recall(
        OWNER, "tea", anchor_entity_ids=["n1"], wanted_types=[MemoryType.FACT], explain=True
    )
    assert isinstance(best, RecalledMemory)
    assert best.factors == {"recency": 0.5, "importance": 0.5, "entity": 0.5, "type": 0.5}
    assert best.lanes == {"words": 0.7, "meaning": 0.9}
    assert best.score == pytest.approx(0.8 * 1.5**4)


async def test_as_of_is_passed_on_and_recency_counts_from_then() -> None:
    then = NOW - timedelta(days=7)
    store = OneTrip(found(fact("a", "tea")))
    (best,) = await recall_of(store).recall(OWNER, "tea", as_of=then, explain=True)
    assert store.asked[0]["as_of"] == then
    assert best.factors["recency"] == 1.0


async def test_the_trust_floor_is_the_policys_unless_the_call_says_otherwise() -> None:
    store = OneTrip()
    recall = recall_of(store, MemoryPolicy(min_trust=Trust.MODEL))
    await recall.recall(OWNER, "tea")
    await recall.recall(OWNER, "tea", min_trust=Trust.OWNER)
    assert [asked["min_trust"] for asked in store.asked] == [Trust.MODEL, Trust.OWNER]


async def test_the_block_budget_holds_unless_it_is_lifted() -> None:
    store = OneTrip(*(found(fact(f"f{n}", f"fact {n} " + "x" * 800)) for n in range(4)))
    assert len(await recall_of(store).recall(OWNER, "x")) == 1
    assert len(await recall_of(store).recall(OWNER, "x", max_tokens=None)) == 4
    skipping = MemoryPolicy(block_overflow="skip")
    mixed = OneTrip(found(fact("big", "x" * 4000), 0.9), found(fact("small", "tea"), 0.1))
    assert ids(await recall_of(mixed).recall(OWNER, "x")) == []
    assert ids(await recall_of(mixed, skipping).recall(OWNER, "x")) == ["small"]


async def test_a_token_counter_counts_the_block_too() -> None:
    store = OneTrip(found(fact("a", "tea")), found(fact("b", "coffee")))
    recall = recall_of(store, token_counter=lambda text: 100 * text.count("\n- "))
    assert len(await recall.recall(OWNER, "x", max_tokens=100)) == 1


@pytest.mark.parametrize("fault", ["raise", "hang"])
async def test_without_a_working_embedder_words_alone_decide(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = OneTrip(found(fact("a", "tea")))
    assert ids(await recall_of(store, embedder=Embedder(fault)).recall(OWNER, "tea")) == ["a"]
    assert store.asked[0]["embedding"] is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_an_embedding_that_is_not_finite_counts_as_none() -> None:
    store = OneTrip()
    await recall_of(store, embedder=Embedder(vector=[float("nan")])).recall(OWNER, "tea")
    assert store.asked[0]["embedding"] is None


@pytest.mark.parametrize("fault", ["raise", "hang"])
async def test_a_failing_repository_recalls_nothing_and_logs_no_text(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    for store in (OneTrip(fault=fault), Repository(fault=fault)):
        assert await recall_of(store).recall(OWNER, "tea leaves") == ()
    assert caplog.records
    for text in ("SECRET", "tea", "ana", "acme"):
        assert text not in caplog.text


# -- a foreign repository ------------------------------------------------------------------------


async def test_without_an_index_each_significant_term_is_searched() -> None:
    store = Repository(fact("a", "Ana drinks green tea"), fact("b", "Ana drinks beer"))
    memories = await recall_of(store).recall(OWNER, "Which tea does Ana drink? green?")
    assert ids(memories) == ["a", "b"]
    assert "does" not in {query.text for query in store.queries}


async def test_each_scope_is_addressed_as_an_owner_narrowed_to_its_fields() -> None:
    store = Repository()
    await recall_of(store).recall(OWNER, "tea")
    asked = {query.scopes[0]: query.owner for query in store.queries}
    assert asked == {
        MemoryScope.USER: MemoryOwner("acme", user_id="ana"),
        MemoryScope.PROJECT: MemoryOwner("acme", "apollo"),
        MemoryScope.SESSION: MemoryOwner("acme", user_id="ana", session_id="monday"),
        MemoryScope.TENANT: MemoryOwner("acme"),
    }


async def test_what_a_foreign_repository_should_not_have_given_is_dropped() -> None:
    class Careless(Repository):
        @staticmethod
        def _matches(query: object, memory: object) -> bool:
            return True

    store = Careless(
        fact("other", "tea 1", owner=MemoryOwner("acme", user_id="bo")),
        fact("summary", "tea 2", memory_type=MemoryType.SUMMARY),
        fact("over", "tea 3", invalid_at=NOW),
        fact("expired", "tea 4", expires_at=NOW),
        fact("low", "tea 5", trust=Trust.UNTRUSTED),
        fact("good", "tea 6", trust=Trust.OWNER),
    )
    memories = await recall_of(store).recall(OWNER, "tea", min_trust=Trust.MODEL)
    assert ids(memories) == ["good"]


# -- a separate index ----------------------------------------------------------------------------


async def test_a_separate_index_is_hydrated_and_never_believed() -> None:
    store = Repository(
        fact("a", "tea"),
        fact("b", "coffee"),
        fact("foreign", "tea!", owner=MemoryOwner("other", user_id="ana")),
    )
    index = Index(
        MemoryMatch("b", 0.9),
        MemoryMatch("a", 0.4),
        MemoryMatch("foreign", 1.0),
        MemoryMatch("?", 1),
    )
    memories = await recall_of(store, index=index, embedder=Embedder()).recall(OWNER, "drinks")
    assert ids(memories) == ["b", "a"]
    assert index.asked[0][1] == (1.0, 0.0)
    assert "search" not in store.calls


async def test_an_unbounded_index_score_becomes_a_relevance_within_one() -> None:
    store = Repository(fact("a", "tea"), fact("b", "coffee"), fact("c", "cocoa"))
    index = Index(MemoryMatch("a", 30.0), MemoryMatch("b", 15.0), MemoryMatch("c", -2.0))
    ranked = await recall_of(store, index=index).recall(OWNER, "drinks", explain=True)
    assert [each.relevance for each in ranked] == [1.0, 0.5, 0.01]


@pytest.mark.parametrize("fault", ["raise", "hang"])
async def test_a_failing_index_falls_back_to_words(fault: str) -> None:
    store = Repository(fact("a", "green tea"))
    memories = await recall_of(store, index=Index(fault=fault)).recall(OWNER, "tea")
    assert ids(memories) == ["a"]


@pytest.mark.parametrize(
    "wrong", [{"top_k": -1}, {"max_tokens": 0}, {"as_of": NOW.replace(tzinfo=None)}]
)
async def test_a_bad_argument_is_refused_by_its_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        await recall_of(OneTrip()).recall(OWNER, "tea", **wrong)


@pytest.mark.parametrize(("owner", "query", "named"), [(None, "tea", "owner"), (OWNER, 7, "query")])
async def test_what_is_no_owner_or_no_text_is_refused_by_its_name(
    owner: Any, query: Any, named: str
) -> None:
    with pytest.raises(ValueError, match=f"{named}: must be"):
        await recall_of(OneTrip()).recall(owner, query)


async def test_an_empty_list_of_scopes_matches_nothing() -> None:
    store = Repository(fact("a", "tea"))
    assert await recall_of(store, MemoryPolicy(recall_scopes=())).recall(OWNER, "tea") == ()
    assert store.calls == {}
