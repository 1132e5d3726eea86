"""The database restarted while two processes of the service answer requests."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from muniment.stores.postgres.migrate import migrate
from tests.doubles.openai_server import OpenAIServer
from tests.doubles.service import JWT_MODE, Service, bearer
from tests.servers import postgres_program

CHAT, MEMORIES = "/v1/chat/completions", "/v1/memory/memories"
_BEFORE, _AFTER = 5, 15
_SECONDS = 120


class Database:
    """A PostgreSQL of this test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process, self.url = postgres_program.started(folder)

    def restart(self) -> None:
        """A fast shutdown, which cuts every connection, and a new start."""
        self.stop()
        programs, port = postgres_program.programs(18), int(urlsplit(self.url).port or 0)
        self._process = postgres_program.launched(programs, self._folder / "data", port, {})
        postgres_program.wait_until_ready(programs, self._process, port)

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        self._process.wait()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "postgres")
    yield made
    made.stop()


class Writer:
    """Asks for one thing after the other, again where it was refused, until it is stopped."""

    def __init__(self, client: httpx2.Client, ask: Callable[[httpx2.Client, int], bool]) -> None:
        self._client, self._ask = client, ask
        self._stopped = threading.Event()
        self._heard = threading.Condition()
        self.acknowledged = 0
        self.refused = 0

    def write(self) -> None:
        while not self._stopped.is_set():
            if self._ask(self._client, self.acknowledged):
                with self._heard:
                    self.acknowledged += 1
                    self._heard.notify_all()
            else:
                self.refused += 1

    def reach(self, count: int) -> None:
        with self._heard:
            assert self._heard.wait_for(lambda: self.acknowledged >= count, _SECONDS)

    def stop(self) -> None:
        self._stopped.set()


def _remember(client: httpx2.Client, number: int) -> bool:
    return client.post(MEMORIES, json={"content": f"note {number}"}).status_code == 201


def _talk(session: str) -> Callable[[httpx2.Client, int], bool]:
    def ask(client: httpx2.Client, number: int) -> bool:
        body = {
            "session_id": session, "messages": [{"role": "user", "content": f"question {number}"}],
        }  # fmt: skip
        answer = client.post(CHAT, json=body, headers={"Idempotency-Key": f"key {number}"})
        return answer.status_code == 200 and answer.json()["memory_persisted"] is True

    return ask


def _pages(client: httpx2.Client, path: str, rows: str, cursor: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    place: dict[str, str] = {}
    while True:
        page = client.get(path, params={"limit": "100", **place}).json()
        found += page[rows]
        if page["next_cursor"] is None:
            return found
        place = {cursor: page["next_cursor"]}


async def test_no_acknowledged_request_is_lost_and_none_is_stored_twice(
    database: Database, tmp_path: Path
) -> None:
    await migrate(database.url)
    with ExitStack() as stack:
        model = stack.enter_context(OpenAIServer.running())
        settings = {
            **JWT_MODE, "MUNIMENT_DATABASE_URL": database.url, "MUNIMENT_MODEL": "m",
            "MUNIMENT_MODEL_BASE_URL": model.url,
        }  # fmt: skip
        services = [stack.enter_context(Service.running(tmp_path, **settings)) for _ in range(2)]
        clients = [
            stack.enter_context(service.client(**bearer(f"{service.process.pid}{kind}")))
            for service in services
            for kind in ("writes", "talks")
        ]
        sessions = [each.post("/v1/chat/sessions").json()["session_id"] for each in clients]
        writers = [
            Writer(client, _talk(session) if turn % 2 else _remember)
            for turn, (client, session) in enumerate(zip(clients, sessions, strict=True))
        ]
        _restarted_under(writers, database)
        for turn, writer in enumerate(writers):
            if turn % 2:
                _require_each_once(clients[turn], sessions[turn], writer.acknowledged)
            else:
                notes = _pages(clients[turn], MEMORIES, "memories", "cursor")
                written = sorted(int(each["content"].split()[1]) for each in notes)
                assert written == list(range(writer.acknowledged))


def _restarted_under(writers: list[Writer], database: Database) -> None:
    with ThreadPoolExecutor(len(writers)) as pool:
        running = [pool.submit(writer.write) for writer in writers]
        try:
            for writer in writers:
                writer.reach(_BEFORE)
            database.restart()
            after = [writer.acknowledged + _AFTER for writer in writers]
            for writer, count in zip(writers, after, strict=True):
                writer.reach(count)
        finally:
            for writer in writers:
                writer.stop()
        for each in running:
            each.result()


def _require_each_once(client: httpx2.Client, session: str, acknowledged: int) -> None:
    rows = _pages(client, f"/v1/chat/sessions/{session}/messages", "messages", "after")
    said = [(each["role"], each["content"], each["partial"]) for each in rows]
    wanted: list[tuple[str, str, bool]] = []
    for number in range(acknowledged):
        wanted += [("user", f"question {number}", False), ("assistant", "ok", False)]
    assert said == wanted
