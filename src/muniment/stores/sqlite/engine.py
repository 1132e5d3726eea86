"""One SQLite file: opened once, read by several threads, written by one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

import apsw

from muniment import forks
from muniment.domain.checks import encodable
from muniment.errors import MemoryConfigurationError, MemoryStoreError
from muniment.stores.driven import Finished, in_thread, is_driven
from muniment.stores.sqlite.calls import Job
from muniment.stores.sqlite.connections import (
    IN_MEMORY,
    SYNCHRONOUS,
    connect,
    use_write_ahead_log,
)
from muniment.stores.sqlite.encryption import (
    Encryption,
    EncryptionKey,
    key_errors,
    require_not_plain,
)
from muniment.stores.sqlite.errors import store_errors
from muniment.stores.sqlite.journal import emptied, settle_promised
from muniment.stores.sqlite.migrate import migrate, require_ours
from muniment.stores.sqlite.outbox import Outbox
from muniment.stores.sqlite.place import Place, journal_gone
from muniment.stores.sqlite.readers import Readers
from muniment.stores.sqlite.writer import Writer

Answer = TypeVar("Answer")

_READERS = 4


def _checked(path: str | Path) -> str:
    """The path as SQLite takes it, refused before anything is made under a part of it."""
    try:
        text = encodable("path", str(path))
    except ValueError as error:
        raise MemoryConfigurationError(str(error)) from None
    # Connections that are opened later open the same file, whatever the folder is by then.
    return text if text == IN_MEMORY else os.path.abspath(text)


class Engine:
    """Runs jobs on a SQLite file. Raises MemoryStoreError for what SQLite reports.

    `checks` runs on the migrated file whenever it is opened, before anything else may use it.
    While the process forks the file is closed; `in_child` is called in the new process.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: str = "FULL",
        checks: Callable[[apsw.Connection], None] = lambda _: None,
        outbox: Outbox | None = None,
        encryption_key: EncryptionKey | None = None,
        in_child: Callable[[], None] = lambda: None,
    ) -> None:
        if synchronous not in SYNCHRONOUS:
            raise MemoryConfigurationError(f"synchronous: must be one of {', '.join(SYNCHRONOUS)}")
        self._path = _checked(path)
        self._encryption = None if encryption_key is None else Encryption(encryption_key)
        if self._encryption is not None and self._path == IN_MEMORY:
            raise MemoryConfigurationError("encryption_key: a store in memory has no file")
        self._synchronous = synchronous
        self._checks = checks
        self._outbox = outbox
        self._in_child = in_child
        self._place: Place | None = None
        self._lock = threading.Lock()
        self._ending = threading.Lock()  # over `close`, which a fork waits for
        self._held = ExitStack()  # what a fork under way holds
        self._closed = False
        self._writer: Writer | None = None
        self._readers = Readers(self._reading, limit=_READERS)
        forks.tell(self)

    @property
    def encrypted(self) -> bool:
        """The file is written encrypted."""
        return self._encryption is not None

    # -- opening ---------------------------------------------------------------------------

    def open(self) -> Writer:
        """Open, check and migrate the file; does nothing where that is done."""
        with self._lock:
            if self._closed:
                raise MemoryStoreError("the store is closed")
            if self._writer is None:
                current = None if self._path == IN_MEMORY else self._current
                self._writer = Writer(self._opened(), self._outbox, current=current)
            return self._writer

    async def open_async(self) -> Writer:
        """Like `open`, off the event loop."""
        writer = self._writer
        return await in_thread(self.open) if writer is None else writer

    def _connect(self) -> apsw.Connection:
        with key_errors(self._encryption):
            return connect(
                self._path,
                synchronous=self._synchronous,
                encryption=self._encryption,
                create=self._place is None,
            )

    def _reading(self) -> apsw.Connection:
        if self._place is not None:
            self._place.require()
        return self._connect()

    def _opened(self) -> apsw.Connection:
        with store_errors():
            connection = self._connect()
            try:
                with key_errors(self._encryption):
                    require_ours(connection)  # before anything is changed
                use_write_ahead_log(connection)
                migrate(connection)
                if self._encryption is not None:
                    require_not_plain(self._path)  # what was just written is
                self._checks(connection)
                if self._outbox is not None:
                    self._outbox.open(connection)
                settle_promised(connection)
            except BaseException:
                connection.close()
                raise
            self._place = None if self._path == IN_MEMORY else Place.of(self._path)
        return connection

    def _current(self, connection: apsw.Connection | None) -> apsw.Connection:
        """A connection to the file that is there now; MemoryStoreError where that is another."""
        kept = self._place is None or self._place.keeps_its_journals()
        if connection is None:  # closed for a fork, its journals with it
            return self._opened()
        return connection if kept else self._opened_anew(connection)

    def _opened_anew(self, connection: apsw.Connection) -> apsw.Connection:
        """Bring home what is in journals that nobody else finds, and open the file with others."""
        if not emptied(connection):
            raise journal_gone()
        self._readers.rest()  # SQLite goes on with the old ones until all of us have closed
        try:
            connection.close()
            return self._opened()
        finally:
            self._readers.go_on()

    def close(self) -> None:
        """Finish what is queued and close every connection."""
        with self._ending:
            with self._lock:
                self._closed = True
            self._readers.close()
            if self._writer is not None:
                with suppress(MemoryStoreError):  # closed already
                    self._writer.run(settle_promised, apart=True)
                self._writer.close()

    # -- forking ---------------------------------------------------------------------------

    def rest(self) -> None:
        """Close the file before a fork, once what is under way is done."""
        self._held.enter_context(self._ending)
        self._held.enter_context(self._lock)
        if self._writer is not None:
            self._held.callback(self._writer.go_on)
            place = self._place
            if place is not None:  # before it is closed, since somebody may begin to read
                self._place = place.at_rest()
            if not self._writer.rest():
                self._place = place
        self._held.callback(self._readers.go_on)
        self._readers.rest()

    def go_on(self) -> None:
        """Go on after a fork; the file is opened again when it is needed."""
        self._held.close()

    def begin_anew(self) -> None:
        """In a process that was forked off: as if not opened yet."""
        forks.give_up(self._writer, self._readers, self._held)
        self._lock, self._ending, self._held = threading.Lock(), threading.Lock(), ExitStack()
        in_memory = self._writer if self._path == IN_MEMORY and not self._closed else None
        self._writer = None if in_memory is None else in_memory.in_child()
        self._readers = Readers(self._reading, limit=_READERS)
        self._in_child()

    # -- reading ---------------------------------------------------------------------------

    async def read_async(self, job: Job[Answer]) -> Answer:
        """Run `job` in one snapshot; a cancelled read is interrupted, not abandoned."""
        writer = await self.open_async()
        if self._path == IN_MEMORY:  # such a database has one connection
            return writer.run(job) if is_driven() else await Finished(writer.submit(job))
        read = self._readers.submit(job)
        try:
            return await read.handed
        except (asyncio.CancelledError, KeyboardInterrupt):
            read.interrupt()
            raise

    # -- writing ---------------------------------------------------------------------------

    async def write_async(self, job: Job[Answer], *, needs_log: bool = False) -> Answer:
        """Run `job` in a transaction that others may share; done once it is durable.

        A write that began is not undone by cancellation. One that `needs_log` does not begin
        where an audit log is configured and unfit: AuditError.
        """
        writer = self._writer or await self.open_async()
        if is_driven():
            return writer.run(job, needs_log=needs_log)
        return await Finished(writer.submit(job, needs_log=needs_log))

    async def apart_async(self, job: Job[Answer]) -> Answer:
        """Run `job` on the connection that writes, outside a transaction."""
        writer = await self.open_async()
        if is_driven():
            return writer.run(job, apart=True)
        return await Finished(writer.submit(job, apart=True))
