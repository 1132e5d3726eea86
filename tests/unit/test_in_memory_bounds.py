"""The in-process store is bounded by tenant: who fills it pays for it."""

from __future__ import annotations

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.stores.in_memory import InMemoryStore
from muniment.testing.doubles import ManualClock


def _talk(tenant: str, session: str, user: str = "ana") -> ConversationIdentity:
    return ConversationIdentity(tenant, user, session, user)


async def test_hazard_22_one_tenant_evicts_its_own_longest_unused_session_alone() -> None:
    clock = ManualClock()
    store = InMemoryStore(clock=clock, max_sessions=100)
    kept = _talk("acme", "kept")
    await store.conversations.create(kept)
    for number in range(100):
        await store.conversations.create(_talk("acme-corp", f"s{number}"))
    question = ConversationMessage("m1", "user", "still here", clock())  # type: ignore[arg-type]
    await store.conversations.append_messages(_talk("acme-corp", "s0"), [question])
    for number in range(300):
        await store.conversations.create(_talk("acme-corp", f"more{number}", "bo"))
    assert await store.conversations.exists(kept)
    assert not await store.conversations.exists(_talk("acme-corp", "s1"))
    assert not await store.conversations.exists(_talk("acme-corp", "more199", "bo"))
    assert await store.conversations.exists(_talk("acme-corp", "more299", "bo"))


async def test_what_was_used_last_stays_longest() -> None:
    clock = ManualClock()
    store = InMemoryStore(clock=clock, max_sessions=2)
    first, second = _talk("acme", "first"), _talk("acme", "second")
    await store.conversations.create(first)
    await store.conversations.create(second)
    question = ConversationMessage("m1", "user", "used", clock())  # type: ignore[arg-type]
    await store.conversations.append_messages(first, [question])
    await store.conversations.create(_talk("acme", "third"))
    assert await store.conversations.exists(first)
    assert not await store.conversations.exists(second)
