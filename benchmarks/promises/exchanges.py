"""A completion's two writes, and a turn's one read."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, kit, unit

EXCHANGES = (
    Mutation(
        "Exchanges: what is asked of a taken session is not stored",
        "stores/sqlite/exchanges.py",
        "            if wait:\n                return Begun(wait)\n",
        "",
        kit("sqlite", "exchanges:a_session_that_another_has_is_told_how_long_and_keeps_as_it_was"),
    ),
    Mutation(
        "Exchanges: an answer needs the lease",
        "stores/sqlite/exchanges.py",
        "                require_lease(change.db, identity, holder)\n",
        "",
        kit("sqlite", "exchanges:an_answer_without_its_lease_is_not_kept_nor_anything_with_it"),
    ),
    Mutation(
        "Exchanges: a beginning that fails gives the session back",
        "stores/exchanges.py",
        "            await self._service.release(identity, holder=holder)\n            raise",
        "            raise",
        unit("exchanges", "a_beginning_that_breaks_off_leaves_the_session_free"),
    ),
    Mutation(
        "Turn: where the joint read fails, each is read by itself",
        "context/builder.py",
        "return None  # each by itself tells which of them it is, and loses no other",
        "return (), ()",
        unit("turn_openings", "where_one_of_both_fails_the_other_is_there"),
    ),
    Mutation(
        "Turn: a store that can read both at once is asked so",
        "wiring.py",
        "openings=store if isinstance(store, TurnOpenings) else None,",
        "openings=None,",
        unit("turn_openings", "a_sqlite_store_opens_its_turns_so"),
    ),
)
