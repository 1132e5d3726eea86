"""Many tenants' memories, made inside the database from a pool of texts and vectors."""

from __future__ import annotations

import random
import time

import numpy as np
import psycopg

from muniment.domain.content import content_hash
from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import audience_key, message_audience
from muniment.lexical.indexing import index_text
from muniment.stores.postgres.audiences import digest_of

DIMENSIONS = 384
_POOL = 2_000
_FIRST = 1_000_000  # the first audience's number
_SUBJECTS = ("Ana", "Bo", "the team", "her sister", "the new neighbour", "Doctor Li", "our client")
_VERBS = ("likes", "moved to", "works at", "is allergic to", "booked", "asked about", "plays")
_OBJECTS = (
    "green tea", "Rome", "the harbour office", "peanuts", "a flight in May", "the quarterly report",
    "chess on Sundays", "Lisbon", "the blue bicycle", "penicillin", "a table for four", "piano",
)  # fmt: skip
_DETAILS = ("since last spring", "as of Monday", "before the holidays", "with two friends", "again")

_MEMORIES = """
INSERT INTO memory (tenant_id, audience, changed, memory_id, scope, memory_type, user_id, content,
    metadata, importance, created_at, updated_at, source_message_ids, derived_from, entity_ids,
    digest, trust, terms, marks, length, tokens, vector)
SELECT 'tenant-' || t, %(first)s::bigint + t, n, 'm' || n, 'user', 'fact', 'ana',
    p.content, '{}', 0.5, 1700000000000000 + n * 60000000, 1700000000000000 + n * 60000000,
    '[]', '[]', '[]', p.digest, 1, p.terms, p.marks, p.length, p.tokens, p.vector
FROM generate_series(%(from)s::bigint, %(to)s::bigint) t,
    generate_series(1, %(rows)s::bigint) n
JOIN LATERAL (SELECT abs(hashint8(t * 1000003 + n)::bigint) %% %(pool)s::bigint AS id) pick ON true
JOIN pool p ON p.id = pick.id
"""
_CONVERSATIONS = """
INSERT INTO conversation (tenant_id, audience, id, user_id, session_id, kind, created_at)
SELECT 'tenant-' || t, %(first)s::bigint + t, n, 'ana', 's' || n, 'chat', 1700000000000000
FROM generate_series(%(from)s::bigint, %(to)s::bigint) t,
    generate_series(0, %(rows)s::bigint / 50) n
"""
_MESSAGES = """
INSERT INTO message (tenant_id, audience, seq, changed, conversation, message_id, arrived_at, role,
    content, created_at, partial, terms, marks, length, vector)
SELECT 'tenant-' || t, %(first)s::bigint + t, n, n, n / 50, 'g' || n, 1700000000000000,
    CASE n %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END, p.content,
    1700000000000000 + n * 60000000, 0, p.terms, p.marks, p.length, p.vector
FROM generate_series(%(from)s::bigint, %(to)s::bigint) t,
    generate_series(1, %(rows)s::bigint) n
JOIN LATERAL (SELECT abs(hashint8(t * 3000017 + n)::bigint) %% %(pool)s::bigint AS id) pick ON true
JOIN pool p ON p.id = pick.id
"""


def fill(url: str, tenants: int, memories: int, messages: int) -> float:
    """`tenants` tenants, each with one user's memories and messages; `url` is the owner's.

    Answers the seconds that it took.
    """
    begin = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = muniment, public")
        connection.execute("SET synchronous_commit = off")
        _pool(connection)
        _audiences(connection, _FIRST, tenants, memories, of_messages=False)
        _audiences(connection, _FIRST + tenants, tenants, messages, of_messages=True)
        for start in range(1, tenants + 1, 50):
            part = {"from": start, "to": min(start + 49, tenants), "pool": _POOL}
            memory = {**part, "first": _FIRST, "rows": memories}
            connection.execute(_MEMORIES, memory)
            message = {**part, "first": _FIRST + tenants, "rows": messages}
            connection.execute(_CONVERSATIONS, message)
            connection.execute(_MESSAGES, message)
        connection.execute(
            "INSERT INTO setting (name, value) VALUES ('embedding_width', %s)"
            " ON CONFLICT DO NOTHING",
            (str(DIMENSIONS),),
        )
        connection.execute("VACUUM (ANALYZE) memory, message, conversation, audience")
    return time.perf_counter() - begin


def _audiences(
    connection: psycopg.Connection[object],
    first: int,
    tenants: int,
    rows: int,
    *,
    of_messages: bool,
) -> None:
    made = []
    for number in range(1, tenants + 1) if rows else ():
        owner = MemoryOwner(f"tenant-{number}", user_id="ana")
        own = audience_key(MemoryScope.USER, owner) or ""
        key = message_audience(owner.tenant_id, "ana") if of_messages else own
        made.append((owner.tenant_id, first + number, digest_of(key), key, of_messages, rows))
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO audience (tenant_id, id, digest, key, messages, shared, user_id, version)"
            " VALUES (%s, %s, %s, %s, %s, false, 'ana', %s)",
            made,
        )


def _pool(connection: psycopg.Connection[object]) -> None:
    connection.execute(
        "CREATE TEMP TABLE pool (id bigint PRIMARY KEY, content text, digest text, terms bytea,"
        " marks bigint, length integer, tokens integer, vector halfvec)"
    )
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO pool VALUES (%s, %s, %s, %s, %s, %s, %s, %s::text::halfvec)",
            [_pooled(number) for number in range(_POOL)],
        )


def _pooled(number: int) -> tuple[object, ...]:
    pick = random.Random(number)
    parts = (_SUBJECTS, _VERBS, _OBJECTS, _DETAILS)
    text = f"{' '.join(pick.choice(part) for part in parts)}, note {number}"
    indexed = index_text(text)
    vector = "[" + ",".join(f"{value:.4f}" for value in unit_vector(number)) + "]"
    digest = content_hash(text, MemoryScope.USER)
    tokens = (len(text.encode()) + 2) // 3
    return number, text, digest, indexed.terms, indexed.marks, indexed.length, tokens, vector


def unit_vector(seed: int) -> list[float]:
    """A random direction."""
    values = np.random.default_rng(seed).standard_normal(DIMENSIONS)
    return [float(value) for value in values / np.linalg.norm(values)]


def question(pick: random.Random) -> str:
    """A question over such texts."""
    return f"what does {pick.choice(_SUBJECTS)} {pick.choice(_VERBS)}, {pick.choice(_OBJECTS)}?"
