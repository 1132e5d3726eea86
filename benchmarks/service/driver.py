"""The users: each on a connection of its own, asking again as soon as it has the answer.

They share the machine with what is measured, so a request is ready-made but for its question, and
of an answer only the end is read.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any, cast

import jwt

_ENDS = b"\r\n0\r\n\r\n"


@dataclass
class Found:
    """What came back: added seconds by kind, and what was not answered well."""

    added: dict[str, list[float]] = field(default_factory=lambda: {"whole": [], "streamed": []})
    errors: list[str] = field(default_factory=list[str])


class User(asyncio.Protocol):
    """One conversation, until the clock says `until`; `ended` then."""

    def __init__(self, user: int, secret: str, until: float, found: Found) -> None:
        claims = {"sub": f"user{user}", "tenants": ["DEFAULT"], "exp": int(time.time()) + 3600}
        token = jwt.encode(claims, secret, algorithm="HS256")
        self._head = (
            "POST /v1/chat/completions HTTP/1.1\r\nHost: service\r\n"
            f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: "
        )
        self._user, self._until, self._found = user, until, found
        self._session: str | None = None
        self._number, self._started, self._held = 0, 0.0, b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the first question."""
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        """An error unless it is over."""
        if not self.ended.done():
            self._found.errors.append(f"connection lost ({exc})")
            self.ended.set_result(None)

    @property
    def _streamed(self) -> bool:
        return self._number % 2 == 0

    def _ask(self) -> None:
        self._number += 1
        question = f"question {self._number} of user {self._user}, in words"
        session = f', "session_id": "{self._session}"' if self._session else ""
        stream = ', "stream": true' if self._streamed else ""
        body = f'{{"messages": [{{"role": "user", "content": "{question}"}}]{session}{stream}}}'
        self._held, self._started = b"", time.perf_counter()
        self._transport.write(f"{self._head}{len(body)}\r\n\r\n{body}".encode())

    def data_received(self, data: bytes) -> None:
        """Note the answer once it is whole, and ask again."""
        self._held += data
        head, found, body = self._held.partition(b"\r\n\r\n")
        if not found or not self._is_whole(head, body):
            return
        took = time.perf_counter() - self._started
        status = int(head[9:12])
        self._note(status, took, _last(body) if status == 200 else {}, body)
        if time.perf_counter() < self._until:
            self._ask()
        else:
            self.ended.set_result(None)
            self._transport.close()

    def _is_whole(self, head: bytes, body: bytes) -> bool:
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        return len(body) >= int(length) if length else body.endswith(_ENDS)

    def _note(self, status: int, took: float, told: dict[str, Any], body: bytes) -> None:
        if not told.get("memory_persisted"):
            self._found.errors.append(f"{status} {body[:200]!r}")
            return
        self._session = told["session_id"]
        kind = "streamed" if self._streamed else "whole"
        self._found.added[kind].append(took - float(told["id"].removeprefix("took-")))


def _last(body: bytes) -> dict[str, Any]:
    """The reply, or the last chunk of one before the end."""
    told: dict[str, Any] = json.loads(
        body.split(b"data: ")[-2].split(b"\n\n")[0] if body.endswith(_ENDS) else body
    )
    return told


async def drive(port: int, secret: str, conversations: int, seconds: float, spread: float) -> Found:
    """The answers of `seconds` with so many `conversations`, begun over `spread` seconds."""
    loop, found, users = asyncio.get_running_loop(), Found(), []
    until = time.perf_counter() + seconds
    for number in range(conversations):
        user = User(number, secret, until, found)
        users.append(user)
        await loop.create_connection(lambda user=user: user, "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.sleep(spread / conversations)  # not all in one instant
    await asyncio.gather(*(user.ended for user in users))
    return found
