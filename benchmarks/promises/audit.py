"""The audit log and the outbox."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, unit

_OUTBOX, _WRITER = "stores/sqlite/outbox.py", "stores/sqlite/writer.py"
_LOG, _CHAIN = "governance/audit.py", "governance/audit_chain.py"
_EVENTS = "governance/events.py"


def _faults(*tests: str) -> tuple[str, ...]:
    return tuple(f"tests/faults/test_outbox.py::test_{test}" for test in tests)


_KILLED = _faults("killed_between_the_commit_and_the_log_they_agree_after_a_restart")
_LIVING = _faults("another_living_process_brings_in_the_records_of_a_killed_one")
_DAMAGED = _faults("with_a_damaged_log_reading_and_erasing_go_on_and_writing_is_refused")
_FAILED_MARK = _faults("a_mark_that_fails_after_the_append_repeats_no_record")
_FULL = _faults("a_log_that_fills_up_after_the_commit_gets_its_records_later_and_once")

AUDIT = (
    Mutation(
        "Audit: a record is kept in the transaction of its change",
        _OUTBOX,
        'db.execute(SQL["put_outbox"], (entry.id, entry.time, entry.event, entry.realm, data))',
        "db, data = db, data",
        _KILLED,
    ),
    Mutation(
        "Audit: opening brings in what an earlier process left",
        _OUTBOX,
        "        elif count(db):\n            self.drain(db)\n",
        "",
        _KILLED,
    ),
    Mutation(
        "Audit: a write is in the log before it is acknowledged",
        _WRITER,
        "        if self._outbox is not None:\n            self._outbox.settle(self._connection)\n"
        "        self._release()\n",
        "        self._release()\n"
        "        if self._outbox is not None:\n            self._outbox.settle(self._connection)\n",
        _faults("a_write_waits_for_a_log_that_is_locked_and_the_event_loop_does_not"),
    ),
    Mutation(
        "Audit: a record that is in the log already is not appended again",
        _LOG,
        "        return [entry for entry in entries if entry.id not in held]",
        "        return [entry for entry in entries if entry.id or held]",
        (*_KILLED, *_FAILED_MARK),
    ),
    Mutation(
        "Audit: ids are looked up from the anchor on, not from the log's end",
        _LOG,
        "        if since.end >= tail.end:\n",
        "        if since.end <= tail.end:\n",
        (*_KILLED, *_FAILED_MARK),
    ),
    Mutation(
        "Audit: the floor of a batch stays while its records wait",
        _OUTBOX,
        "        if not self._own:\n            self._floor",
        "        if self._own is not None:\n            self._floor",
        _FAILED_MARK,
    ),
    Mutation(
        "Audit: what is in the log leaves the outbox",
        _OUTBOX,
        '            db.execute(SQL["take_outbox"], (json_list(list(entries)),))\n',
        "",
        _KILLED,
    ),
    Mutation(
        "Audit: the anchor moves with the log",
        _OUTBOX,
        '            db.execute(SQL["record_setting"], (_ANCHOR, reached.to_text()))\n',
        "",
        _faults("two_files_share_one_log_and_each_finds_what_is_cut_off_of_its_own"),
    ),
    Mutation(
        "Audit: a torn line of a killed process is completed",
        _LOG,
        "            if not broken.torn:\n                raise\n",
        "            if not broken.torn or broken.torn:\n                raise\n",
        (*_KILLED, *_LIVING),
    ),
    Mutation(
        "Audit: a torn line of anything else is damage",
        _LOG,
        "            if not content.startswith(begun):\n                raise torn\n",
        "",
        _DAMAGED,
    ),
    Mutation(
        "Audit: what is left of a record that was there is not written over",
        _LOG,
        "            self._require_all_of(tail, since, self._log.vouched)\n",
        "",
        _DAMAGED,
    ),
    Mutation(
        "Audit: a living process takes in a killed one's torn line before it refuses",
        _OUTBOX,
        "if self._own or (error is not None and _ids(db)):",
        "if self._own:",
        _LIVING,
    ),
    Mutation(
        "Audit: with a damaged log a write is refused before it begins",
        _WRITER,
        "        return [call for call in batch if not call.needs_log]",
        "        return batch",
        _DAMAGED,
    ),
    Mutation(
        "Audit: every write of a memory needs the log",
        "stores/sqlite/core.py",
        "needs_log=not may_wait)",
        "needs_log=False)",
        _DAMAGED,
    ),
    Mutation(
        "Audit: erasing goes on with a damaged log",
        "stores/sqlite/core.py",
        "needs_log=not may_wait)",
        "needs_log=True)",
        _DAMAGED,
    ),
    Mutation(
        "Audit: records that wait are warned of",
        _OUTBOX,
        '_log.warning("audit records wait in the outbox (%s): %s", error, _ids(db))',
        "_ids(db)",
        (*_DAMAGED, *_FULL),
    ),
    Mutation(
        "Audit: a log that continues elsewhere than at the anchor is found at open",
        _OUTBOX,
        "                since = BEGINNING if self._continued else anchor(db)\n",
        "                since = BEGINNING\n",
        _DAMAGED,
    ),
    Mutation(
        "Audit: an anchor's record must still stand in its place",
        "governance/audit_anchor.py",
        "        if tail != self.tail and not still_ends_with(stream, self.tail):\n",
        "        if tail.records < 0:\n",
        _faults("two_files_share_one_log_and_each_finds_what_is_cut_off_of_its_own"),
    ),
    Mutation(
        "Audit: an edit under a running log is found by its stamp",
        _LOG,
        "        if known is not None and known.stamp == stamp:\n            return known.tail\n",
        "        if known is not None:\n            return known.tail\n",
        ("tests/faults/test_audit_damage.py", *_DAMAGED),
    ),
    Mutation(
        "Audit: the cheap look at a log notices an edit",
        _LOG,
        " and known.stamp == _stamp(self._path):\n",
        ":\n",
        _DAMAGED,
    ),
    Mutation(
        "Audit: a missing log is not silently begun anew in place",
        "governance/audit_file.py",
        "        flags = os.O_RDWR | os.O_APPEND if writing else os.O_RDONLY\n",
        "        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT if writing else os.O_RDONLY\n",
        ("tests/faults/test_audit_damage.py", *_DAMAGED),
    ),
    Mutation(
        "Audit: a record that is not fit undoes its change",
        "governance/audit_record.py",
        "        if len(_canonical(fields)) > MAX_RECORD_BYTES - _REST_BYTES:\n",
        "        if len(_canonical(fields)) > MAX_RECORD_BYTES * 99:\n",
        _faults("a_record_that_is_not_fit_undoes_its_change_alone"),
    ),
    Mutation(
        "Audit: concurrent writers share the log's flush",
        _WRITER,
        "_MOST_IN_ONE_COMMIT = 256",
        "_MOST_IN_ONE_COMMIT = 1",
        _faults("concurrent_writers_share_the_flushes_of_the_log"),
    ),
    Mutation(
        "Audit: a record is on the disk when its write is acknowledged",
        "governance/audit_file.py",
        "        if fsync:\n            os.fsync(descriptor)\n",
        "",
        unit("audit_log", "records_reach_the_disk_unless_that_is_turned_off"),
    ),
    Mutation(
        "Audit: a new log begun after a damaged one says what is given up",
        _OUTBOX,
        "Records(partial(self.put, db), now).record(events.AUDIT_RESTARTED, None, **given_up)",
        "db.changes()",
        _faults("a_damaged_log_that_was_put_away_is_followed_by_a_new_one_that_says_so"),
    ),
    Mutation(
        "Audit: a log that is damaged in itself is not gone on with",
        _LOG,
        "self._known = self._fault = None\n                self._sound_tail(descriptor)\n",
        "self._known = self._fault = None\n",
        _faults("a_log_that_is_damaged_in_itself_is_not_gone_on_with"),
    ),
    Mutation(
        "Audit: a receipt is held against its own record's digest",
        "governance/audit_verification.py",
        'record.data.get("digest"))',
        "self._receipt.digest)",
        unit("audit_stores", "a_receipt_of_another_erasure_is_not_held"),
    ),
    Mutation(
        "Audit: a receipt is held against its own record",
        "governance/audit_verification.py",
        "record.data.get(RECORD_ID)",
        "self._receipt.record_id",
        unit("audit_stores", "a_receipt_of_another_erasure_is_not_held"),
    ),
    Mutation(
        "Audit: a damaged log holds no receipt",
        "governance/audit_verification.py",
        "    return wanted.found if verify_chain(Path(path), visit=wanted).ok else None",
        "    verify_chain(Path(path), visit=wanted)\n    return wanted.found",
        unit("audit_stores", "a_receipt_is_not_held_by_a_log_that_is_damaged_behind_it"),
    ),
    Mutation(
        "Audit: a store's verification continues from its anchor",
        "governance/audit_verification.py",
        "    result = verify_chain(path, anchor=anchor, visit=wanted or _pass)\n    if waiting:",
        "    result = verify_chain(path, anchor=None, visit=wanted or _pass)\n    if waiting:",
        unit("audit_stores", "a_log_that_was_cut_off_is_found_by_the_store"),
    ),
    Mutation(
        "Audit: records that wait are no sound verification",
        "governance/audit_verification.py",
        "    if waiting:\n",
        "    if waiting < 0:\n",
        _faults("records_that_cannot_be_appended_are_no_sound_verification"),
    ),
    Mutation(
        "Audit: a record names the realm of its memory",
        _EVENTS,
        "self.record(event, realm_of(memory), ",
        "self.record(event, None, ",
        unit("audit_stores", "every_memory_is_recorded_by_its_realm_id_and_scope"),
    ),
    Mutation(
        "Audit: many ids are recorded in parts that fit",
        _EVENTS,
        "        if part and size + cost > _ID_BYTES_A_RECORD:\n",
        "        if part and size < 0:\n",
        unit("audit_stores", "any_number_of_ids_is_recorded_in_records_that_fit"),
    ),
    Mutation(
        "Audit: in process, a failing change leaves no record",
        "stores/in_memory/tables.py",
        "yield Records(noted.append, self.clock())\n",
        "yield Records(self._trail._waiting.append, self.clock())\n",
        unit("audit_stores", "in_process_a_change_that_fails_half_way_is_not_recorded"),
    ),
    Mutation(
        "Audit: in process, a write needs the log",
        "stores/in_memory/tables.py",
        "        if not may_wait:\n            await self._trail.require_log()\n",
        "",
        unit("audit_stores", "with_a_damaged_log_only_what_removes_goes_on"),
    ),
    Mutation(
        "Audit: in process, records that the log did not take go later",
        "stores/in_memory/trail.py",
        "            else:\n                del self._waiting[: len(entries)]\n",
        "            del self._waiting[: len(entries)]\n",
        unit("audit_stores", "with_a_damaged_log_only_what_removes_goes_on"),
    ),
)
