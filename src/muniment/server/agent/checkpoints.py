"""Where the checkpoints of runs are kept: beside the store, by LangGraph's own savers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from muniment.domain.conversation import ConversationIdentity

Saver = BaseCheckpointSaver[Any]

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")


@asynccontextmanager
async def saver_for(url: str) -> AsyncIterator[Saver]:
    """The saver of a store's URL: PostgreSQL's own tables there, a file beside a SQLite file
    (another SQLite library must not open the same one), this process otherwise."""
    path = url.removeprefix(_SQLITE)
    if url.startswith(_POSTGRES):
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with AsyncPostgresSaver.from_conn_string(url) as postgres:
            await postgres.setup()
            yield postgres
    elif path not in (url, "", ":memory:"):
        async with _file(Path(path)) as sqlite:
            yield sqlite
    else:
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver()


@asynccontextmanager
async def _file(store: Path) -> AsyncIterator[Saver]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    path = store.with_name(f"{store.stem}.checkpoints{store.suffix or '.db'}")
    path.touch(mode=0o600)
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await saver.conn.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        await saver.conn.execute("PRAGMA busy_timeout = 60000")  # another replica writes too
        await saver.setup()
        yield saver


def thread_of(identity: ConversationIdentity, run_id: str) -> str:
    """The thread of a user's run: made of whose it is, so that nobody else's id reaches it."""
    whose = json.dumps([identity.tenant_id, identity.user_id, run_id], ensure_ascii=False)
    return hashlib.sha256(whose.encode()).hexdigest()


async def forget(saver: Saver, identity: ConversationIdentity, run_ids: Iterable[str]) -> int:
    """Delete the checkpoints of a user's runs; how many there were."""
    count = 0
    for run_id in dict.fromkeys(run_ids):
        config: Any = {"configurable": {"thread_id": thread_of(identity, run_id)}}
        count += len([each async for each in saver.alist(config)])
        await saver.adelete_thread(thread_of(identity, run_id))
    await _empty_journal(saver)
    return count


async def _empty_journal(saver: Saver) -> None:
    connection = getattr(saver, "conn", None)
    if type(saver).__name__ == "AsyncSqliteSaver" and connection is not None:
        cursor = await connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await cursor.close()
