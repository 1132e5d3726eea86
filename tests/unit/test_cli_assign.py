"""`sessions assign`: a session of the shared identity becomes a user's, whole and alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from muniment.cli.app import run
from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.stores.sqlite import AsyncSQLiteStore
from muniment.testing.doubles import ManualClock

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


def test_a_session_that_the_user_has_already_is_not_mixed_with_another(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    url = ["--url", f"sqlite:///{path}"]
    _stored(path, SHARED, "shared")
    _stored(path, ConversationIdentity("DEFAULT", "bo", "s1", "bo"))
    assert run(["sessions", "assign", "s1", "--to", "bo", "--yes", *url]) == 1
    assert run(["sessions", "assign", "s1", "--to", "DEFAULT_USER", "--yes", *url]) == 1
    assert run(["sessions", "assign", "s2", "--to", "ana", "--yes", *url]) == 1
    assert _contents(path, SHARED)[0] == ["shared"]
