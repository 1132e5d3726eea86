"""`/v1/memory/search`, `/context` and `/extract`: what a turn gets from memory and gives it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from muniment.context.recall import POLICY_BUDGET
from muniment.context.tokens import approximate_tokens
from muniment.domain.conversation import ConversationMessage
from muniment.domain.identifiers import new_message_id
from muniment.domain.memory import MemoryType
from muniment.domain.trust import Trust
from muniment.server.bodies import StrictRoute
from muniment.server.completions.request import chosen_session
from muniment.server.identity import Reader
from muniment.server.problems import Problem
from muniment.server.routes.documented import ITEM, problems
from muniment.server.routes.memory_rows import Explained, MemoryRow, explained, memory_row
from muniment.server.services import Serving
from muniment.server.values import Identifier, Instant, Text

router = APIRouter(route_class=StrictRoute, prefix="/v1/memory", tags=["memory"])

_MOST_MESSAGES = 200
_Strict = ConfigDict(extra="forbid")
_Anchors = Annotated[list[Identifier], Field(max_length=100)]


class SearchRequest(BaseModel):
    """A recall. `max_tokens` null drops the block budget; absent, the policy's holds."""

    model_config = _Strict
    query: Text
    project_id: Identifier | None = None
    session_id: Identifier | None = None
    explain: bool = False
    as_of: Instant | None = None
    min_trust: Trust | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    top_k: Annotated[int, Field(ge=0, le=1000)] | None = None
    wanted_types: Annotated[list[MemoryType], Field(max_length=8)] = Field(default_factory=list)
    anchor_entity_ids: _Anchors = Field(default_factory=list)


class Found(BaseModel):
    """What was recalled, best first."""

    memories: list[Explained]


class ContextRequest(BaseModel):
    """The question that a turn opens with; it must not be stored yet."""

    model_config = _Strict
    question: Text
    session_id: Identifier
    project_id: Identifier | None = None
    anchor_entity_ids: _Anchors = Field(default_factory=list)


class WindowMessage(BaseModel):
    """A message of the window."""

    message_id: str
    role: str
    content: str
    created_at: datetime


class Context(BaseModel):
    """What the turn gets: the window, the summary of what is older, and the recalled memories;
    `block` and `summary_block` are their text for a prompt."""

    messages: list[WindowMessage]
    summary: str | None
    recalled: list[MemoryRow]
    standalone_query: str
    rewritten: bool
    summary_written: bool
    wanted_types: list[str]
    block: str
    summary_block: str


class SpokenMessage(BaseModel):
    """One message of an exchange."""

    model_config = _Strict
    role: Literal["user", "assistant", "tool", "system"]
    content: Text
    message_id: Identifier | None = None
    created_at: Instant | None = None
    name: Identifier | None = None


class ExtractRequest(BaseModel):
    """A finished exchange, from which durable facts are to be stored."""

    model_config = _Strict
    messages: Annotated[list[SpokenMessage], Field(max_length=_MOST_MESSAGES)]
    session_id: Identifier
    project_id: Identifier | None = None


class Extracted(BaseModel):
    """The memories that were stored."""

    memories: list[MemoryRow]


@router.post("/search", name="search_memories", responses=problems(*ITEM))
async def search(services: Serving, caller: Reader, body: SearchRequest) -> Found:
    """Recall for a question: each memory's rank explained where `explain` asks for it."""
    budget = body.max_tokens if "max_tokens" in body.model_fields_set else POLICY_BUDGET
    found = await services.memory.recall(
        caller.owner(chosen_session(body.session_id, None), body.project_id),
        body.query,
        anchor_entity_ids=body.anchor_entity_ids,
        wanted_types=body.wanted_types,
        as_of=body.as_of,
        top_k=body.top_k,
        min_trust=body.min_trust,
        max_tokens=budget,
        explain=True,
    )
    store = services.memory.store
    tokens = sum(store.count_tokens(each.memory.content) for each in found)
    services.metrics.served("search", tokens)
    return Found(memories=[explained(each, caller, explain=body.explain) for each in found])


@router.post("/context", name="turn_context", responses=problems(*ITEM))
async def context(services: Serving, caller: Reader, body: ContextRequest) -> Context:
    """What the turn that `question` opens gets from memory."""
    owner = caller.owner(chosen_session(body.session_id, None), body.project_id)
    built = await services.memory.context(
        owner, body.question, anchor_entity_ids=body.anchor_entity_ids
    )
    block, summary = built.render(), built.render_summary()
    services.metrics.served("context", approximate_tokens(block) + approximate_tokens(summary))
    return Context(
        messages=[_window(each) for each in built.messages],
        summary=built.summary,
        recalled=[memory_row(each, caller) for each in built.recalled],
        standalone_query=built.standalone_query,
        rewritten=built.rewritten,
        summary_written=built.summary_written,
        wanted_types=[kind.value for kind in built.wanted_types],
        block=block,
        summary_block=summary,
    )


@router.post("/extract", name="extract_memories", responses=problems(*ITEM))
async def extract(services: Serving, caller: Reader, body: ExtractRequest) -> Extracted:
    """Store the durable facts that a finished exchange states; 503 without a model."""
    owner = caller.owner(chosen_session(body.session_id, None), body.project_id)
    messages = [_spoken(each) for each in body.messages if each.content.strip()]
    if not messages:
        return Extracted(memories=[])
    if services.model is None:
        said = "no model is configured: set MUNIMENT_MODEL and MUNIMENT_MODEL_BASE_URL"
        raise Problem(503, "no-model", said, retry_after=60)
    stored = await services.memory.extract(owner, messages)
    return Extracted(memories=[memory_row(each, caller) for each in stored])


def _window(message: ConversationMessage) -> WindowMessage:
    return WindowMessage(
        message_id=message.message_id,
        role=message.role.value,
        content=message.content,
        created_at=message.created_at,
    )


def _spoken(message: SpokenMessage) -> ConversationMessage:
    return ConversationMessage(
        message.message_id or new_message_id(),
        message.role,  # type: ignore[arg-type]  # checked to be one
        message.content,
        message.created_at or datetime.now(UTC),
        name=message.name,
    )
