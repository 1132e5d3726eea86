"""Conversations in an export: a line for each session, then one for each of its messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from muniment.domain import checks
from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    normalize_conversation_title,
)
from muniment.domain.realm import RealmKey
from muniment.governance.audit_record import realm_text
from muniment.stores.entries import iso
from muniment.stores.recalled import is_searchable, spoken

SESSION, MESSAGE = "session", "message"
LONGEST_MESSAGE_LINE = (6 << 20) + 65_536  # 1 MiB of text, every character escaped

_SESSION_FIELDS = frozenset({"scope", "kind", "title"})
_IDS = {"message_id": "id"}
_NAMES = {field.name: _IDS.get(field.name, field.name) for field in fields(ConversationMessage)}


@dataclass(frozen=True, slots=True)
class Talk:
    """A session of a file; `line` is where it stands."""

    line: int
    identity: ConversationIdentity
    kind: str
    title: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the session before it in the file."""

    line: int
    identity: ConversationIdentity
    message: ConversationMessage


def exported_session(
    tenant: str, user: str, session: str, *, kind: str, title: str | None
) -> dict[str, Any]:
    """A session as plain JSON values."""
    scope = realm_text(RealmKey(tenant, user, None, session))
    return {SESSION: {"scope": scope, "kind": kind, "title": title}}


def exported_message(message: ConversationMessage) -> dict[str, Any]:
    """A message as plain JSON values; what it does not have is left out."""
    held = {_NAMES[name]: getattr(message, name) for name in _NAMES}
    held["created_at"] = iso(message.created_at)
    return {
        MESSAGE: {
            name: value for name, value in held.items() if value is not None and value is not False
        }
    }


def read_session(line: int, given: object, realm: RealmKey) -> Talk:
    """The session of a line whose scope is `realm`; ValueError for what does not fit."""
    if not isinstance(given, dict) or not given.keys() <= _SESSION_FIELDS:
        raise ValueError("session: must be an object of known fields")
    if realm.subject is None or realm.session is None or realm.agent is not None:
        raise ValueError("session: its scope must name a subject and a session, and no agent")
    identity = ConversationIdentity(realm.tenant, realm.subject, realm.session, realm.subject)
    title = given.get("title")
    if title is not None and not isinstance(title, str):
        raise ValueError("title: must be text")
    kind = checks.identifier("kind", given.get("kind", "chat"), maximum=32)
    return Talk(line, identity, kind, normalize_conversation_title(title))


def read_message(line: int, given: object, talk: Talk | None) -> Said:
    """The message of a line; ValueError for what does not fit."""
    names = {short: name for name, short in _NAMES.items()}
    if not isinstance(given, dict) or not given.keys() <= names.keys():
        raise ValueError("message: must be an object of known fields")
    if talk is None:
        raise ValueError("message: must follow its session")
    values = {names[short]: value for short, value in given.items()}
    values["created_at"] = _instant(values.get("created_at"))
    if not {"message_id", "role", "content"} <= values.keys():
        raise ValueError("message: must have id, role, content and created_at")
    return Said(line, talk.identity, ConversationMessage(**values))


def talk_row(one: Talk | Said, fixed: dict[str, Any]) -> dict[str, Any]:
    """A session or a message as it is staged; `content` is what is embedded of it."""
    text = ""
    if isinstance(one, Talk):
        record: dict[str, Any] = {SESSION: {"kind": one.kind, "title": one.title}}
    else:
        record = exported_message(one.message)
        if is_searchable(one.message):
            text = spoken(one.message.content, one.message.name)
    return {
        **fixed,
        "line": one.line,
        "tenant": one.identity.tenant_id,
        "user": one.identity.user_id,
        "session": one.identity.session_id,
        "record": json.dumps(record, ensure_ascii=False),
        "content": text,
    }


def read_talk(line: int, place: tuple[str, str, str], record: str) -> Talk | Said:
    """What `talk_row` staged, of a tenant, user and session."""
    tenant, user, session = place
    identity, held = ConversationIdentity(tenant, user, session, user), json.loads(record)
    if SESSION in held:
        return Talk(line, identity, **held[SESSION])
    return read_message(line, held[MESSAGE], Talk(line, identity, "", None))


def _instant(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    return checks.instant("created_at", moment)
