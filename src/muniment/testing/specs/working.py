"""One run's scratch state."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from typing import Any

from muniment.domain.owner import MemoryOwner
from muniment.errors import MemoryScopeError
from muniment.testing.kit import Kit, person
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

RUN = person(run_id="r1")


@spec(Capability.WORKING)
async def state_is_kept_until_its_time_is_over(kit: Kit) -> None:
    await kit.store.working.put(RUN, {"step": 1, "list": [1, {"a": None}]}, ttl_seconds=60)
    assert await kit.store.working.get(RUN) == {"step": 1, "list": [1, {"a": None}]}
    kit.clock.move(seconds=59)
    assert await kit.store.working.get(RUN) is not None
    kit.clock.move(seconds=1)
    assert await kit.store.working.get(RUN) is None


@spec(Capability.WORKING)
async def putting_replaces_the_whole_state(kit: Kit) -> None:
    await kit.store.working.put(RUN, {"a": 1}, ttl_seconds=60)
    await kit.store.working.put(RUN, {"b": 2}, ttl_seconds=60)
    assert await kit.store.working.get(RUN) == {"b": 2}
    await kit.store.working.delete(RUN)
    await kit.store.working.delete(RUN)
    assert await kit.store.working.get(RUN) is None


@spec(Capability.WORKING)
async def states_go_in_and_out_as_copies(kit: Kit) -> None:
    state: dict[str, Any] = {"list": [1]}
    await kit.store.working.put(RUN, state, ttl_seconds=60)
    state["list"].append(2)
    read: Any = await kit.store.working.get(RUN)
    read["list"].append(3)
    assert await kit.store.working.get(RUN) == {"list": [1]}


@spec(Capability.WORKING)
async def every_part_of_the_key_separates_runs(kit: Kit) -> None:
    others = [
        person(run_id="r2"), person("other", run_id="r1"), person(user="bo", run_id="r1"),
        person(session="s2", run_id="r1"), person(run_id="r1", project_id="p1"),
    ]  # fmt: skip
    await kit.store.working.put(RUN, {"mine": True}, ttl_seconds=60)
    for other in others:
        assert await kit.store.working.get(other) is None
        await kit.store.working.delete(other)
        await kit.store.working.put(other, {"mine": False}, ttl_seconds=60)
    assert await kit.store.working.get(RUN) == {"mine": True}


@spec(Capability.WORKING)
async def incomplete_owners_and_bad_values_are_refused(kit: Kit) -> None:
    put = kit.store.working.put
    for owner in (person(), MemoryOwner("acme", run_id="r1")):
        await refused(MemoryScopeError, put(owner, {}, ttl_seconds=60))
        await refused(MemoryScopeError, kit.store.working.get(owner))
    for ttl in (0, -1, 365 * 24 * 3600 + 1):
        await refused(ValueError, put(RUN, {}, ttl_seconds=ttl))
    unreadable: dict[str, object] = {"k": object()}
    for state in (unreadable, {"k": float("nan")}, {"k": "\ud800"}):
        await refused(ValueError, put(RUN, state, ttl_seconds=60))
    assert await kit.store.working.get(RUN) is None
