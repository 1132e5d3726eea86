"""Telling an answer again that was given before."""

from __future__ import annotations

import json
from typing import Any

from muniment.domain.conversation import ConversationMessage
from muniment.server.completions.exchange import Kept
from muniment.server.completions.opening import Repeated
from muniment.server.problems import not_found
from muniment.server.services import Services

_PAGE = 200
_SHAPE = ("id", "created", "model")


async def told_again(services: Services, repeated: Repeated) -> dict[str, Any]:
    """The first answer in OpenAI's shape; Problem 404 where it was deleted."""
    message = await _answer(services, repeated)
    envelope = json.loads(repeated.kept.envelope or "{}")
    said: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    if message.tool_calls_json:
        said["tool_calls"] = json.loads(message.tool_calls_json)
    kept = Kept(
        repeated.identity.session_id,
        await services.memory.conversations.get_title(repeated.identity),
        True,
        json.loads(message.citations_json or "[]"),
        message.run_id,
    )
    finish_reason = envelope.pop("finish_reason", "stop")
    choice = {"index": 0, "message": said, "finish_reason": finish_reason}
    return {**envelope, "object": "chat.completion", "choices": [choice], **kept.fields()}


def as_chunks(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """A whole reply as the two chunks of a stream."""
    choice = reply["choices"][0]
    delta = {**choice["message"]}
    if "tool_calls" in delta:
        delta["tool_calls"] = [
            {"index": index, **call} for index, call in enumerate(delta["tool_calls"])
        ]
    shape = {name: value for name, value in reply.items() if name in _SHAPE}
    shape["object"] = "chat.completion.chunk"
    first = {**shape, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]
    fields = ("session_id", "title", "memory_persisted", "citations", "run_id")
    return [first, {**shape, "choices": end, **{name: reply[name] for name in fields}}]


async def _answer(services: Services, repeated: Repeated) -> ConversationMessage:
    """The stored answer: it comes after its question."""
    after: str = repeated.kept.question_id
    while True:
        try:
            page = await services.memory.conversations.messages_after(
                repeated.identity, after_message_id=after, limit=_PAGE
            )
        except ValueError:
            raise not_found() from None
        for message in page:
            if message.message_id == repeated.kept.answer_id:
                return message
        if len(page) < _PAGE:
            raise not_found()
        after = page[-1].message_id
