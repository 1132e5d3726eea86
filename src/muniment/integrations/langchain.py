"""LangChain: conversations as a chat message history, and messages both ways.

What LangChain's messages have no place for (time, run id, token count, partial, and the JSON
fields as they were written) travels in `additional_kwargs["muniment"]`, which chat models do
not send to their provider.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import dropwhile
from typing import Any, NoReturn, cast

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationRole,
)
from muniment.domain.identifiers import new_message_id
from muniment.extras import missing_extra
from muniment.integrations.tool_calls import (
    ToolCalls,
    read_json,
    read_tool_calls,
    write_tool_calls,
)
from muniment.ports import ConversationMessageStore

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        ChatMessage,
        FunctionMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )
except ModuleNotFoundError as error:
    raise missing_extra("langchain") from error

_KEPT = "muniment"
_CITATIONS = "citations"
_ROLES: tuple[tuple[type[BaseMessage], ConversationRole], ...] = (
    (HumanMessage, ConversationRole.USER),
    (AIMessage, ConversationRole.ASSISTANT),
    (ToolMessage, ConversationRole.TOOL),
    (FunctionMessage, ConversationRole.TOOL),
    (SystemMessage, ConversationRole.SYSTEM),
)

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


def to_langchain_message(message: ConversationMessage) -> BaseMessage:
    """`message` as LangChain has it; a JSON field that cannot be read is left out of it."""
    common: dict[str, Any] = {
        "content": message.content,
        "id": message.message_id,
        "name": message.name,
        "additional_kwargs": _additional(message),
    }
    match message.role:
        case ConversationRole.USER:
            return HumanMessage(**common)
        case ConversationRole.SYSTEM:
            return SystemMessage(**common)
        case ConversationRole.TOOL:
            return ToolMessage(tool_call_id=message.tool_call_id or "", **common)
        case ConversationRole.ASSISTANT:
            calls = read_tool_calls(message.tool_calls_json)
            return AIMessage(
                tool_calls=list(calls.valid), invalid_tool_calls=list(calls.invalid), **common
            )


def to_langchain_messages(messages: Iterable[ConversationMessage]) -> list[BaseMessage]:
    """`messages` as LangChain has them."""
    return [to_langchain_message(message) for message in messages]


def from_langchain_message(
    message: BaseMessage, *, run_id: str | None = None, clock: Clock = _now
) -> ConversationMessage:
    """`message` as it is stored: its text (blocks that are not text are left out).

    `run_id` and `clock` serve messages that bring no run and no time of their own; one without
    an id gets a new one. ValueError for a kind of message that is none of the four roles.
    """
    kept = _kept(message)
    tool_call_id = getattr(message, "tool_call_id", None) or kept.get("tool_call_id")
    return ConversationMessage(
        message_id=message.id or new_message_id(),
        role=_role(message),
        content=str(message.text),
        created_at=_time(kept.get("created_at")) or clock(),
        token_count=_token_count(message, kept),
        tool_calls_json=_tool_calls_json(message, kept),
        tool_call_id=tool_call_id,
        citations_json=_citations_json(message, kept),
        run_id=kept.get("run_id") or run_id,
        partial=kept.get("partial") is True,
        name=message.name,
    )


def from_langchain_messages(
    messages: Iterable[BaseMessage], *, run_id: str | None = None, clock: Clock = _now
) -> list[ConversationMessage]:
    """`messages` as they are stored; see `from_langchain_message`."""
    return [from_langchain_message(one, run_id=run_id, clock=clock) for one in messages]


def _additional(message: ConversationMessage) -> dict[str, Any]:
    kept = {
        "created_at": message.created_at.isoformat(),
        "token_count": message.token_count,
        "tool_calls_json": message.tool_calls_json,
        "tool_call_id": message.tool_call_id,
        "citations_json": message.citations_json,
        "run_id": message.run_id,
        "partial": message.partial or None,
    }
    additional: dict[str, Any] = {
        _KEPT: {name: value for name, value in kept.items() if value is not None}
    }
    citations = read_json(message.citations_json)
    return additional if citations is None else {**additional, _CITATIONS: citations}


def _kept(message: BaseMessage) -> Mapping[str, Any]:
    kept = message.additional_kwargs.get(_KEPT)
    return kept if isinstance(kept, Mapping) else {}


def _role(message: BaseMessage) -> ConversationRole:
    if isinstance(message, ChatMessage):
        return ConversationRole(message.role)
    for kind, role in _ROLES:
        if isinstance(message, kind):
            return role
    raise ValueError(f"a {type(message).__name__} is not a message of a conversation")


def _time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None


def _token_count(message: BaseMessage, kept: Mapping[str, Any]) -> int | None:
    if "token_count" in kept:
        return cast(int, kept["token_count"])
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return usage["output_tokens"] if usage else None


def _tool_calls_json(message: BaseMessage, kept: Mapping[str, Any]) -> str | None:
    """The text as it was written while it still says the same, so that storing a message again
    is no change."""
    if not isinstance(message, AIMessage):
        return kept.get("tool_calls_json")
    calls = ToolCalls(
        tuple(dict(call) for call in message.tool_calls),
        tuple(dict(call) for call in message.invalid_tool_calls),
    )
    written: str | None = kept.get("tool_calls_json")
    said = write_tool_calls(calls)
    # Compared as text, since not-a-number equals nothing as a value.
    return written if write_tool_calls(read_tool_calls(written)) == said else said


def _citations_json(message: BaseMessage, kept: Mapping[str, Any]) -> str | None:
    citations = message.additional_kwargs.get(_CITATIONS)
    written: str | None = kept.get("citations_json")
    if citations is None or read_json(written) == citations:
        return written
    return json.dumps(citations, ensure_ascii=False, default=str)


class MunimentChatMessageHistory(BaseChatMessageHistory):
    """One conversation of `store`, for `RunnableWithMessageHistory` and agents; async only.

    The identity is built from the authenticated request, never from what a user or a model
    supplies. The newest `recent_limit` messages are read, opening on no tool result cut from
    its call. `run_id` marks what is added; `clock` dates it (aware times).
    """

    def __init__(
        self,
        store: ConversationMessageStore,
        identity: ConversationIdentity,
        *,
        recent_limit: int = 50,
        run_id: str | None = None,
        clock: Clock = _now,
    ) -> None:
        self._store = store
        self._identity = identity
        self._recent_limit = recent_limit
        self._run_id = run_id
        self._clock = clock

    async def aget_messages(self) -> list[BaseMessage]:
        """The newest messages, oldest first."""
        found = await self._store.recent_messages(self._identity, limit=self._recent_limit)
        return to_langchain_messages(dropwhile(_is_tool_result, found))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append `messages`; one that is stored already is ignored."""
        stored = from_langchain_messages(messages, run_id=self._run_id, clock=self._clock)
        await self._store.append_messages(self._identity, stored)

    async def aclear(self) -> None:
        """Remove every message of the conversation."""
        await self._store.clear_messages(self._identity)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Not offered: NotImplementedError."""
        _refuse("await history.aget_messages()")

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:  # noqa: ARG002 - LangChain's
        """Not offered: NotImplementedError."""
        _refuse("await history.aadd_messages(messages)")

    def clear(self) -> None:
        """Not offered: NotImplementedError."""
        _refuse("await history.aclear()")


def _is_tool_result(message: ConversationMessage) -> bool:
    return message.role is ConversationRole.TOOL


def _refuse(instead: str) -> NoReturn:
    raise NotImplementedError(f"this history is asynchronous: use `{instead}`")
