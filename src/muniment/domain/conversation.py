"""Conversations: who speaks with whom, messages, turns and pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from muniment.domain import checks
from muniment.domain.owner import MemoryOwner, owner_user
from muniment.errors import MemoryScopeError

MAX_CONVERSATION_TITLE_LENGTH = 200
MAX_MESSAGE_BYTES = 1 << 20


class ConversationRole(StrEnum):
    """Who a message comes from."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class ConversationIdentity:
    """Whose conversation: tenant, session and user are load-bearing; principal is provenance."""

    tenant_id: str
    principal_id: str | None = field(compare=False)
    session_id: str = field()
    user_id: str = field()

    def __post_init__(self) -> None:
        for name in ("tenant_id", "session_id", "user_id"):
            object.__setattr__(self, name, checks.identifier(name, getattr(self, name)))
        principal = checks.optional_identifier("principal_id", self.principal_id)
        object.__setattr__(self, "principal_id", principal)


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """One message. `content` may be blank where there are tool calls; at most 1 MiB.

    `partial` marks what an interrupted stream had delivered; `name` is who speaks where that
    matters. JSON fields are kept as text; whoever reads one must be ready for rubbish.
    """

    message_id: str
    role: ConversationRole
    content: str
    created_at: datetime
    token_count: int | None = None
    tool_calls_json: str | None = None
    tool_call_id: str | None = None
    citations_json: str | None = None
    run_id: str | None = None
    partial: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "message_id", checks.identifier("message_id", self.message_id))
        try:
            put(self, "role", ConversationRole(self.role))
        except ValueError:
            raise ValueError("role: must be one of user, assistant, tool, system") from None
        checks.of_type("content", self.content, str)
        if not isinstance(self.partial, bool):
            raise ValueError("partial: must be true or false")
        put(self, "created_at", checks.instant("created_at", self.created_at))
        if self.token_count is not None:
            checks.whole("token_count", self.token_count, low=0, high=2**31)
        for name in ("content", "tool_calls_json", "citations_json"):
            value = getattr(self, name)
            if value is not None:
                text = checks.encodable(name, checks.of_type(name, value, str))
                if len(text) > MAX_MESSAGE_BYTES:
                    raise ValueError(f"{name}: must have at most {MAX_MESSAGE_BYTES} bytes")
        if len(self.content.encode()) > MAX_MESSAGE_BYTES:
            raise ValueError(f"content: must have at most {MAX_MESSAGE_BYTES} bytes")
        for name in ("tool_call_id", "run_id", "name"):
            put(self, name, checks.optional_identifier(name, getattr(self, name)))


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One exchange: derived from messages, never stored beside them."""

    user_content: str
    assistant_content: str


@dataclass(frozen=True, slots=True)
class ConversationSummaryRow:
    """One line of a list of conversations; `updated_at` is its last activity."""

    session_id: str
    kind: str
    title: str | None
    created_at: datetime
    updated_at: datetime
    message_count: int


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """A page of conversations, newest activity first; `next_cursor` is None at the end."""

    conversations: tuple[ConversationSummaryRow, ...]
    next_cursor: str | None


def is_complete_reply(message: ConversationMessage) -> bool:
    """An assistant message that is not partial, not blank, and carries no tool calls."""
    spoken = message.role is ConversationRole.ASSISTANT and bool(message.content.strip())
    return spoken and not message.partial and not message.tool_calls_json


def complete_message_pairs(
    messages: Iterable[ConversationMessage], *, limit: int | None = 3
) -> tuple[tuple[ConversationMessage, ConversationMessage], ...]:
    """The newest `limit` (user, complete reply) pairs, oldest first; None for all.

    A later user message displaces an unanswered one; blank or partial ones do not count.
    """
    if limit is not None and limit < 1:
        raise ValueError("limit: must be at least 1")
    pairs: list[tuple[ConversationMessage, ConversationMessage]] = []
    asked: ConversationMessage | None = None
    for message in messages:
        if message.role is ConversationRole.USER and message.content.strip():
            asked = asked if message.partial else message
        elif asked is not None and is_complete_reply(message):
            pairs.append((asked, message))
            asked = None
    return tuple(pairs if limit is None else pairs[-limit:])


def turns_from_messages(messages: Sequence[ConversationMessage]) -> tuple[ConversationTurn, ...]:
    """Every completed exchange of `messages`, oldest first."""
    pairs = complete_message_pairs(messages, limit=None)
    return tuple(ConversationTurn(user.content, reply.content) for user, reply in pairs)


def normalize_conversation_title(title: str | None) -> str | None:
    """Trimmed, blank as None; over 200 characters, NUL or lone surrogates are refused."""
    if title is None:
        return None
    text = checks.encodable("title", title).strip()
    if len(text) > MAX_CONVERSATION_TITLE_LENGTH:
        raise ValueError(f"title: must have at most {MAX_CONVERSATION_TITLE_LENGTH} characters")
    return text or None


def conversation_identity(
    owner: MemoryOwner, *, subject: str = "a conversation"
) -> ConversationIdentity:
    """The conversation of `owner`; MemoryScopeError without principal and session, ValueError for
    what is no owner.

    `subject` names what needs it, for the error's text.
    """
    checks.of_type("owner", owner, MemoryOwner)
    if owner.principal_id is None or owner.session_id is None:
        raise MemoryScopeError(f"{subject} needs an owner with principal_id and session_id")
    user = owner_user(owner) or owner.principal_id
    return ConversationIdentity(owner.tenant_id, owner.principal_id, owner.session_id, user)
