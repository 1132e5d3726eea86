"""What a turn pays before the model is called: ``build`` without a model, a 12-message window."""

from __future__ import annotations

from typing import Any

from benchmarks.latency.environments import HARBORRAG
from benchmarks.latency.figures import US, Figure, of_timing
from benchmarks.latency.filling import add_memories, add_messages, owner_in, url_of
from benchmarks.latency.settings import Run
from benchmarks.latency.texts import StubEmbedder, Texts
from benchmarks.latency.timing import Timing, timed_async
from muniment import OpenMemory, open_memory

_WINDOW = 12


async def measure(run: Run) -> list[Figure]:
    """With 10,000 memories and with none, on SQLite and in memory."""
    return [
        *await _ours(run, 10_000, "sqlite", 8.0),
        *await _ours(run, 10_000, "memory", None),
        *await _ours(run, 0, "sqlite", 1.0),
        *await _ours(run, 0, "memory", 0.3),
        *_peers(run, 10_000),
        *_peers(run, 0),
    ]


def _row(count: int) -> str:
    return f"build, window of {_WINDOW}, {count:,} memories" if count else "build, no memories"


async def _ours(run: Run, count: int, store: str, target: float | None) -> list[Figure]:
    url = url_of(run.place(f"build-{count}")) if store == "sqlite" else "memory://"
    embedder = StubEmbedder() if count else None
    async with open_memory(url, embedder=embedder) as memory:
        if count:
            await add_memories(memory, "acme", run.size(count))
            await add_messages(memory, "acme", _WINDOW)
        timing = await _built(memory, run.calls)
    return [of_timing(_row(count), f"{US}, {store}", timing, under=target)]


async def _built(memory: OpenMemory, calls: int) -> Timing:
    owner, questions = owner_in("acme", session="s0"), Texts(99).questions(calls)
    return await timed_async(
        lambda call: memory.context(owner, questions[call % len(questions)]), calls
    )


def _peers(run: Run, count: int) -> list[Figure]:
    asked = run.shared(run.size(count) if count else 0) | {
        "window": _WINDOW if count else 0,
        "place": str(run.place(f"harborrag-build-{count}")),
    }

    def read(answer: dict[str, Any]) -> list[Figure]:
        system = f"{HARBORRAG.name}, sqlite"
        return [of_timing(_row(count), system, Timing.of(answer["wall"], answer["cpu"]))]

    return run.of_peer(_row(count), HARBORRAG, asked | {"what": "build"}, read)
