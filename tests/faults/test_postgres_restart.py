"""Two service processes and a restart of the database in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from muniment.stores.postgres import PostgresStore
from muniment.stores.postgres.migrate import migrate
from muniment.testing import Kit
from muniment.testing.kit import person
from tests.servers import postgres_program

ANA = person()
_ROOT = Path(__file__).parents[2]
_BEFORE, _AFTER = 15, 30


async def _writer(url: str, name: str) -> asyncio.subprocess.Process:
    paths = os.pathsep.join([str(_ROOT), str(_ROOT / "src")])
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.postgres_writer", url, name,
        cwd=_ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE,
    )  # fmt: skip


async def _heard(writer: asyncio.subprocess.Process, count: int) -> list[str]:
    assert writer.stdout is not None
    return [(await writer.stdout.readline()).decode().strip() for _ in range(count)]


async def test_a_restart_loses_no_acknowledged_write_and_doubles_none(tmp_path: Path) -> None:
    process, address = postgres_program.started(tmp_path)
    programs = postgres_program.programs(18)
    writers: dict[str, asyncio.subprocess.Process] = {}
    try:
        await migrate(address)
        for name in ("one", "two"):
            writers[name] = await _writer(address, name)
        said = {name: await _heard(writer, _BEFORE) for name, writer in writers.items()}
        process.send_signal(signal.SIGINT)  # a fast shutdown: every connection is cut
        process.wait()
        port = int(urlsplit(address).port or 0)
        process = postgres_program.launched(programs, tmp_path / "data", port, {})
        postgres_program.wait_until_ready(programs, process, port)
        for name, writer in writers.items():
            said[name] += await _heard(writer, _AFTER)
        for name, writer in writers.items():
            writer.kill()
            rest = await writer.stdout.read() if writer.stdout is not None else b""
            said[name] += rest.decode().splitlines()
            await writer.wait()
        await _compare(address, {name: _whole(lines) for name, lines in said.items()})
    finally:
        for writer in writers.values():
            with contextlib.suppress(ProcessLookupError):
                writer.kill()
            await writer.wait()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        process.wait()


def _whole(lines: list[str]) -> list[str]:
    return [line for line in lines if line.count(" ") == 1]


async def _compare(address: str, said: dict[str, list[str]]) -> None:
    async with Kit.of(lambda clock, _, **__: PostgresStore(address, clock=clock)) as kit:
        facts = await kit.found(ANA, limit=1000)
        messages = await kit.said(ANA, limit=1000)
    assert len(facts) == len(set(facts)), "a fact that both store is stored once"
    for name, lines in said.items():
        for kind, number in (line.split() for line in lines):
            if kind == "fact":
                assert f"fact {number}" in facts, name
    for number in {line.split()[1] for lines in said.values() for line in lines if "said" in line}:
        acknowledged = sum(f"said {number}" in lines for lines in said.values())
        assert acknowledged <= messages.count(f"said {number}") <= len(said)
