"""Where the checkpoints of runs are kept: beside the store, by LangGraph's own savers."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from langgraph.checkpoint.base import BaseCheckpointSaver

from muniment.domain.conversation import ConversationIdentity
from muniment.errors import MemoryStoreError
from muniment.stores.urls import is_postgres, postgres_url

Saver = BaseCheckpointSaver[Any]

SCHEMA = "muniment_checkpoints"
_SQLITE = "sqlite:///"
_CONNECTIONS = 8


@asynccontextmanager
async def saver_for(url: str) -> AsyncIterator[Saver]:
    """The saver of a store's URL: PostgreSQL's own tables there, a file beside a SQLite file
    (another SQLite library must not open the same one), this process otherwise."""
    path = url.removeprefix(_SQLITE)
    if is_postgres(url):
        async with _tables(url) as postgres:
            yield postgres
    elif path not in (url, "", ":memory:"):
        async with _file(Path(path)) as sqlite:
            yield sqlite
    else:
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver()


@asynccontextmanager
async def _tables(url: str) -> AsyncIterator[Saver]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    pool: Any = AsyncConnectionPool(
        _in_schema(url),
        open=False,
        min_size=0,
        max_size=_CONNECTIONS,
        check=AsyncConnectionPool.check_connection,  # the database may have been restarted
        kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": dict_row},
    )
    async with pool:
        async with pool.connection() as connection:
            cursor = await connection.execute(
                "SELECT to_regclass(%s) IS NOT NULL AS there", (f"{SCHEMA}.checkpoints",)
            )
            if not (await cursor.fetchone())["there"]:
                raise MemoryStoreError("no tables for checkpoints: run `muniment migrate`")
        yield AsyncPostgresSaver(pool)


async def prepare(url: str) -> None:
    """Make LangGraph's tables in a schema of their own, as the database's owner, for the role
    `muniment_app`."""
    import psycopg
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async with await psycopg.AsyncConnection.connect(
        postgres_url(url), autocommit=True
    ) as connection:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
        async with AsyncPostgresSaver.from_conn_string(_in_schema(url)) as saver:
            await saver.setup()
        for right in (
            f"GRANT USAGE ON SCHEMA {SCHEMA} TO muniment_app",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA}"
            " TO muniment_app",
        ):
            await connection.execute(right.encode())


def _in_schema(url: str) -> str:
    """`url` with our schema as the first place where names are looked up."""
    parts = urlsplit(postgres_url(url))
    option = urlencode({"options": f"-csearch_path={SCHEMA}"}, quote_via=quote)
    return parts._replace(query=f"{parts.query}&{option}" if parts.query else option).geturl()


@asynccontextmanager
async def _file(store: Path) -> AsyncIterator[Saver]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    # At DEBUG it logs every statement with its values, and those are what was said.
    logging.getLogger("aiosqlite").setLevel(logging.INFO)
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
