"""`sessions assign`: a session of the shared identity becomes a user's, whole and alone."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from muniment import MemoryOwner, MemoryQuery, open_memory
from muniment.cli.app import run
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.testing.doubles import ManualClock
from tests.doubles.app import url_of

SHARED = ConversationIdentity("DEFAULT", "DEFAULT_USER", "s1", "DEFAULT_USER")
ANA = ConversationIdentity("DEFAULT", "ana", "s1", "ana")


def _stored(path: Path, identity: ConversationIdentity, *contents: str) -> None:
    async def work() -> None:
        clock = ManualClock()
        async with AsyncSQLiteStore(path, clock=clock) as store:
            await store.conversations.create(identity, kind="agent")
            messages = [
                ConversationMessage(f"m{number}", "user", content, clock())  # type: ignore[arg-type]
                for number, content in enumerate(contents)
            ]
            await store.conversations.append_messages(identity, messages)
            await store.conversations.set_generated_title(identity, title="about tea")

    asyncio.run(work())


def _contents(path: Path, identity: ConversationIdentity) -> tuple[list[str], str | None, bool]:
    async def work() -> tuple[list[str], str | None, bool]:
        async with AsyncSQLiteStore(path) as store:
            found = await store.conversations.recent_messages(identity, limit=1000)
            title = await store.conversations.get_title(identity)
            agent = await store.conversations.exists(identity, kind="agent")
            return [each.content for each in found], title, agent

    return asyncio.run(work())


def test_a_session_of_the_shared_identity_becomes_a_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "memory.db"
    url = ["--url", f"sqlite:///{path}"]
    contents = [f"message {number}" for number in range(600)]
    _stored(path, SHARED, *contents)
    assert run(["sessions", "assign", "s1", "--to", "ana", *url]) == 2
    assert run(["sessions", "assign", "s1", "--to", "ana", "--yes", "--json", *url]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"session_id": "s1", "user": "ana", "messages": 600}
    assert _contents(path, ANA) == (contents, "about tea", True)
    assert _contents(path, SHARED) == ([], None, False)
    assert run(["sessions", "assign", "s1", "--to", "ana", "--yes", *url]) == 1


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_what_was_noted_in_the_session_goes_along_and_nothing_else(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "none")
    url = url_of(store, tmp_path)
    shared, hers, bos = (
        MemoryOwner("DEFAULT", user_id=user, session_id="s1") for user in ("DEFAULT_USER", "a", "b")
    )

    async def prepared() -> None:
        async with open_memory(url) as memory:
            for session in ("s1", "s2"):
                talk = ConversationIdentity("DEFAULT", None, session, "DEFAULT_USER")
                await memory.conversations.create(talk)
                caller = replace(shared, session_id=session)
                old = await memory.remember(caller, f"tea in {session}", scope="session")
                await memory.remember(
                    caller, f"milk in {session}", scope="session", replaces=old.memory_id
                )
            await memory.remember(shared, "of the user")

    async def seen(owner: MemoryOwner) -> tuple[list[str], list[str]]:
        async with open_memory(url) as memory:
            now = await memory.store.memories.page(MemoryQuery(owner))
            (milk,) = [each for each in now if each.content.startswith("milk")] or [None]
            past = await memory.history(owner, milk.memory_id) if milk else ()
            return sorted(each.content for each in now), [each.content for each in past]

    asyncio.run(prepared())
    assert run(["sessions", "assign", "s1", "--to", "a", "--yes", "--url", url]) == 0
    assert asyncio.run(seen(hers)) == (["milk in s1"], ["tea in s1", "milk in s1"])
    assert asyncio.run(seen(bos)) == ([], [])
    assert asyncio.run(seen(shared)) == (["of the user"], [])
    other = replace(shared, session_id="s2")
    assert asyncio.run(seen(other))[0] == ["milk in s2", "of the user"]


def test_a_session_that_the_user_has_already_is_not_mixed_with_another(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    url = ["--url", f"sqlite:///{path}"]
    _stored(path, SHARED, "shared")
    _stored(path, ConversationIdentity("DEFAULT", "bo", "s1", "bo"))
    assert run(["sessions", "assign", "s1", "--to", "bo", "--yes", *url]) == 1
    assert run(["sessions", "assign", "s1", "--to", "DEFAULT_USER", "--yes", *url]) == 1
    assert run(["sessions", "assign", "s2", "--to", "ana", "--yes", *url]) == 1
    assert _contents(path, SHARED)[0] == ["shared"]
