"""Rules that stores share, and the store in memory."""

from __future__ import annotations

from benchmarks.promises.mutation import Mutation, kit, unit

STORES = (
    Mutation(
        "an id in use for another message is refused",
        "stores/recalled.py",
        'for name in ("message_id", "role", "content", "tool_calls_json", "tool_call_id")',
        'for name in ("message_id", "role", "tool_calls_json", "tool_call_id")',
        kit(
            "in_memory",
            "conversations:other_content_under_a_used_id_is_refused_and_nothing_is_stored",
        ),
    ),
    Mutation(
        "system messages are never recalled",
        "stores/recalled.py",
        "return message.role is not ConversationRole.SYSTEM and bool(message.content.strip())",
        "return bool(message.content.strip())",
        kit("sqlite", "recall:system_and_blank_messages_are_never_recalled"),
    ),
    Mutation(
        "a recalled message is untrusted whoever spoke",
        "stores/recalled.py",
        "        Trust.UNTRUSTED,\n",
        "        Trust.OWNER,\n",
        unit("promises_stores", "a_recalled_message_is_untrusted_whoever_spoke"),
    ),
    Mutation(
        "what replaced a fact and is deleted reopens it",
        "stores/supersession.py",
        "return replace(prior, invalid_at=None, superseded_by=None)",
        "return prior",
        kit("in_memory", "facts:deleting_a_replacement_makes_the_old_fact_current_again")
        + kit("sqlite", "facts:deleting_a_replacement_makes_the_old_fact_current_again"),
    ),
    Mutation(
        "an expired row is no live fact",
        "stores/supersession.py",
        "return row.superseded_by is None and not ended and not row.is_expired_at(now)",
        "return row.superseded_by is None and not ended",
        kit("in_memory", "facts:an_expired_or_replaced_fact_frees_its_place"),
    ),
    Mutation(
        "text over the limit is refused",
        "stores/limits.py",
        "if len(memory.content.encode()) > max_text_bytes:",
        "if False:",
        kit("sqlite", "memories:text_and_metadata_over_the_limit_are_refused"),
    ),
    Mutation(
        "an owner that cannot address the scope stores nothing",
        "stores/limits.py",
        "    if key is None:",
        "    if False:",
        kit("in_memory", "memories:an_owner_that_cannot_address_the_scope_is_refused"),
    ),
    Mutation(
        "a search keeps to the scopes asked for",
        "stores/asks.py",
        "keys=audiences(query.owner, query.scopes),",
        "keys=audiences(query.owner),",
        kit("sqlite", "memories:search_filters_by_scope_type_and_trust"),
    ),
    Mutation(
        "the messages of this window are left out of what is ranked",
        "stores/asks.py",
        "excluded=skipped,",
        "",
        kit("sqlite", "recall:messages_of_this_window_are_left_out"),
    ),
    Mutation(
        "of one id in several scopes the narrowest is given",
        "stores/memory_face.py",
        "return min(found, key=lambda memory: _nearness(memory, caller), default=None)",
        "return found[-1] if found else None",
        kit("sqlite", "memories:an_id_that_several_scopes_use_means_the_narrowest")
        + kit("in_memory", "memories:an_id_that_several_scopes_use_means_the_narrowest"),
    ),
    Mutation(
        "in memory: rows are read by audience",
        "stores/in_memory/tables.py",
        "return [row for row in self.memories.values() if row.audience in allowed]",
        "return [row for row in self.memories.values() if allowed]",
        unit("promises_stores", "a_listing_holds_the_callers_own_memories_alone"),
    ),
    Mutation(
        "in memory: an expired memory is not given",
        "stores/in_memory/memories.py",
        "return [row.memory for row in rows if not row.memory.is_expired_at(ask.now)]",
        "return [row.memory for row in rows]",
        kit("in_memory", "memories:an_expired_memory_never_comes_back"),
    ),
    Mutation(
        "in memory: a listing keeps to validity",
        "stores/in_memory/memories.py",
        "valid = ask.include_invalid or memory.is_valid_at(ask.as_of or ask.now)",
        "valid = True",
        kit("in_memory", "memories:validity_is_a_half_open_interval"),
    ),
    Mutation(
        "in memory: a listing keeps to the trust asked for",
        "stores/in_memory/memories.py",
        "trusted = memory.trust.rank >= ask.trust",
        "trusted = True",
        kit("in_memory", "memories:search_filters_by_scope_type_and_trust"),
    ),
    Mutation(
        "in memory: a fact is stored once",
        "stores/in_memory/memories.py",
        "if row.digest == digest and is_twin(row.memory, fact, change.now):",
        "if False:",
        kit("in_memory", "facts:the_same_fact_is_stored_once"),
    ),
    Mutation(
        "in memory: the messages of this window are left out",
        "stores/in_memory/memories.py",
        "skipped=self._excluded(ask),",
        "skipped=(),",
        kit("in_memory", "recall:messages_of_this_window_are_left_out"),
    ),
    Mutation(
        "in memory: clearing messages takes their summary",
        "stores/in_memory/conversations.py",
        "if summary and row.memory.scope is MemoryScope.SESSION:",
        "if summary and row.memory.scope is MemoryScope.USER:",
        kit("in_memory", "conversations:clearing_takes_the_summary_and_keeps_the_session"),
    ),
    Mutation(
        "in memory: conversations are listed for their user only",
        "stores/in_memory/conversations.py",
        "if key[:2] == mine",
        "if key[0] == mine[0]",
        unit("promises_stores", "a_list_of_conversations_holds_the_users_own_alone"),
    ),
    Mutation(
        "in memory: working state ends with its time",
        "stores/in_memory/working.py",
        "if row is None or row.expires_at <= self._tables.clock():",
        "if row is None:",
        kit("in_memory", "working:state_is_kept_until_its_time_is_over"),
    ),
    Mutation(
        "in memory: working state is stored as a copy",
        "stores/in_memory/working.py",
        "key, frozen = working_key(owner), checked_state(state)",
        "key, frozen = working_key(owner), state",
        kit("in_memory", "working:states_go_in_and_out_as_copies"),
    ),
)
