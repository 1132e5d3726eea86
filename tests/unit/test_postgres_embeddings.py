"""One embedding model a database: another is refused, and a rebuild changes it everywhere."""

from __future__ import annotations

import pytest

from muniment.domain.query import MemoryQuery
from muniment.errors import MemoryStoreError
from muniment.stores.postgres import PostgresStore
from muniment.testing import HashingEmbedder, Kit
from muniment.testing.kit import person
from tests.servers.databases import DATABASES, execute, name_of, owner_url

ANA, BEA = person(), person("other", "bea")


async def _filled(url: str) -> None:
    async with Kit.of(
        lambda clock, _, **__: PostgresStore(url, clock=clock, embedder=HashingEmbedder(64))
    ) as kit:
        for owner in (ANA, BEA):
            await kit.save(owner, "zebra memory")
            await kit.say(owner, "zebra said")


def _widths(url: str) -> set[int | None]:
    query = (
        "SELECT vector_dims(vector) FROM muniment.memory"
        " UNION SELECT vector_dims(vector) FROM muniment.message"
    )
    return {row[0] for row in execute(owner_url(name_of(url)), query)}


async def test_another_dimension_or_model_is_refused_and_nothing_is_dropped() -> None:
    url = DATABASES.lend()
    await _filled(url)
    other = HashingEmbedder(64)
    other.model_name = "another"
    with pytest.raises(MemoryStoreError, match="reindex"):
        await PostgresStore(url, embedder=other).open()
    assert _widths(url) == {64}


async def test_rebuilding_gives_every_tenant_the_new_embedders_vectors() -> None:
    url = DATABASES.lend()
    await _filled(url)
    other = HashingEmbedder(32)
    other.model_name = "another"
    store = PostgresStore(url, embedder=other)
    await store.open(reindexing=True)
    assert await store.reindex() == 4
    await store.aclose()
    assert _widths(url) == {32}
    async with PostgresStore(url, embedder=other) as again:
        found = await again.memories.search_memories(_query("zebra"), await other("zebra memory"))
        assert found[0].score > 0.99


async def test_a_rebuild_that_is_interrupted_leaves_no_vector_to_be_mixed_with() -> None:
    url = DATABASES.lend()
    await _filled(url)
    other = HashingEmbedder(32)
    other.model_name = "another"
    store = PostgresStore(url, embedder=other)
    await store.open(reindexing=True)

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await store.reindex(progress=stop)
    await store.aclose()
    assert _widths(url) <= {None, 32}


def _query(text: str) -> MemoryQuery:
    return MemoryQuery(ANA, text=text)
