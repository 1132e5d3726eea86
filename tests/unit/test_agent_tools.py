"""Memory tools for an agent: one owner, for good."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from muniment import (
    AgentMemoryTools,
    InvalidEntryError,
    Memory,
    MemoryOwner,
    MemoryPolicy,
    MemoryScope,
    MemoryScopeError,
    MemoryType,
    Trust,
)
from tests.doubles.repositories import FactRepository, ForeignRepository, WordIndex

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ANA = MemoryOwner("acme", project_id="apollo", principal_id="key", user_id="ana", session_id="s")
BOB = MemoryOwner("acme", project_id="apollo", user_id="bob", session_id="t")


@pytest.fixture(params=[ForeignRepository, FactRepository])
def repository(request: pytest.FixtureRequest) -> ForeignRepository:
    made: ForeignRepository = request.param(NOW)
    return made


def tools(
    repository: ForeignRepository, owner: MemoryOwner = ANA, **options: Any
) -> AgentMemoryTools:
    policy = options.pop("policy", MemoryPolicy())
    return AgentMemoryTools(owner, repository, policy, clock=lambda: NOW, **options)


async def test_what_is_stored_is_found_again(repository: ForeignRepository) -> None:
    agent = tools(repository)
    kept = await agent.call("manage_memory", {"content": "The user likes tea"})
    found = await agent.call("search_memory", {"query": "which tea?"})
    assert kept["status"] == "stored"
    (memory,) = found["memories"]
    assert (memory["id"], memory["trust"]) == (kept["memory_id"], "model")
    row = repository.rows[kept["memory_id"]]
    assert (row.scope, row.trust, row.owner) == (MemoryScope.USER, Trust.MODEL, ANA)


@pytest.mark.parametrize(
    "field", ["tenant_id", "user_id", "principal_id", "session_id", "project_id", "run_id", "owner"]
)
@pytest.mark.parametrize(
    ("tool", "values"), [("search_memory", {"query": "tea"}), ("manage_memory", {"content": "x"})]
)
async def test_an_owner_field_from_a_model_is_an_error(
    tool: str, values: dict[str, Any], field: str, repository: ForeignRepository
) -> None:
    for given in ("bob-secret", None, True):
        with pytest.raises(InvalidEntryError) as caught:
            await tools(repository).call(tool, {**values, field: given})
        assert "bob-secret" not in str(caught.value)
        assert "no owner fields" in str(caught.value)
        assert field == "owner" or f"bad arguments: {field}" in str(caught.value)
    assert repository.rows == {}


async def test_the_same_fact_is_reported_and_not_stored_again(
    repository: ForeignRepository,
) -> None:
    agent = tools(repository)
    first = await agent.manage({"content": "The user likes tea"})
    again = await agent.manage({"content": " the user LIKES tea "})
    assert again == {"status": "exists", "memory_id": first["memory_id"]}
    assert len(repository.rows) == 1


async def test_a_restatement_is_reported(repository: ForeignRepository) -> None:
    async def vector(text: str) -> tuple[float, ...]:
        return (1.0,)

    agent = tools(repository, index=WordIndex(repository, 0.95), embedder=vector)
    first = await agent.manage({"content": "The user likes tea"})
    again = await agent.manage({"content": "Tea is what the user likes"})
    assert again == {"status": "exists", "memory_id": first["memory_id"]}


@pytest.mark.parametrize(
    ("asked", "gate", "written"),
    [
        ("user", False, "user"),
        ("session", False, "session"),
        ("project", False, "session"),
        ("project", True, "project"),
    ],
)
async def test_a_written_scope_only_ever_narrows(
    asked: str, gate: bool, written: str, repository: ForeignRepository
) -> None:
    agent = tools(repository, policy=MemoryPolicy(extraction_project_scope=gate))
    kept = await agent.manage({"content": "The user likes tea", "scope": asked})
    assert repository.rows[kept["memory_id"]].scope == written


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"content": " \u200b"},
        {"content": "x" * 4001},
        {"content": "x", "scope": "tenant"},
        {"content": "x", "scope": "global"},
        {"content": "x", "memory_type": "summary"},
        {"content": "x", "importance": 2},
        {"content": "x", "importance": float("nan")},
        {"content": "x", "importance": True},
        {"content": True},
        {"content": "The password is hunter2"},
        {"content": "a nul \x00"},
        {"content": "lone \ud800"},
        {"content": None},
        {"content": "x", "trust": "owner"},
    ],
)
async def test_bad_arguments_store_nothing(
    values: dict[str, Any], repository: ForeignRepository
) -> None:
    with pytest.raises(InvalidEntryError) as caught:
        await tools(repository).manage(values)
    assert "hunter2" not in str(caught.value)
    assert repository.rows == {}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"query": ""},
        {"query": "tea", "limit": 0},
        {"query": "tea", "limit": 11},
        {"query": "tea", "limit": True},
        {"query": "tea", "scope": "global"},
        {"query": "tea", "scope": "run"},
    ],
)
async def test_bad_searches_are_refused(
    values: dict[str, Any], repository: ForeignRepository
) -> None:
    with pytest.raises(InvalidEntryError):
        await tools(repository).search(values)


async def test_nulls_are_absent_and_other_kinds_are_refused(
    repository: ForeignRepository,
) -> None:
    agent = tools(repository)
    kept = await agent.manage({"content": "The user likes tea", "scope": None, "importance": None})
    assert kept["status"] == "stored"
    for values in ("content", ["content"], None, 3):
        with pytest.raises(InvalidEntryError):
            await agent.manage(values)  # type: ignore[arg-type]
    with pytest.raises(InvalidEntryError):
        await agent.manage({"content": "The user likes jam", "user_id": 7})


async def test_an_unknown_tool_is_an_error(repository: ForeignRepository) -> None:
    with pytest.raises(InvalidEntryError):
        await tools(repository).call("drop_memory", {})


def row(key: str, owner: MemoryOwner, scope: MemoryScope) -> Memory:
    return Memory(
        memory_id=key,
        scope=scope,
        memory_type=MemoryType.FACT,
        owner=owner,
        content=f"tea {key}",
        created_at=NOW,
    )


async def test_a_search_sees_what_its_owner_may_see_and_no_more(
    repository: ForeignRepository,
) -> None:
    for scope in MemoryScope:
        if scope is not MemoryScope.RUN:
            await repository.save(row(f"ana-{scope.value}", ANA, scope))
            await repository.save(row(f"bob-{scope.value}", BOB, scope))
    found = await tools(repository).search({"query": "tea", "limit": 10})
    assert {memory["id"] for memory in found["memories"]} == {
        "ana-session",
        "ana-user",
        "ana-project",
        "bob-project",
        "ana-tenant",
        "bob-tenant",
    }
    narrow = await tools(repository).search({"query": "tea", "scope": "user"})
    assert [memory["id"] for memory in narrow["memories"]] == ["ana-user"]


async def test_an_owner_that_cannot_address_the_scope_is_told_so(
    repository: ForeignRepository,
) -> None:
    with pytest.raises(MemoryScopeError):
        await tools(repository, MemoryOwner("acme")).manage({"content": "x"})


async def test_a_disabled_policy_writes_nothing(repository: ForeignRepository) -> None:
    agent = tools(repository, policy=MemoryPolicy.disabled())
    assert (await agent.manage({"content": "The user likes tea"}))["status"] == "disabled"
    assert repository.rows == {}


def test_the_tools_describe_themselves_without_owner_fields(repository: ForeignRepository) -> None:
    search, manage = tools(repository).definitions
    assert search["name"] == "search_memory"
    assert set(search["parameters"]["properties"]) == {"query", "scope", "limit"}
    assert set(manage["parameters"]["properties"]) == {
        "content",
        "memory_type",
        "scope",
        "importance",
    }
    assert manage["parameters"]["additionalProperties"] is False
