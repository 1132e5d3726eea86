"""Recall over one owner's memories: both lanes, the learned ranking on, embedding left out."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.latency.environments import CHROMA, HARBORRAG, LANGGRAPH, MEM0
from benchmarks.latency.figures import US, Figure, of_timing
from benchmarks.latency.filling import add_memories, add_messages, owner_in, url_of
from benchmarks.latency.settings import Run
from benchmarks.latency.texts import StubEmbedder, Texts
from benchmarks.latency.timing import Timing, timed_async
from muniment import open_memory

_TARGETS = {10_000: 5.0, 100_000: 30.0}


async def measure(run: Run) -> list[Figure]:
    """Messages and typed memories at both sizes, and the peers at the smaller one."""
    figures = []
    for count, target in _TARGETS.items():
        for kind in ("messages", "memories"):
            figures += await _ours(run, kind, count, target)
        if count == min(_TARGETS):
            figures += _peers(run, count)
    return figures


async def _ours(run: Run, kind: str, count: int, target: float) -> list[Figure]:
    row, rows = f"recall, {count:,} {kind}", run.size(count)
    fill = add_messages if kind == "messages" else add_memories
    place = run.place(f"recall-{kind}-{count}")
    questions, owner = Texts(99).questions(run.calls), owner_in("acme")
    async with open_memory(url_of(place), embedder=StubEmbedder()) as memory:
        await fill(memory, "acme", rows)
    async with open_memory(url_of(place), embedder=StubEmbedder()) as memory:
        begun = time.perf_counter()
        await memory.recall(owner, questions[0])
        cold = (time.perf_counter() - begun) * 1000
        timing = await timed_async(
            lambda call: memory.recall(owner, questions[call % len(questions)]), run.calls
        )
    first = Figure(row, f"{US}, first after opening", round(cold, 2))
    return [of_timing(row, US, timing, under=target), first]


def _peers(run: Run, count: int) -> list[Figure]:
    row = f"recall, {count:,} memories"
    asked = run.shared(run.size(count)) | {"what": "recall"}

    def read(answer: dict[str, Any]) -> list[Figure]:
        return [of_timing(row, answer["system"], Timing.of(answer["wall"], answer["cpu"]))]

    found = []
    for peer in (LANGGRAPH, CHROMA, MEM0, HARBORRAG):
        found += run.of_peer(row, peer, asked | {"place": str(run.place(peer.name))}, read)
    return found
