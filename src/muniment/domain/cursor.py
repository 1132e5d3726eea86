"""Opaque cursors with a checksum: an altered or foreign one is an error, never "the start".

The checksum catches damage, not forgery: a cursor only names a position, and every page is
read under the caller's own identity.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any


def encode_cursor(kind: str, *values: str | int | float) -> str:
    """An opaque, URL-safe cursor of one kind."""
    body = json.dumps([kind, *values], ensure_ascii=True, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).decode().rstrip("=")


def decode_cursor(kind: str, cursor: str) -> tuple[Any, ...]:
    """The values of a cursor of `kind`; ValueError where it is malformed or of another kind."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        checksum, body = raw[:4], raw[4:]
        values = json.loads(body) if zlib.crc32(body).to_bytes(4, "big") == checksum else None
    except (binascii.Error, ValueError, TypeError, AttributeError, UnicodeError, RecursionError):
        values = None
    if not isinstance(values, list) or not values or values[0] != kind:
        raise ValueError("cursor: unknown or altered")
    if encode_cursor(*values) != cursor:
        raise ValueError("cursor: unknown or altered")
    return tuple(values[1:])


def encode_conversation_cursor(session_id: str) -> str:
    """A cursor that names a conversation."""
    return encode_cursor("conversation", session_id)


def decode_conversation_cursor(cursor: str) -> str:
    """The conversation that a cursor names; ValueError for an unknown or altered one."""
    values = decode_cursor("conversation", cursor)
    if len(values) != 1 or not isinstance(values[0], str):
        raise ValueError("cursor: unknown or altered")
    return values[0]
