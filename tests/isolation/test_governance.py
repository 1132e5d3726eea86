"""The verbs by realm, asked for a realm that is somebody else's: as for one that never was."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.errors import InvalidEntryError, ScopeError
from muniment.testing import Kit
from muniment.testing.kit import person
from muniment.testing.refusals import refused
from tests.contract.stores import MAKERS

ANA = person(project_id="p1", run_id="r1")
WRONG = {
    "a colleague": Scope("acme", subject="bo"),
    "another tenant": Scope("other", subject="ana"),
    "a longer name": Scope("acme-corp"),
    "a shorter name": Scope("acm"),
    "other letter case": Scope("ACME"),
    "another session": Scope("acme", subject="ana", session="s2"),
    "an agent": Scope("acme", subject="ana", agent="helper"),
    "an owner with a wild card": MemoryOwner("%", user_id="%"),
    "an owner with another user": MemoryOwner("acme", user_id="%"),
}


async def _everything(kit: Kit) -> tuple[Any, ...]:
    """What Ana has, as she sees it."""
    return (
        await kit.recalled(ANA, "zebra"),
        await kit.said(ANA),
        await kit.store.working.get(ANA),
        await kit.store.usage(Scope("acme")),
        await kit.memories.get(ANA, "derived"),
    )


@pytest.mark.parametrize("store", MAKERS)
@pytest.mark.parametrize("realm", WRONG.values(), ids=WRONG)
async def test_a_wrong_realm_erases_sweeps_and_counts_nothing(
    store: str, realm: Scope | MemoryOwner, tmp_path: Path
) -> None:
    async with Kit.of(MAKERS[store](tmp_path)) as kit:
        soon = kit.clock() + timedelta(seconds=1)
        await kit.save(ANA, "zebra of ana", "m1")
        await kit.save(ANA, "zebra, expired", "m2", expires_at=soon)
        await kit.save(ANA, "zebra derived", "derived", derived_from=("m1",))
        await kit.save(ANA, "zebra heard", source_session_id="s1", source_message_ids=("q",))
        await kit.save(ANA, "zebra of the project", scope=MemoryScope.PROJECT)
        await kit.say(ANA, "zebra said")
        await kit.store.working.put(ANA, {"zebra": 1}, ttl_seconds=60)
        kit.store.note_served("acme", 1, 7)
        kit.clock.move(seconds=2)
        before = await _everything(kit)
        for cascade in (True, False):
            result = await kit.store.erase(realm, cascade=cascade)
            counts = (result.entries, result.derived, result.sessions, result.messages)
            assert (*counts, result.working_states, result.receipt) == (0, 0, 0, 0, 0, None)
        assert await kit.store.sweep_expired(realm) == 0
        usage = await kit.store.usage(realm)
        assert (usage.entries, usage.stored_tokens) == (0, 0)
        await kit.store.compact()
        assert await _everything(kit) == before


@pytest.mark.parametrize("store", MAKERS)
async def test_what_is_no_realm_is_refused_by_every_verb(store: str, tmp_path: Path) -> None:
    async with Kit.of(MAKERS[store](tmp_path)) as kit:
        no_realm: Any
        for no_realm in ("tenant=acme", None, {"tenant": "acme"}, object()):
            for verb in (kit.store.erase, kit.store.sweep_expired, kit.store.usage):
                await refused(ScopeError, verb(no_realm))


@pytest.mark.parametrize("store", MAKERS)
async def test_a_foreign_id_as_a_source_tells_nothing(store: str, tmp_path: Path) -> None:
    """Hazard 2."""
    async with Kit.of(MAKERS[store](tmp_path)) as kit:
        await kit.save(ANA, "zebra of ana", "m1")
        for who in (person(user="bo"), person("other"), person("acme_"), person(user="ANA")):
            answers = set[str]()
            for source in ("m1", "never was"):
                derived = kit.memory(who, "a zebra", "d", derived_from=(source,))
                answers.add(str(await refused(InvalidEntryError, kit.memories.save(derived))))
                answers.add(str(await refused(InvalidEntryError, kit.memories.store_fact(derived))))
            assert len(answers) == 1
            assert await kit.memories.get(who, "d") is None
