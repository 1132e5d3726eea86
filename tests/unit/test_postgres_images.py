"""Images of PostgreSQL's rows: loaded in pages, kept within a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from muniment.errors import MemoryStoreError
from muniment.stores.postgres import PostgresStore, images
from muniment.stores.postgres.session import Row, Session
from muniment.testing import Kit
from muniment.testing.kit import person
from tests.servers.databases import DATABASES

ANA = person()


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(images, "_PAGE", 2)
    return DATABASES.lend()


def _kit(url: str) -> Any:
    return Kit.of(lambda clock, embedder, **_: PostgresStore(url, clock=clock, embedder=embedder))


async def test_an_image_of_many_pages_holds_every_row(url: str) -> None:
    async with _kit(url) as kit:
        for number in range(5):
            await kit.save(ANA, f"zebra {number}", f"m{number}")
            await kit.say(ANA, f"zebra said {number}")
    async with _kit(url) as kit:
        assert len(await kit.recalled(ANA, "zebra")) == 10
        await kit.memories.delete(ANA, "m1")
        await kit.save(ANA, "a kite", "m2")
        texts = [hit.memory.content for hit in await kit.recalled(ANA, "zebra")]
        assert len(texts) == 8
        assert not {"zebra 1", "zebra 2"} & set(texts)


async def test_loading_goes_on_where_it_was_cut_off(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _kit(url) as kit:
        for number in range(7):
            await kit.save(ANA, f"zebra {number}", f"m{number}")
    pages: list[int] = []
    read = Session.all

    async def cut_off_once(self: Session, name: str, values: Mapping[str, Any]) -> list[Row]:
        if name == "memory_changed":
            if len(pages) == 2:
                pages.append(0)
                raise MemoryStoreError("cut off")
            pages.append(len(await read(self, name, values)))
        return await read(self, name, values)

    monkeypatch.setattr(Session, "all", cut_off_once)
    async with _kit(url) as kit:
        with pytest.raises(MemoryStoreError, match="cut off"):
            await kit.recalled(ANA, "zebra")
        assert len(await kit.recalled(ANA, "zebra")) == 7
    assert pages == [2, 2, 0, 2, 1]
