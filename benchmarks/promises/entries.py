"""Entries by realm: the synchronous store, transfer, shards and encryption."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, kit, unit

_SQL = "stores/sqlite/sql/entries.sql"
_TRANSFER = "stores/sqlite/sql/transfer.sql"
_READING = "stores/transfer_reading.py"
_JSON = "domain/strict_json.py"
_IMPORTING = "stores/sqlite/importing.py"
_FOREIGN = "entries:a_foreign_id_is_answered_like_an_unknown_one"
_BAD_LINE = "transfer:one_bad_line_stops_it_and_nothing_is_imported"


def _fault(name: str, test: str) -> tuple[str, ...]:
    return (f"tests/faults/test_{name}.py::test_{test}",)


ENTRIES = (
    Mutation(
        "Entries: an id of another realm is not answered (SQLite)",
        _SQL,
        "WHERE memory_id = :id AND {realm} ORDER BY seq;",
        "WHERE memory_id = :id AND tenant = :tenant ORDER BY seq;",
        kit("sqlite", _FOREIGN),
    ),
    Mutation(
        "Entries: an id of another realm is not answered (in memory)",
        "stores/in_memory/entries.py",
        "return [row for row in rows if realm.covers(realm_of(row.memory))]",
        "return [row for row in rows if realm.tenant == realm_of(row.memory).tenant]",
        kit("in_memory", _FOREIGN),
    ),
    Mutation(
        "Entries: an export holds the realm's rows alone",
        _SQL,
        "FROM memory WHERE {realm} AND seq > :after",
        "FROM memory WHERE tenant = :tenant AND seq > :after",
        kit("sqlite", _FOREIGN),
    ),
    Mutation(
        "Entries: a score is made of the realm's rows alone",
        _SQL,
        "FROM memory WHERE {realm} AND audience = :audience AND changed > :changed",
        "FROM memory WHERE tenant = :tenant AND audience = :audience AND changed > :changed",
        kit("sqlite", "entries:a_score_is_made_of_the_realms_rows_alone"),
    ),
    Mutation(
        "Entries: an entry is superseded once",
        "stores/entries.py",
        "if old.superseded_by is not None:",
        "if old.memory_id is None:",
        kit("sqlite", "chains:an_entry_is_superseded_once"),
    ),
    Mutation(
        "Entries: a budget passes over what does not fit",
        "stores/entry_search.py",
        "                continue\n",
        "                break\n",
        kit(
            "sqlite",
            "entries:a_token_budget_is_a_ceiling_and_passes_over_what_does_not_fit",
        ),
    ),
    Mutation(
        "Entries: words past the thirty-second are ignored",
        "stores/entry_search.py",
        "MAX_QUERY_WORDS = 32",
        "MAX_QUERY_WORDS = 33",
        kit("sqlite", "entries:words_past_the_thirty_second_are_ignored"),
    ),
    Mutation(
        "Entries: at most a thousand are forgotten at once",
        "stores/entries.py",
        "MAX_FORGOTTEN = 1_000",
        "MAX_FORGOTTEN = 1_001",
        kit("sqlite", "chains:at_most_a_thousand_are_forgotten_at_once"),
    ),
    Mutation(
        "Entries: an import caps trust",
        _READING,
        "{text: min(trust, taking.trust) for",
        "{text: trust for",
        kit("sqlite", "transfer:trust_is_capped_unless_the_caller_says_otherwise"),
    ),
    Mutation(
        "Entries: an imported entry lies inside the realm",
        "stores/transfer_place.py",
        "if not taking.realm.covers(realm):",
        "if taking.realm.tenant != realm.tenant:",
        kit("sqlite", _BAD_LINE),
    ),
    Mutation(
        "Entries: a field that is named twice is refused",
        _JSON,
        "    if len(value) != len(pairs):\n",
        "    if not pairs and value:\n",
        kit("in_memory", _BAD_LINE),
    ),
    Mutation(
        "Entries: a line that is nested too deep is a refusal",
        _JSON,
        "    except RecursionError:\n",
        "    except ZeroDivisionError:\n",
        kit("in_memory", _BAD_LINE),
    ),
    Mutation(
        "Entries: a file that was cut off is refused",
        _READING,
        "    if any(left.values()):\n",
        "    if any(value < 0 for value in left.values()):\n",
        kit("in_memory", "transfer:a_file_without_its_header_or_its_end_is_refused"),
    ),
    Mutation(
        "Entries: messages are imported by the caller's word alone",
        _READING,
        "    if not taking.conversations:\n",
        "    if taking.realm is None:\n",
        kit("sqlite", "transfer_talks:messages_are_imported_by_the_callers_word_alone"),
    ),
    Mutation(
        "Entries: an import keeps to the quota",
        _IMPORTING,
        "    with held_quota(change, tenant):\n",
        "    if True:\n",
        unit("sqlite_blocking", "a_quota_holds_for_add_supersede_and_import"),
    ),
    Mutation(
        "Entries: imported entries do not supersede each other in a circle",
        _IMPORTING,
        "        _refuse(circle, IN_A_CIRCLE)\n",
        "",
        kit("sqlite", "transfer:entries_are_not_linked_in_a_circle"),
    ),
    Mutation(
        "Entries: trust does not rise by an import",
        _IMPORTING,
        "    _refuse(above, ABOVE_SOURCES)\n",
        "",
        kit("sqlite", "transfer:trust_does_not_rise_by_an_import"),
    ),
    Mutation(
        "Entries: an import that an erasure met stores nothing",
        _IMPORTING,
        "    if there != staged.count:\n",
        "    if there > staged.count:\n",
        _fault("import", "an_erasure_meanwhile_stops_the_import_and_leaves_nothing"),
    ),
    Mutation(
        "Entries: a link of another realm is dropped",
        _TRANSFER,
        "        AND later.audience_key = staged.audience_key\n",
        "",
        kit(
            "sqlite",
            "transfer:links_that_leave_the_file_or_the_realm_are_dropped_and_counted",
        ),
    ),
    Mutation(
        "Entries: a failed import leaves no word",
        _IMPORTING,
        "        if staged.count and await core.engine.write_async(lambda db: drop(db, number)):\n",
        "        if staged.count and number < 0:\n",
        _fault("import", "a_failed_import_leaves_no_word_in_any_file"),
    ),
    Mutation(
        "Entries: an exported file is private",
        "stores/transfer_files.py",
        "os.O_WRONLY, 0o600)",
        "os.O_WRONLY, 0o644)",
        unit("sqlite_blocking", "an_exported_file_is_private_and_never_overwrites"),
    ),
    Mutation(
        "Shards: a file is deleted only after its record is in the log",
        "stores/sqlite/sharded.py",
        "        if not waiting:\n",
        "        if waiting >= 0:\n",
        unit("sqlite_sharded", "a_file_whose_record_has_to_wait_is_emptied_and_kept"),
    ),
    Mutation(
        "Shards: a file that others have open is not deleted",
        "stores/sqlite/shards.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        unit("sqlite_sharded", "a_file_that_another_store_has_open_is_emptied_and_kept"),
    ),
    Mutation(
        "Encryption: a SQLite without a cipher is refused",
        "stores/sqlite/encryption.py",
        'if connection.execute("PRAGMA cipher").fetchone() is None:',
        'if connection.execute("SELECT 1").fetchone() is None:',
        _fault("encryption", "a_sqlite_without_a_cipher_is_refused_before_anything_is_written"),
    ),
    Mutation(
        "Encryption: a file that turns out plain is an error",
        "stores/sqlite/encryption.py",
        "    if _head(path) == _PLAIN:\n",
        "    if _head(path) == path.encode():\n",
        _fault("encryption", "a_file_that_turns_out_plain_is_an_error"),
    ),
)
