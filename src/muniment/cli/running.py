"""Running a command's work on an open memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from muniment.cli.exits import BadInput, Failed
from muniment.stores.urls import has_file, sqlite_file

if TYPE_CHECKING:
    from muniment.wiring import AsyncStore, OpenMemory

Result = TypeVar("Result")
_FILE = "sqlite:///"


def with_memory(
    url: str | None,
    work: Callable[[OpenMemory], Awaitable[Result]],
    *,
    creates: bool = False,
) -> Result:
    """Open the memory of `url`, do `work`, close it, and give the work's result.

    Only what stores something `creates` a file that is not there: a mistyped name leaves none.
    """
    target = _existing(url, creates)

    async def run() -> Result:
        from muniment.wiring import open_memory  # only when a store is needed

        async with open_memory(target) as memory:
            return await work(memory)

    return asyncio.run(run())


def with_store(
    url: str | None,
    work: Callable[[AsyncStore], Awaitable[Result]],
    *,
    reindexing: bool = False,
    creates: bool = False,
) -> Result:
    """Like `with_memory`, for the verbs by realm: the store alone."""
    target = _existing(url, creates)

    async def run() -> Result:
        from muniment.wiring import open_store

        async with open_store(target, reindexing=reindexing) as store:
            return await work(store)

    return asyncio.run(run())


def _existing(url: str | None, creates: bool) -> str:
    target = url or configured_url()
    path = path_of(target)
    if path is not None and path.is_dir():
        raise BadInput(f"--url: names a folder; name a file in it: {_FILE}{path}/muniment.db")
    if path is not None and not path.parent.is_dir():
        raise BadInput(f"--url: the folder {path.parent} is not there: mkdir -p {path.parent}")
    if not creates and not_there_yet(target):
        raise Failed(f"nothing is stored at {target} yet: muniment add begins it")
    return target


def configured_url() -> str:
    """The store that the settings name."""
    from muniment.settings import load_settings

    return load_settings().database_url


def not_there_yet(url: str) -> bool:
    """Whether `url` names a file that does not exist."""
    path = path_of(url)
    return path is not None and not path.exists()


def path_of(url: str) -> Path | None:
    """The file that `url` names, None where it names none.

    MemoryConfigurationError for what names no store.
    """
    path = sqlite_file(url) if has_file(url) else ":memory:"
    return None if path == ":memory:" else Path(path)
