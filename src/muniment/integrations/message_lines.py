"""Messages as JSON Lines: one object a line, in the order in which they were said.

`role`, `content` and `created_at` are needed; `session_id` too, where the caller names no session.
`message_id`, `name`, `title`, `tool_calls_json`, `tool_call_id` and `run_id` may be given. Whose
messages these are is never read from the file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, BinaryIO

from muniment.domain import checks
from muniment.domain.conversation import ConversationMessage, ConversationRole
from muniment.domain.owner import MemoryOwner
from muniment.errors import InvalidEntryError
from muniment.integrations.exported_chats import (
    ExportedChat,
    instant_of,
    mapping_of,
    shortened_title,
    text_of,
)

MAX_LINES = 5_000_000
MAX_LINE_BYTES = 8 << 20
_TEXTS = ("name", "tool_calls_json", "tool_call_id", "run_id")
_PART = 64
_ROLES = ", ".join(ConversationRole)
_OWNER_FIELDS = frozenset(MemoryOwner.__dataclass_fields__)
_FIELDS = {"session_id", "message_id", "role", "content", "created_at", "title", *_TEXTS}


def chats_of(stream: BinaryIO, *, session: str | None = None) -> Iterator[ExportedChat]:
    """Runs of lines of one session each; `session` is that of lines that name none.

    Without an id, a message's id derives from its session, its place there and its words, so
    that reading the same file again gives the same ids. InvalidEntryError names the line.
    """
    said: Counter[str] = Counter()
    records = (_record(line, f"line {number}", session) for number, line in _lines(stream))
    for session_id, run in groupby(records, key=itemgetter(0)):
        while part := list(islice(run, _PART)):
            titles = [shortened_title(fields.get("title")) for _, fields in part]
            messages = []
            for _, fields in part:
                said[session_id] += 1
                messages.append(_message(session_id, said[session_id], fields))
            title = next(filter(None, titles), None)
            yield ExportedChat(session_id, title, tuple(messages))


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number in range(1, MAX_LINES + 1):
        line = stream.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise InvalidEntryError(f"line {number}: must have at most {MAX_LINE_BYTES} bytes")
        if line.strip():
            yield number, line
    if stream.read(1):
        raise InvalidEntryError(f"file: must have at most {MAX_LINES} lines")


def _record(line: bytes, name: str, session: str | None) -> tuple[str, dict[str, Any]]:
    """The session of a line, and its fields with the line's name among them."""
    fields = dict(mapping_of(_parsed(line, name), name))
    unknown = fields.keys() - _FIELDS
    if unknown & _OWNER_FIELDS:
        raise InvalidEntryError(f"{name}: whose messages these are is not read from the file")
    if unknown:
        known = ", ".join(sorted(_FIELDS))
        raise InvalidEntryError(f"{name}: has an unknown field; there are {known}")
    given = fields.get("session_id", session)
    if given is None:
        raise InvalidEntryError(f"{name}: session_id: is missing, and no session is named for all")
    try:
        session_id = checks.identifier("session_id", given)
    except ValueError as error:
        raise InvalidEntryError(f"{name}: {error}") from None
    return session_id, {**fields, "line": name}


def _parsed(line: bytes, name: str) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except RecursionError:
        raise InvalidEntryError(f"{name}: is nested too deep") from None
    except ValueError:
        raise InvalidEntryError(f"{name}: is not JSON in UTF-8") from None


def _message(session_id: str, place: int, fields: Mapping[str, Any]) -> ConversationMessage:
    name = fields["line"]
    content = fields.get("content")
    if not isinstance(content, str):
        raise InvalidEntryError(f"{name}: content: must be text")
    role = text_of(fields.get("role"), f"{name}: role")
    texts = {key: fields[key] for key in _TEXTS if fields.get(key) is not None}
    if any(not isinstance(text, str) for text in texts.values()):
        raise InvalidEntryError(f"{name}: {', '.join(_TEXTS)}: must be text")
    message_id = fields.get("message_id")
    if message_id is None:
        message_id = _derived_id(session_id, place, role, content)
    if fields.get("created_at") is None:
        raise InvalidEntryError(f"{name}: created_at: is missing")
    at = instant_of(fields["created_at"], f"{name}: created_at")
    try:
        return ConversationMessage(message_id, ConversationRole(role), content, at, **texts)
    except ValueError as error:
        problem = error if role in set(ConversationRole) else f"role: must be one of {_ROLES}"
        raise InvalidEntryError(f"{name}: {problem}") from None


def _derived_id(*parts: object) -> str:
    whole = json.dumps(parts).encode()
    return f"line_{hashlib.sha256(whole).hexdigest()[:32]}"
