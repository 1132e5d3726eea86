"""HarborRAG's memory on its own SQLite repository: recall, build, and its working memory.

The messages of a window come from a list in memory, which favours it.
"""

import asyncio
import time
from datetime import UTC, datetime
from importlib.metadata import version

from harborrag_memory import (
    InMemoryWorkingMemoryStore,
    Memory,
    MemoryContextBuilder,
    MemoryOwner,
    MemoryPolicy,
    MemoryRecall,
    MemoryScope,
    MemoryType,
    WorkingMemory,
)
from shared import asked, enough, tell, texts

wanted = asked()
SYSTEM = f"harborrag-memory {version('harborrag-memory')}"
OWNER = MemoryOwner(tenant_id="acme", user_id="u", principal_id="u", session_id="s")


class Window:
    """The last messages of one conversation, from memory."""

    def __init__(self, messages):
        self.messages = messages

    async def recent_messages(self, _identity, *, limit=12):
        """The newest, oldest first."""
        return tuple(self.messages[-limit:])


async def repository(lines):
    """Its SQLite repository with one fact a line."""
    from harborrag_adapters.repositories.database.control_plane.memory import SqlMemoryRepository
    from harborrag_adapters.repositories.database.control_plane.schemas_agent_memory import (
        MemoryRow,
    )
    from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

    engine = create_async_engine(f"sqlite+aiosqlite:///{wanted['place']}/memories.db")
    async with engine.begin() as connection:
        await connection.run_sync(MemoryRow.metadata.create_all)
    made = SqlMemoryRepository(async_sessionmaker(engine, expire_on_commit=False))
    owner = MemoryOwner(tenant_id="acme", user_id="u")
    for number, line in enumerate(lines):
        await made.save(
            Memory(
                memory_id=f"m{number}",
                scope=MemoryScope.USER,
                memory_type=MemoryType.FACT,
                owner=owner,
                content=line,
            )
        )
    return made


async def timed(call, calls, warm=3):
    """Seconds of each awaited call."""
    wall, cpu = [], []
    for number in enough(warm + calls):
        begun, worked = time.perf_counter(), time.process_time()
        await call(number)
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - worked)
    return {"wall": wall[warm:], "cpu": cpu[warm:]}


async def recall():
    """Recall over one owner's memories, without an index: it has none of its own."""
    lines, questions = texts(wanted)
    recaller = MemoryRecall(policy=MemoryPolicy(), memories=await repository(lines))
    times = await timed(
        lambda n: recaller.recall(OWNER, questions[n % len(questions)]), wanted["calls"]
    )
    tell(SYSTEM, **times)


async def build():
    """Its turn without a model."""
    from harborrag_core.ports.conversation import ConversationMessage

    lines, questions = texts(wanted)
    roles, start = ("user", "assistant"), datetime(2026, 1, 1, tzinfo=UTC)
    said = [
        ConversationMessage(
            message_id=f"t{n}", role=roles[n % 2], content="hello", created_at=start
        )
        for n in range(wanted["window"])
    ]
    memories = await repository(lines)
    builder = MemoryContextBuilder(policy=MemoryPolicy(), messages=Window(said), memories=memories)
    times = await timed(
        lambda n: builder.build(OWNER, questions[n % len(questions)]), wanted["calls"]
    )
    tell(SYSTEM, **times)


async def working():
    """Updates with one live run and with many."""
    answers = {}
    for name, runs in (("alone", 1), ("among", wanted["runs"])):
        memory = WorkingMemory(InMemoryWorkingMemoryStore())
        owners = [
            MemoryOwner(tenant_id="acme", principal_id="u", session_id="s", run_id=f"r{n}")
            for n in range(runs)
        ]
        # Filled through its table: its own put scans every run, which takes minutes.
        expires = time.monotonic() + 3600
        memory._store._values.update({owner: (expires, {"step": 0}) for owner in owners})
        answers[name] = await timed(
            lambda n, m=memory, o=owners: m.update(o[n % len(o)], {"step": n}), 100
        )
    tell(SYSTEM, **answers)


asyncio.run({"recall": recall, "build": build, "working": working}[wanted["what"]]())
