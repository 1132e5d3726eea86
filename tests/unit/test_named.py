"""Trust, scopes and types are taken by value and by name, wherever the enum is."""

from __future__ import annotations

import pytest

from muniment import (
    MemoryConfigurationError,
    MemoryOwner,
    MemoryPolicy,
    MemoryQuery,
    MemoryScope,
    MemoryType,
    Trust,
    open_memory,
)

ANA = MemoryOwner("acme", user_id="ana", session_id="s1")


def test_a_member_is_made_of_its_value_or_its_name() -> None:
    for kind in (Trust, MemoryScope, MemoryType):
        for member in kind:
            assert kind(member.value) is kind(member.name) is member
        for other in ("", "Owner", " user", None, 3):
            with pytest.raises(ValueError, match="is not a valid"):
                kind(other)


async def test_names_are_taken_by_policy_query_remember_and_recall() -> None:
    policy = MemoryPolicy(min_trust="MODEL", recall_scopes=("USER",))  # type: ignore[arg-type]
    assert (policy.min_trust, policy.recall_scopes) == (Trust.MODEL, (MemoryScope.USER,))
    with pytest.raises(MemoryConfigurationError, match="min_trust"):
        MemoryPolicy(min_trust="Model")  # type: ignore[arg-type]
    query = MemoryQuery(ANA, scopes=("USER",), min_trust="OWNER")  # type: ignore[arg-type]
    assert (query.scopes, query.min_trust) == ((MemoryScope.USER,), Trust.OWNER)
    async with open_memory("memory://", policy=policy, embedder=None) as memory:
        stored = await memory.remember(
            ANA, "Ana likes tea", trust="OWNER", scope="USER", memory_type="PREFERENCE"
        )
        assert (stored.trust, stored.memory_type) == (Trust.OWNER, MemoryType.PREFERENCE)
        assert len(await memory.recall(ANA, "tea", min_trust="OWNER")) == 1


async def test_memory_urls_name_nothing_more() -> None:
    for url in ("memory://x", "memory:///a.db"):
        with pytest.raises(MemoryConfigurationError, match="url: must look like"):
            async with open_memory(url, embedder=None):
                pass
