"""What falls with an erased realm: rows outside it that stand on nothing but what is erased."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from muniment.domain.memory import MemoryType
from muniment.domain.realm import RealmKey
from muniment.governance.derivation import orphans
from muniment.stores.postgres.change import Change
from muniment.stores.postgres.realms import parts_of
from muniment.stores.postgres.removals import Place, remove_memories
from muniment.stores.postgres.session import Session
from muniment.stores.rows import dumps


@dataclass(slots=True)
class Cascade:
    """The rows outside a realm that its erasure touches; made before anything is deleted."""

    realm: RealmKey
    fallen: set[int] = field(default_factory=set[int])
    left: set[int] = field(default_factory=set[int])

    @classmethod
    async def of(cls, db: Session, realm: RealmKey) -> Cascade:
        """Which rows fall and which are left with fewer sources.

        A summary falls with any message it covers; all else with the last of its sources.
        """
        heard: dict[int, str] = dict(await db.all("heard_in_realm", parts_of(realm)))
        cut = {seq for seq, kind in heard.items() if kind == MemoryType.SUMMARY.value}
        said = set(heard) - cut
        reached = await _reached(db, realm, cut, said)
        links: dict[int, set[int]] = {seq: set() for seq in reached}
        for derived, source in await db.all("links_to", {"seqs": sorted(reached)}):
            links[derived].add(source)
        sources = {source for found in links.values() for source in found}
        gone = cut | await _covered(db, realm, sources)
        standing = await _still_said(db, reached - said)
        fallen = cut | orphans(links, gone, standing)
        return cls(realm, fallen, reached - fallen)

    async def unlink(self, db: Session) -> None:
        """Let what is left name neither an erased memory nor an erased session as its source."""
        lost: dict[int, set[str]] = {}
        values = {"left": sorted(self.left), "fallen": sorted(self.fallen)}
        for seq, name in await db.all("lost_links", {**parts_of(self.realm), **values}):
            lost.setdefault(seq, set()).add(name)
        before = await db.all("derived_from", {"seqs": sorted(lost)}) if lost else []
        kept = {
            seq: dumps(tuple(name for name in json.loads(ids) if name not in lost[seq]))
            for seq, ids in before
        }
        if kept:
            await db.run("set_derived_from", {"seqs": list(kept), "ids": list(kept.values())})
        await db.run("forget_source_session", parts_of(self.realm))

    async def fell(self, change: Change) -> list[Place]:
        """Delete what falls: its audiences and ids."""
        found = await change.db.all("places", {"seqs": sorted(self.fallen)})
        places = [Place(*row) for row in found]
        await remove_memories(change, places)
        return places


async def _reached(
    db: Session, realm: RealmKey, cut: AbstractSet[int], said: AbstractSet[int]
) -> set[int]:
    """Rows that lose a source, directly or through others; `cut` fall anyhow."""
    direct = {row[0] for row in await db.all("derived_outside", parts_of(realm))}
    given = {**parts_of(realm), "seqs": sorted({*said, *direct, *cut})}
    return {row[0] for row in await db.all("links_from", given)} - cut


async def _covered(db: Session, realm: RealmKey, seqs: Iterable[int]) -> set[int]:
    values = {**parts_of(realm), "seqs": sorted(seqs)}
    return {row[0] for row in await db.all("covered_among", values)}


async def _still_said(db: Session, seqs: Iterable[int]) -> set[int]:
    """Those of the rows whose messages are there, if only one of them."""
    return {row[0] for row in await db.all("still_said", {"seqs": sorted(seqs)})}
