"""Muniment: memory whose every entry carries whose it is, where it came from and when it held.

Names are loaded on first use, so that importing the package costs little and pulls in no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES: dict[str, tuple[str, ...]] = {
    "muniment.agent_tools": ("AgentMemoryTools",),
    "muniment.context.builder": ("MemoryContextBuilder",),
    "muniment.context.policy": ("DEFAULT_RECALL_SCOPES", "MemoryPolicy", "MemoryRetention"),
    "muniment.context.ranking": (
        "NO_AFFINITY",
        "NO_ANCHOR",
        "EntityAnchor",
        "ScoredMemory",
        "ScoringContext",
        "TypeAffinity",
        "deduplicate",
        "entity_weight",
        "fused_score",
        "rank",
        "recency_weight",
        "score_memory",
        "select",
        "type_weight",
    ),
    "muniment.context.recall": ("MemoryRecall", "RecalledMemory"),
    "muniment.context.result": ("CondenseResult", "MemoryContext", "recalled_entity_ids"),
    "muniment.context.summary": ("summary_memory_id",),
    "muniment.context.tokens": ("approximate_tokens",),
    "muniment.context.window": ("trim_window",),
    "muniment.domain.content": ("content_hash", "normalize_content"),
    "muniment.domain.conversation": (
        "MAX_CONVERSATION_TITLE_LENGTH",
        "ConversationIdentity",
        "ConversationMessage",
        "ConversationPage",
        "ConversationRole",
        "ConversationSummaryRow",
        "ConversationTurn",
        "complete_message_pairs",
        "conversation_identity",
        "normalize_conversation_title",
        "turns_from_messages",
    ),
    "muniment.domain.cursor": ("decode_conversation_cursor", "encode_conversation_cursor"),
    "muniment.domain.identifiers": ("new_memory_id", "new_message_id", "new_session_id"),
    "muniment.domain.memory": ("Memory", "MemoryType"),
    "muniment.domain.owner": ("MemoryOwner", "scope_query_owner"),
    "muniment.domain.query": ("MemoryMatch", "MemoryQuery", "ResolvedEntity"),
    "muniment.domain.realm": ("Scope", "realm_of", "require_scope"),
    "muniment.domain.scope": ("MemoryScope", "scope_owner_fields"),
    "muniment.domain.trust": ("Trust",),
    "muniment.domain.visibility": ("visible_to",),
    "muniment.errors": (
        "AuditError",
        "FileInTheWayError",
        "InvalidEntryError",
        "MemoryConfigurationError",
        "MemoryScopeError",
        "MemoryStoreError",
        "MunimentError",
        "NotFoundError",
        "QuotaExceededError",
        "ScopeError",
    ),
    "muniment.extraction.extractor": ("MemoryExtractor",),
    "muniment.governance.audit": ("GENESIS", "AuditLog", "VerifyResult", "verify_audit_log"),
    "muniment.governance.usage": ("Usage",),
    "muniment.manager": ("MemoryManager", "MemoryManagerConfig", "MemorySnapshot"),
    "muniment.ports": (
        "Candidate",
        "ConversationDirectory",
        "ConversationMemory",
        "ConversationMessageStore",
        "ConversationSessions",
        "DocumentRetriever",
        "MemoryCandidates",
        "MemoryEmbedder",
        "MemoryEntityResolver",
        "MemoryIndex",
        "MemoryModel",
        "MemoryRepository",
        "WorkingMemoryStore",
    ),
    "muniment.replies": ("CondenseRequest", "ExtractedFact", "ProposedFacts"),
    "muniment.stores.entries": ("MemoryEntry", "SearchHit"),
    "muniment.stores.erasure": ("ErasureResult",),
    "muniment.stores.in_memory": ("InMemoryStore",),
    "muniment.stores.postgres": ("PostgresStore",),
    "muniment.stores.sqlite": ("AsyncSQLiteStore", "SQLiteStore", "ShardedStore"),
    "muniment.stores.transfer": ("ImportResult",),
    "muniment.stores.valkey": ("ValkeyWorkingMemoryStore",),
    "muniment.tiers.long_term": ("LongTermMemory",),
    "muniment.tiers.short_term": ("ShortTermMemory",),
    "muniment.tiers.working": ("InMemoryWorkingMemoryStore", "WorkingMemory"),
    "muniment.wiring": ("OpenMemory", "open_memory", "open_memory_blocking"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__version__ = "0.1.0"
# A star import must not fail for want of an extra: these are reached by name alone.
_NEED_AN_EXTRA = frozenset({"PostgresStore", "ValkeyWorkingMemoryStore"})
__all__ = sorted(_HOME.keys() - _NEED_AN_EXTRA)


def __getattr__(name: str) -> Any:
    if name == "MemoryError":  # reachable by name, and never part of a star import
        return import_module("muniment.errors").MemoryError
    if name not in _HOME:
        raise AttributeError(f"module 'muniment' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
