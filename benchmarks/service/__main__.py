"""Concurrent conversations with the service: what memory adds to the model's time.

``python -m benchmarks.service [--conversations 200] [--seconds 60] [--model-seconds 2]``

The service, the model and this driver are three processes. Each conversation is one user with a
token of its own, asking again as soon as it has the answer, every second time streamed. Added is
the whole time of a completion, as its client sees it, without what the model took by its own
clock: authentication, lease, history, both messages stored durably, title, and every queue between.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt

SECRET = "a secret of the benchmark, long enough for HS256"  # noqa: S105
PERCENTILES = (50, 90, 95, 99)


@dataclass
class Found:
    """What came back: added seconds by kind, and what was not answered well."""

    added: dict[str, list[float]] = field(default_factory=lambda: {"whole": [], "streamed": []})
    errors: list[str] = field(default_factory=list[str])


@contextmanager
def _model(seconds: float) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.service.upstream", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


@contextmanager
def _service(folder: Path, model: str, embedder: str, url: str | None) -> Iterator[int]:
    log = folder / "service.log"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")},
        "MUNIMENT_DATABASE_URL": url or f"sqlite:///{folder / 'memory.db'}",
        "MUNIMENT_EMBEDDER": embedder,
        "MUNIMENT_PORT": "0",
        "MUNIMENT_AUTH_MODE": "jwt",
        "MUNIMENT_AUTH_SECRET": SECRET,
        "MUNIMENT_MODEL": "m",
        "MUNIMENT_MODEL_BASE_URL": model,
    }
    with log.open("wb") as output:
        command = [sys.executable, "-m", "muniment", "serve"]
        process = subprocess.Popen(command, env=environment, stderr=output)  # noqa: S603
    try:
        yield _port(log)
    finally:
        process.terminate()
        _, _, used = os.wait4(process.pid, 0)
        print(f"processor time of the service: {used.ru_utime + used.ru_stime:.1f} s")


def _port(log: Path) -> int:
    while True:
        _, found, rest = log.read_text("utf-8").partition("running on http://127.0.0.1:")
        if found and rest[:5].strip():
            return int(rest.split(" ")[0].split("\n")[0])
        time.sleep(0.05)


async def _talk(port: int, user: int, until: float, found: Found) -> None:
    claims = {"sub": f"user{user}", "tenants": ["DEFAULT"], "exp": int(time.time()) + 3600}
    token = jwt.encode(claims, SECRET, algorithm="HS256")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    session, number = None, 0
    while time.perf_counter() < until:
        number += 1
        streamed = number % 2 == 0
        asked = {
            "messages": [
                {"role": "user", "content": f"question {number} of user {user}, in words"}
            ],
            **({"session_id": session} if session else {}),
            **({"stream": True} if streamed else {}),
        }
        started = time.perf_counter()
        status, body = await _post(reader, writer, token, asked)
        took = time.perf_counter() - started
        told = _last(body, streamed=streamed) if status == 200 else {}
        if not told.get("memory_persisted"):
            found.errors.append(f"{status} {body[:200]!r}")
            continue
        session = told["session_id"]
        model_seconds = float(told["id"].removeprefix("took-"))
        found.added["streamed" if streamed else "whole"].append(took - model_seconds)
    writer.close()


def _last(body: bytes, *, streamed: bool) -> dict[str, Any]:
    text = body.split(b"data: ")[-2] if streamed else body
    told: dict[str, Any] = json.loads(text)
    return told


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, asked: dict[str, Any]
) -> tuple[int, bytes]:
    body = json.dumps(asked).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: service\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = int(answer.split(" ")[1])
    if "content-length:" in answer:
        length = int(answer.split("content-length:")[1].split("\r\n")[0])
        return status, await reader.readexactly(length)
    whole = b""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        whole += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return status, whole


async def _drive(port: int, options: argparse.Namespace) -> Found:
    found = Found()
    until = time.perf_counter() + options.seconds
    talks = []
    for user in range(options.conversations):
        talks.append(asyncio.create_task(_talk(port, user, until, found)))
        await asyncio.sleep(options.model_seconds / options.conversations)  # not all in one instant
    await asyncio.gather(*talks)
    return found


def _report(found: Found, options: argparse.Namespace) -> int:
    both = [*found.added["whole"], *found.added["streamed"]]
    rate = len(both) / options.seconds
    print(f"{options.conversations} conversations for {options.seconds:.0f} s", end=", ")
    print(f"a model that takes {options.model_seconds} s, embedder {options.embedder}")
    print(f"answered {len(both)} ({rate:.0f} a second), errors {len(found.errors)}")
    for name, values in (("all", both), *found.added.items()):
        ordered = sorted(values)
        told = ", ".join(
            f"p{each} {ordered[min(len(ordered) - 1, len(ordered) * each // 100)] * 1000:.1f}"
            for each in PERCENTILES
            if ordered
        )
        print(f"added, {name}: {told} ms")
    for error in found.errors[:5]:
        print("error:", error)
    return 1 if found.errors else 0


def main() -> int:
    """Run the load and print what memory added."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--model-seconds", type=float, default=2)
    parser.add_argument("--embedder", default="none", choices=("none", "local", "auto"))
    parser.add_argument("--url", help="the store; by default a SQLite file of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _model(options.model_seconds) as model:
        place = Path(folder)
        with _service(place, model, options.embedder, options.url) as port:
            found = asyncio.run(_drive(port, options))
    return _report(found, options)


if __name__ == "__main__":
    sys.exit(main())
