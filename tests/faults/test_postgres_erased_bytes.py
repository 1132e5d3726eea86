"""Where the bytes of what was erased are, and when they are gone."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

from muniment.domain.realm import Scope
from muniment.stores.postgres import PostgresStore
from muniment.stores.postgres.migrate import migrate
from muniment.testing import Kit
from muniment.testing.kit import person
from tests.servers import postgres_program
from tests.servers.databases import execute

ANA, BO = person(run_id="r1"), person(user="bo")
_TOKEN = "zqvortexquokkazq"
_SEGMENTS = 3


def _places(data: Path) -> set[str]:
    """The folders of the server in which the token is found."""
    found: Counter[str] = Counter()
    for file in data.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # the server works meanwhile
            if file.is_file() and _TOKEN.encode() in file.read_bytes():
                found[file.relative_to(data).parts[0]] += 1
    return set(found)


async def test_erased_bytes_are_pending_until_tables_are_rewritten_and_the_log_has_moved_on(
    tmp_path: Path,
) -> None:
    process, address = postgres_program.started(tmp_path)
    data = tmp_path / "data"
    try:
        await migrate(address)
        async with Kit.of(lambda clock, _, **__: PostgresStore(address, clock=clock)) as kit:
            await _fill(kit)
            execute(address, "CHECKPOINT")
            assert "base" in _places(data)
            result = await kit.store.erase(Scope("acme", subject="ana"))
            assert result.pending
            assert (result.entries, result.messages, result.working_states) == (20, 20, 1)
            store = kit.store
            assert isinstance(store, PostgresStore)
            await store.compact(rewrite=True)
            execute(address, "CHECKPOINT")
            assert "base" not in _places(data)
            assert len(await kit.found(BO, limit=100)) == 20
            for _ in range(_SEGMENTS):  # as an hour or a day of use does
                execute(address, "SELECT pg_switch_wal()")
                execute(address, "CHECKPOINT")
            assert _places(data) == set()
    finally:
        process.terminate()
        process.wait()


async def _fill(kit: Kit) -> None:
    long = " ".join(f"word{number}" for number in range(1_500))  # kept outside its row
    for number in range(20):
        await kit.save(ANA, f"{_TOKEN} memory {number}", f"m{number}")
        await kit.save(BO, f"another memory {number}", f"m{number}")
        await kit.say(ANA, f"{_TOKEN} said {number} {long}")
    await kit.store.working.put(ANA, {"plan": _TOKEN}, ttl_seconds=60)
