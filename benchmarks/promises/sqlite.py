"""The SQLite store."""

# ruff: noqa: S608 - statements are compared here, never run.

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, kit, unit

_SQL = "stores/sqlite/sql/queries.sql"
_KEYS = "SELECT id FROM audience WHERE key IN (SELECT value FROM json_each"
_FOREIGN_ID = "memories:a_foreign_id_is_answered_like_an_unknown_one"
_LIED = unit("promises_stores", "what_a_lying_ranking_names_is_asked_again")

SQLITE = (
    Mutation(
        "SQLite: a memory of another's id is not given",
        _SQL,
        f"SELECT {{memory}} FROM memory\nWHERE memory_id = ?1 AND audience IN\n    ({_KEYS}(?2)))",
        "SELECT {memory} FROM memory\nWHERE memory_id = ?1 AND ?2 IS NOT NULL",
        kit("sqlite", _FOREIGN_ID),
    ),
    Mutation(
        "SQLite: of one id in several scopes the narrowest is deleted",
        "stores/sqlite/memories.py",
        "min(held, key=lambda audience: places[audience])",
        "held[-1]",
        kit("sqlite", "memories:an_id_that_several_scopes_use_means_the_narrowest"),
    ),
    Mutation(
        "SQLite: an expired memory is not given",
        _SQL,
        f"SELECT {{memory}} FROM memory\nWHERE memory_id = ?1 AND audience IN\n    ({_KEYS}(?2)))\n"
        "    AND (expires_at IS NULL OR expires_at > ?3);",
        f"SELECT {{memory}} FROM memory\nWHERE memory_id = ?1 AND audience IN\n    ({_KEYS}(?2)))\n"
        "    AND ?3 IS NOT NULL;",
        kit("sqlite", "memories:an_expired_memory_never_comes_back"),
    ),
    Mutation(
        "SQLite: a listing keeps to the caller's audiences",
        _SQL,
        f"SELECT {{memory}} FROM memory\nWHERE audience IN ({_KEYS}(:keys)))",
        "SELECT {memory} FROM memory\nWHERE :keys IS NOT NULL",
        unit("promises_stores", "a_listing_holds_the_callers_own_memories_alone"),
    ),
    Mutation(
        "SQLite: a listing keeps to the trust asked for",
        _SQL,
        "AND trust >= :trust\nORDER BY updated_at",
        "AND :trust IS NOT NULL\nORDER BY updated_at",
        kit("sqlite", "memories:search_filters_by_scope_type_and_trust"),
    ),
    Mutation(
        "SQLite: who may see is asked again of what the ranking names",
        _SQL,
        f"WHERE seq IN (SELECT value FROM json_each(:seqs))\n    AND audience IN ({_KEYS}(:keys)))",
        "WHERE seq IN (SELECT value FROM json_each(:seqs))\n    AND :keys IS NOT NULL",
        _LIED,
    ),
    Mutation(
        "SQLite: trust is asked again of what the ranking names",
        _SQL,
        "    AND trust >= :trust;",
        "    AND :trust IS NOT NULL;",
        _LIED,
    ),
    Mutation(
        "SQLite: who may see is asked again of the messages that the ranking names",
        _SQL,
        f"    AND m.audience IN ({_KEYS}(:keys)))",
        "    AND :keys IS NOT NULL",
        _LIED,
    ),
    Mutation(
        "SQLite: the instant is asked again of the messages that the ranking names",
        _SQL,
        "AND (:said_until IS NULL OR m.created_at <= :said_until);",
        "AND (:said_until IS NULL OR :said_until IS NOT NULL);",
        _LIED,
    ),
    Mutation(
        "SQLite: a fact is stored once",
        "stores/sqlite/writes.py",
        "twin = twin_of(memory, _same_content(db, audience, memory), now)",
        "twin = None",
        kit("sqlite", "facts:the_same_fact_is_stored_once"),
    ),
    Mutation(
        "SQLite: the file itself refuses a second live fact",
        "stores/sqlite/sql/migrations/0001_initial.sql",
        "CREATE UNIQUE INDEX memory_fact",
        "CREATE INDEX memory_fact",
        unit("promises_stores", "the_file_itself_refuses_a_second_live_fact"),
    ),
    Mutation(
        "SQLite: a conversation is its user's own",
        _SQL,
        "FROM conversation WHERE tenant = ?1 AND user = ?2 AND session = ?3;",
        "FROM conversation WHERE tenant = ?1 AND ?2 IS NOT NULL AND session = ?3;",
        kit("sqlite", "conversations:two_users_share_neither_session_names_nor_message_ids"),
    ),
    Mutation(
        "SQLite: the messages of this window are left out",
        "stores/sqlite/memories.py",
        "skipped = excluded_seqs(db, ask)",
        "skipped = frozenset()",
        kit("sqlite", "recall:messages_of_this_window_are_left_out"),
    ),
    Mutation(
        "SQLite: clearing messages takes their summary",
        _SQL,
        "AND memory_type = 'summary' RETURNING audience, {memory};",
        "AND memory_type = 'none' RETURNING audience, {memory};",
        kit("sqlite", "conversations:clearing_takes_the_summary_and_keeps_the_session"),
    ),
    Mutation(
        "SQLite: working state ends with its time",
        _SQL,
        "SELECT state FROM working WHERE owner = ?1 AND expires_at > ?2;",
        "SELECT state FROM working WHERE owner = ?1 AND ?2 IS NOT NULL;",
        kit("sqlite", "working:state_is_kept_until_its_time_is_over"),
    ),
    Mutation(
        "SQLite: erasing a user erases that user's rows only",
        _SQL,
        "DELETE FROM memory\nWHERE {realm}\nRETURNING",
        "DELETE FROM memory\nWHERE tenant = :tenant\nRETURNING",
        kit("sqlite", "realms:erasing_a_user_leaves_nothing_of_it_and_all_of_the_others"),
    ),
    Mutation(
        "SQLite: a generated title never overrides a hand",
        _SQL,
        "AND titled_by_hand = 0",
        "",
        kit("sqlite", "conversations:creating_again_changes_nothing")
        + unit("promises_stores", "a_generated_title_leaves_a_title_by_hand_alone"),
    ),
)
