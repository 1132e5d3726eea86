"""What falls with an erased realm: rows outside it that stand on nothing but what is erased."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw

from muniment.domain.memory import MemoryType
from muniment.domain.realm import RealmKey
from muniment.governance.derivation import orphans
from muniment.stores.rows import Row
from muniment.stores.sqlite.change import Change
from muniment.stores.sqlite.images import json_list
from muniment.stores.sqlite.realms import parts_of
from muniment.stores.sqlite.statements import SQL, covered
from muniment.stores.sqlite.writes import remove_memory


class Place(NamedTuple):
    """Where a row was."""

    audience: int
    memory_id: str


@dataclass(slots=True)
class Cascade:
    """The rows outside a realm that its erasure touches; made before anything is deleted."""

    realm: RealmKey
    fallen: set[int] = field(default_factory=set[int])
    left: set[int] = field(default_factory=set[int])

    @classmethod
    def of(cls, db: apsw.Connection, realm: RealmKey) -> Cascade:
        """Which rows fall and which are left with fewer sources.

        A summary falls with any message it covers; all else with the last of its sources.
        """
        heard: dict[int, str] = dict(_heard(db, "heard_in_realm", realm))
        cut = {seq for seq, kind in heard.items() if kind == MemoryType.SUMMARY.value}
        said = set(heard) - cut
        reached = _reached(db, realm, cut, said)
        links: dict[int, set[int]] = {seq: set() for seq in reached}
        for derived, source in db.execute(SQL["links_to"], (json_list(sorted(reached)),)):
            links[derived].add(source)
        sources = {source for found in links.values() for source in found}
        gone = cut | _covered(db, realm, sources)
        standing = _still_said(db, reached - said)
        fallen = cut | orphans(links, gone, standing)
        return cls(realm, fallen, reached - fallen)

    def unlink(self, db: apsw.Connection) -> None:
        """Let what is left name neither an erased memory nor an erased session as its source."""
        lost: dict[int, set[str]] = {}
        values = {
            **parts_of(self.realm),
            "left": json_list(sorted(self.left)),
            "fallen": json_list(sorted(self.fallen)),
        }
        for seq, name in db.execute(SQL["lost_links"], values):
            lost.setdefault(seq, set()).add(name)
        for seq, names in lost.items():
            before = json.loads(db.execute(SQL["derived_from"], (seq,)).get)
            kept = [name for name in before if name not in names]
            db.execute(SQL["set_derived_from"], (seq, json_list(kept)))
        _heard(db, "forget_source_session", self.realm)

    def fell(self, change: Change) -> list[Place]:
        """Delete what falls: its audiences and ids."""
        found = change.db.execute(SQL["places"], (json_list(sorted(self.fallen)),))
        places = [Place(*row) for row in found]
        for place in places:
            remove_memory(change, place.audience, place.memory_id)
        return places


def _reached(
    db: apsw.Connection, realm: RealmKey, cut: AbstractSet[int], said: AbstractSet[int]
) -> set[int]:
    """Rows that lose a source, directly or through others; `cut` fall anyhow."""
    direct = {row[0] for row in db.execute(covered("derived_outside", realm), parts_of(realm))}
    reached = (set(said) | direct) - cut
    fresh = reached | cut
    while fresh:
        found = db.execute(SQL["links_from"], (json_list(sorted(fresh)),))
        fresh = {row[0] for row in found} - reached - cut
        fresh -= _covered(db, realm, fresh)
        reached |= fresh
    return reached


def _heard(db: apsw.Connection, statement: str, realm: RealmKey) -> list[Row]:
    """Run a statement on memories of other scopes that come from the realm's one session."""
    if realm.session is None or realm.agent is not None:
        return []  # a user's or a tenant's realm covers them itself; no session is an agent's
    whose = RealmKey(realm.tenant, realm.subject)
    values = {**parts_of(whose), "source": realm.session}
    return db.execute(covered(statement, whose), values).fetchall()


def _covered(db: apsw.Connection, realm: RealmKey, seqs: Iterable[int]) -> set[int]:
    values = {**parts_of(realm), "seqs": json_list(sorted(seqs))}
    return {row[0] for row in db.execute(SQL["covered_among"], values)}


def _still_said(db: apsw.Connection, seqs: Iterable[int]) -> set[int]:
    """Those of the rows whose messages are there, if only one of them."""
    return {row[0] for row in db.execute(SQL["still_said"], (json_list(sorted(seqs)),))}
