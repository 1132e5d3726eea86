"""The command line on PostgreSQL: migrating, the doctor, and the one door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from muniment.cli.app import run
from muniment.domain.owner import MemoryOwner
from muniment.errors import MemoryConfigurationError
from muniment.wiring import open_memory
from tests.servers import databases


@pytest.fixture
def bare() -> Iterator[str]:
    """A database in which nothing is, for its owner."""
    name = f"{databases.name_of(databases.DATABASES.lend())}_{uuid4().hex[:8]}"
    databases.create(name)
    yield databases.owner_url(name)
    databases.drop(name)


def test_a_bare_database_is_migrated_and_then_used(
    bare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["add", "Ana likes tea", "--url", bare]) == 1
    assert "muniment migrate" in capsys.readouterr().err
    assert run(["migrate", "--url", bare, "--json"]) == 0
    moved = json.loads(capsys.readouterr().out)
    assert moved["before"] == 0
    assert moved["after"] > 0
    assert run(["migrate", "--url", bare]) == 0
    assert "already" in capsys.readouterr().out
    login = databases.login_url(databases.name_of(bare))
    assert run(["add", "Ana likes tea", "--url", login]) == 0
    capsys.readouterr()
    assert run(["recall", "tea", "--url", login]) == 0
    assert "Ana likes tea" in capsys.readouterr().out


def test_the_doctor_names_the_servers_versions(capsys: pytest.CaptureFixture[str]) -> None:
    run(["doctor", "--url", databases.DATABASES.lend(), "--json"])
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert found["store"]["state"] == "ok"
    assert databases.PASSWORD not in json.dumps(found)
    assert found["postgres"]["detail"].startswith("version 1")
    assert found["pgvector"]["detail"].startswith("version 0.")


def test_the_doctor_says_what_to_do_about_a_bare_database_and_an_absent_server(
    bare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for url, words in (
        (bare, "muniment migrate"),
        ("postgresql://nobody@127.0.0.1:1/none", "check that the server runs"),
    ):
        assert run(["doctor", "--url", url, "--json"]) == 1
        found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
        assert words in found["store"]["advice"]


@pytest.mark.parametrize("scheme", ["postgres://", "postgresql+asyncpg://"])
async def test_other_spellings_of_the_url_are_understood(scheme: str) -> None:
    url = databases.DATABASES.lend().replace("postgresql://", scheme)
    async with open_memory(url, embedder=None, audit="table") as memory:
        owner = MemoryOwner("acme", user_id="ana", principal_id="ana")
        kept = await memory.remember(owner, "Ana likes tea")
        assert [row.memory_id for row in await memory.recall(owner, "tea")] == [kept.memory_id]
        verified = await memory.store.verify_audit()
        assert verified is not None
        assert verified.ok


async def test_a_log_file_is_refused_where_the_log_is_a_table() -> None:
    with pytest.raises(MemoryConfigurationError, match="table"):
        async with open_memory(databases.DATABASES.lend(), embedder=None, audit="audit.jsonl"):
            pass
