"""Opaque cursors with a checksum: an altered or foreign one is an error, never "the start".

Plain cursors carry a checksum, which catches damage. Sealed ones hold numbers that are the
store's own (how much has arrived so far), so they are encrypted and authenticated under the
store's secret: a reader can neither learn from them nor make one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import zlib
from typing import Any

_TAG = 16
_BLOCK = 64


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


def seal_cursor(secret: bytes, kind: str, *values: str | int) -> str:
    """A cursor that only the holder of `secret` can read or make.

    The tag, an HMAC of the text, is also the nonce of its key stream (the idea of RFC 5297), so
    that equal positions give equal cursors and no nonce is used for two texts.
    """
    body = json.dumps([kind, *values], ensure_ascii=True, separators=(",", ":")).encode()
    body += b" " * (-len(body) % _BLOCK)  # the length tells nothing either
    tag = hmac.digest(secret, body, "sha256")[:_TAG]
    return base64.urlsafe_b64encode(tag + _masked(secret, tag, body)).decode().rstrip("=")


def open_cursor(secret: bytes, kind: str, cursor: str) -> tuple[Any, ...]:
    """The values of a sealed cursor of `kind`; ValueError for any other text."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ValueError("cursor: unknown or altered") from None
    tag, body = raw[:_TAG], _masked(secret, raw[:_TAG], raw[_TAG:])
    if not hmac.compare_digest(tag, hmac.digest(secret, body, "sha256")[:_TAG]):
        raise ValueError("cursor: unknown or altered")
    values = json.loads(body)
    if values[0] != kind:
        raise ValueError("cursor: unknown or altered")
    return tuple(values[1:])


def _masked(secret: bytes, tag: bytes, text: bytes) -> bytes:
    stream = hashlib.shake_256(secret + tag).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, stream, strict=True))


def encode_conversation_cursor(session_id: str) -> str:
    """A cursor that names a conversation."""
    return encode_cursor("conversation", session_id)


def decode_conversation_cursor(cursor: str) -> str:
    """The conversation that a cursor names; ValueError for an unknown or altered one."""
    values = decode_cursor("conversation", cursor)
    if len(values) != 1 or not isinstance(values[0], str):
        raise ValueError("cursor: unknown or altered")
    return values[0]
