"""Derivation, erasure, quotas and usage."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, kit, unit

_SQL = "stores/sqlite/sql/queries.sql"
_DERIVATION = "governance/derivation.py"
_CASCADE = "stores/sqlite/cascade.py"
_ERASING = "stores/sqlite/erasing.py"
_JOURNAL = "stores/sqlite/journal.py"
_QUOTAS = "governance/quotas.py"


def _bytes(*tests: str) -> tuple[str, ...]:
    return tuple(f"tests/faults/test_erased_bytes.py::test_{test}" for test in tests)


DERIVATIONS = (
    Mutation(
        "a source must be there for its writer",
        _DERIVATION,
        "if memory_id not in sources and memory_id not in held:",
        "if memory_id not in sources and memory_id in held:",
        kit("sqlite", "derivation:a_foreign_source_is_refused_like_an_absent_one"),
    ),
    Mutation(
        "a source is looked up as its writer sees it",
        _SQL,
        "WHERE memory_id IN (SELECT value FROM json_each(?1)) AND audience IN\n"
        "    (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(?2)))\n",
        "WHERE memory_id IN (SELECT value FROM json_each(?1)) AND ?2 IS NOT NULL\n",
        kit("sqlite", "derivation:a_foreign_source_is_refused_like_an_absent_one"),
    ),
    Mutation(
        "a source that went since does not stand in an update's way",
        _DERIVATION,
        "memory_id not in sources and memory_id not in held",
        "memory_id not in sources",
        kit("sqlite", "derivation:a_source_that_went_since_does_not_stand_in_an_updates_way"),
    ),
    Mutation(
        "trust never rises above the lowest source",
        _DERIVATION,
        "lowest = min(sources.values(), default=Trust.OWNER)",
        "lowest = max(sources.values(), default=Trust.OWNER)",
        kit("sqlite", "derivation:trust_never_rises_above_the_lowest_source"),
    ),
    Mutation(
        "the owner's own word is above the rule of trust",
        _DERIVATION,
        "if memory.trust is not Trust.OWNER and memory.trust > lowest:",
        "if memory.trust > lowest:",
        kit("sqlite", "derivation:an_owners_own_word_is_above_its_sources"),
    ),
)

ERASURES = (
    Mutation(
        "erasure follows derivation",
        _ERASING,
        "derived = beside.fell(change)",
        "derived: list[Place] = []",
        kit("sqlite", "erasure:what_was_derived_from_erased_memories_alone_goes_too"),
    ),
    Mutation(
        "derivation is followed to its end",
        _CASCADE,
        "        reached |= fresh\n",
        "        reached |= fresh\n        break\n",
        kit("sqlite", "erasure:derivation_is_followed_to_its_end"),
    ),
    Mutation(
        "rows that hold up only each other fall",
        _DERIVATION,
        "any(s not in sources and s not in gone for s in from_)",
        "any(s not in gone for s in from_)",
        kit("sqlite", "erasure:rows_that_hold_up_only_each_other_fall"),
    ),
    Mutation(
        "what another source holds up stays",
        _DERIVATION,
        "return set(sources) - kept - gone",
        "return set(sources) - gone",
        kit("sqlite", "erasure:what_was_derived_from_erased_memories_alone_goes_too"),
    ),
    Mutation(
        "what stays loses the erased link",
        _ERASING,
        "        beside.unlink(db)\n",
        "        pass\n",
        kit("sqlite", "erasure:what_was_derived_from_erased_memories_alone_goes_too"),
    ),
    Mutation(
        "without cascade nothing outside the realm is touched",
        _ERASING,
        "beside = Cascade.of(db, realm) if cascade else Cascade(realm)",
        "beside = Cascade.of(db, realm)",
        kit("sqlite", "erasure:without_cascade_what_is_outside_stays_as_it_is"),
    ),
    Mutation(
        "facts of an erased session go",
        _CASCADE,
        'heard: dict[int, str] = dict(_heard(db, "heard_in_realm", realm))',
        "heard: dict[int, str] = {}",
        kit("sqlite", "erasure:facts_of_an_erased_session_go_and_others_stay"),
    ),
    Mutation(
        "a fact that is still said elsewhere stays",
        _CASCADE,
        "standing = _still_said(db, reached - said)",
        "standing = set[int]()",
        kit("sqlite", "erasure:a_fact_with_another_source_outlives_its_session"),
    ),
    Mutation(
        "a summary falls with any message it covers",
        _CASCADE,
        "if kind == MemoryType.SUMMARY.value}",
        "if kind == MemoryType.WORKING.value}",
        kit("sqlite", "erasure:a_summary_falls_with_any_message_it_covers"),
    ),
    Mutation(
        "a receipt names what is gone, in any order",
        "governance/receipts.py",
        "json.dumps(sorted(ids),",
        "json.dumps(list(ids),",
        unit("receipts", "a_digest_is_over_the_sorted_ids_as_json"),
    ),
    Mutation(
        "nothing erased, no receipt",
        "stores/erasure.py",
        "if not self.result.anything:",
        "if self.result.pending:",
        kit("sqlite", "erasure:a_receipt_holds_the_digest_of_what_is_gone"),
    ),
    Mutation(
        "sweeping leaves what has not expired",
        _SQL,
        "    AND expires_at <= :now\n",
        "    AND expires_at <= :now + 1000000000000\n",
        kit("sqlite", "erasure:sweeping_removes_what_has_expired_and_nothing_else"),
    ),
    Mutation(
        "in memory: what a swept memory had replaced stays closed",
        "stores/in_memory/realms.py",
        "tables.drop(row)",
        "tables.remove(row)",
        kit("in_memory", "erasure:what_a_swept_memory_had_replaced_stays_closed"),
    ),
    Mutation(
        "another writer of a shared fact is told the fact alone",
        "stores/provenance.py",
        "if owner_user(known.owner) == owner_user(asker.owner):",
        "if known.owner.tenant_id == asker.owner.tenant_id:",
        kit("sqlite", "facts:another_writer_of_a_shared_fact_is_told_the_fact_alone"),
    ),
)

BYTES = (
    Mutation(
        "an erasure empties the journal",
        _JOURNAL,
        'row = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()',
        'row = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()',
        _bytes("nothing_of_what_was_erased_is_left_in_any_file"),
    ),
    Mutation(
        "an erasure leaves no copies of moved rows",
        _JOURNAL,
        "return _rewritten(db, wait) and _kept(db, promised)",
        "return _kept(db, promised)",
        _bytes("rows_that_moved_between_pages_leave_no_copies"),
    ),
    Mutation(
        "an erasure that waits says so",
        _JOURNAL,
        "return row is None or not row[0]",
        "return True",
        _bytes("an_erasure_beside_a_reader_is_pending_until_it_is_completed"),
    ),
    Mutation(
        "what is pending is remembered",
        _ERASING,
        "        promise(change.db)\n",
        "        pass\n",
        _bytes("a_file_that_others_wrote_without_secure_delete_is_left_clean"),
    ),
    Mutation(
        "opening completes what is pending",
        "stores/sqlite/engine.py",
        "                settle_promised(connection)\n",
        "",
        _bytes("what_is_pending_outlives_the_store"),
    ),
    Mutation(
        "a large file is not called clean before it is compacted",
        _JOURNAL,
        "or _size(db) > LARGEST_REWRITTEN_BYTES",
        "",
        _bytes("a_large_file_waits_for_compact"),
    ),
)

QUOTAS = (
    Mutation(
        "one beyond the quota is refused",
        _QUOTAS,
        "now > limit and",
        "now > limit + 1 and",
        kit("sqlite", "quotas:memories_are_stored_up_to_the_quota_exactly"),
    ),
    Mutation(
        "exactly at the quota passes",
        _QUOTAS,
        "now > limit and",
        "now >= limit and",
        kit("sqlite", "quotas:memories_are_stored_up_to_the_quota_exactly"),
    ),
    Mutation(
        "a write that does not grow passes over a lowered quota",
        _QUOTAS,
        " and now > getattr(before, name)",
        "",
        unit("quotas", "a_lowered_quota_leaves_what_is_there_and_lets_it_shrink"),
    ),
    Mutation(
        "a replacement that finds no room changes nothing",
        "stores/sqlite/writer.py",
        '"ROLLBACK TO job; RELEASE job"',
        '"RELEASE job"',
        unit("quotas", "eight_threads_fill_a_quota_exactly"),
    ),
    Mutation(
        "tokens of changed texts are counted anew",
        "stores/sqlite/sql/migrations/0002_governance.sql",
        "tokens = tokens + new.tokens - old.tokens",
        "tokens = tokens",
        kit("sqlite", "quotas:tokens_are_stored_up_to_the_quota_exactly"),
    ),
    Mutation(
        "deleting makes room",
        "stores/sqlite/sql/migrations/0002_governance.sql",
        "SET entries = entries - 1,",
        "SET entries = entries,",
        kit("sqlite", "quotas:room_is_made_by_deleting_erasing_and_sweeping"),
    ),
    Mutation(
        "in memory: a quota is held",
        "stores/in_memory/tables.py",
        "self.limits.quotas.check(self._totals[new.tenant], changed[new.tenant])",
        "pass",
        kit("in_memory", "quotas:memories_are_stored_up_to_the_quota_exactly"),
    ),
)

USAGE = (
    Mutation(
        "served figures are the tenant's own",
        _SQL,
        "FROM served WHERE tenant = ?1 AND day = ?2;",
        "FROM served WHERE ?1 IS NOT NULL AND day = ?2 ORDER BY tenant DESC;",
        kit("sqlite", "usage:served_figures_are_the_tenants_by_utc_day"),
    ),
    Mutation(
        "stored figures are the realm's",
        "stores/sqlite/realms.py",
        'db.execute(covered("usage_covered", realm), parts_of(realm)).get',
        'db.execute(covered("usage_covered", RealmKey(realm.tenant)), parts_of(realm)).get',
        kit("sqlite", "usage:stored_figures_are_the_realms"),
    ),
    Mutation(
        "a tenant's erasure takes its served figures along",
        _SQL,
        "DELETE FROM served WHERE tenant = ?1;",
        "DELETE FROM served WHERE tenant = ?1 AND 0;",
        kit("sqlite", "usage:a_tenants_erasure_takes_its_served_figures_along"),
    ),
    Mutation(
        "what recall gives out is counted",
        "context/recall.py",
        "if self._served is not None:",
        "if self._served is None:",
        kit("sqlite", "usage:what_recall_gives_out_is_counted"),
    ),
    Mutation(
        "a period is a day of the calendar",
        "governance/usage.py",
        "return date.fromisoformat(period).isoformat()",
        "return period",
        kit("sqlite", "usage:a_period_is_one_day_of_the_calendar"),
    ),
)

GOVERNANCE = (*DERIVATIONS, *ERASURES, *BYTES, *QUOTAS, *USAGE)
