"""One setting says how recall ranks; every ranking works on every way in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from muniment import ConversationIdentity, ConversationMessage, MemoryOwner, open_memory
from muniment.errors import MemoryConfigurationError
from muniment.evidence.weights import BY_NAME
from muniment.settings import load_settings
from muniment.stores.in_memory import InMemoryStore
from muniment.stores.sqlite import AsyncSQLiteStore, SQLiteStore

OWNER = MemoryOwner(tenant_id="acme", user_id="ana", session_id="now")
SAID = (
    "Which instrument do you play?",
    "My violin needs new strings.",
    "The bus was late again.",
)
EVIDENCE_ALONE = {"words", "meaning", "coverage", "speaker", "answer", "time", "cosine"}


async def recalled(url: str, ranking: str | None, text: str = "violin") -> list[dict[str, float]]:
    identity = ConversationIdentity(
        tenant_id="acme", principal_id="ana", session_id="before", user_id="ana"
    )
    async with open_memory(url, embedder=None, ranking=ranking) as memory:
        await memory.conversations.append_messages(
            identity,
            [
                ConversationMessage(str(place), "user", text, datetime(2026, 11, 1, tzinfo=UTC))
                for place, text in enumerate(SAID)
            ],
        )
        found = await memory.recall(OWNER, text, max_tokens=None, explain=True)
    return [dict(one.lanes) for one in found]


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{folder}/one.db"])
@pytest.mark.parametrize("ranking", sorted(BY_NAME))
async def test_every_ranking_recalls_and_only_the_learned_one_learned(
    url: str, ranking: str, tmp_path: Path
) -> None:
    lanes = await recalled(url.format(folder=tmp_path), ranking)
    assert lanes
    assert (set(lanes[0]) > EVIDENCE_ALONE) == (ranking == "learned")


async def test_the_environment_names_the_ranking_and_an_argument_overrules_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MUNIMENT_RANKING", "hybrid")
    assert set((await recalled("memory://", None))[0]) == EVIDENCE_ALONE
    assert set((await recalled("memory://", "learned"))[0]) > EVIDENCE_ALONE


async def test_the_plain_hybrid_finds_no_thing_of_a_kind_without_a_word_in_common() -> None:
    asked = "Which instruments are there?"
    assert len(await recalled("memory://", "hybrid", asked)) == 1
    found = await recalled("memory://", "learned", asked)
    assert len(found) == 3  # the message that has the word, a violin, and what was said after it
    assert [one["coverage"] for one in found] == [1.0, 1.0, 0.0]


def test_another_name_is_refused_in_one_line() -> None:
    with pytest.raises(MemoryConfigurationError, match="MUNIMENT_RANKING: must be one of"):
        load_settings({"MUNIMENT_RANKING": "best"})
    with pytest.raises(MemoryConfigurationError, match="ranking: must be one of learned"):
        InMemoryStore(ranking="best")
    with pytest.raises(MemoryConfigurationError, match="ranking: must be one of learned"):
        AsyncSQLiteStore(ranking="best")


async def test_a_store_says_which_ranking_it_uses() -> None:
    with SQLiteStore(ranking="evidence") as store:
        described = store.run(store.ports.describe())
    assert described["ranking"] == "evidence"
