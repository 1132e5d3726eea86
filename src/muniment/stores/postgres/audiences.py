"""Audiences as rows, and what a caller sees as parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.domain.owner import MemoryOwner
from muniment.domain.scope import MemoryScope
from muniment.domain.visibility import audience_key, is_message_audience
from muniment.stores.postgres.session import Row, Session

# GLOBAL's audience is the same for every owner.
SHARED = audience_key(MemoryScope.GLOBAL, MemoryOwner("any")) or ""
_OF_A_USER = frozenset({"messages", MemoryScope.USER, MemoryScope.SESSION, MemoryScope.RUN})


@dataclass(frozen=True, slots=True)
class Audience:
    """An audience's row; `place` is the tenant that it belongs to."""

    id: int
    key: str
    version: int
    removals: int
    place: str


def digest_of(key: str) -> bytes:
    """What an audience or a run is found by: a key may be longer than an index takes."""
    return hashlib.sha256(key.encode()).digest()


def digest_of_parts(*parts: str) -> bytes:
    """What something with several names is found by; names never run together."""
    return digest_of(json.dumps(parts))


def user_of(key: str) -> str | None:
    """Whose an audience is, None for one that several users have."""
    kind, *parts = json.loads(key)
    user: str | None = parts[1] if kind in _OF_A_USER else None
    return user


def seen(keys: Sequence[str]) -> dict[str, Any]:
    """The parameters of "what a caller with these audiences sees"."""
    return {"digests": [digest_of(key) for key in keys], "everyone": SHARED in keys}


def in_order(rows: Iterable[Row], keys: Sequence[str]) -> list[Audience]:
    """The audiences of these rows, in the order of `keys`."""
    place = {key: index for index, key in enumerate(keys)}
    found = [Audience(*row) for row in rows]
    return sorted(found, key=lambda audience: (place[audience.key], audience.id))


async def touch(session: Session, key: str, step: int = 1) -> tuple[int, int]:
    """The id of the tenant's own audience, and its version once `step` higher.

    The row stays locked until the transaction ends, so changes of one audience follow each other.
    """
    values = {
        "digest": digest_of(key),
        "key": key,
        "messages": is_message_audience(key),
        "shared": key == SHARED,
        "user": user_of(key),
        "step": step,
    }
    row = await session.one("touch_audience", values)
    assert row is not None  # noqa: S101 - an upsert answers its row
    return int(row[0]), int(row[1])
