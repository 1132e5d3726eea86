"""From a request to an exchange under way: its session, its lease, its prompt."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.identifiers import new_message_id, new_session_id
from muniment.errors import MemoryStoreError, NotFoundError
from muniment.ports import KeyedRequest
from muniment.server.completions.citations import passages_for, rendered
from muniment.server.completions.exchange import Exchange
from muniment.server.completions.lease import SessionLease
from muniment.server.completions.prompt import full_context, history, within
from muniment.server.completions.request import CompletionRequest
from muniment.server.identity import Caller
from muniment.server.problems import Problem, invalid, not_found
from muniment.server.services import Services

_log = logging.getLogger("muniment.server.completions")
CHAT, AGENT = "chat", "agent"
KEY_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Asked:
    """A completion as it was asked for: by whom, of which session (None: a new one)."""

    services: Services
    caller: Caller
    request: CompletionRequest
    kind: str
    session_id: str | None
    key: str | None
    question: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """The request was answered before, and the answer is stored."""

    kept: KeyedRequest
    identity: ConversationIdentity


async def opened(asked: Asked) -> Exchange | Repeated:
    """The exchange, with the session's lease held and the question stored; or what was answered
    before. Problem 404 for a session that is not the caller's, 409 for a busy one, 422 for a key
    that was used for something else."""
    _require_memory_allowed(asked)
    asked.caller.project(asked.request.project_id)
    kept = _keyed(asked)
    if asked.key is not None:  # before the lease: a key may name a session of its own making
        await _require_session(asked)
        kept = await _kept(asked, kept)
    exchange = _exchange(asked, kept)
    if kept.answer_id is not None:
        return Repeated(kept, exchange.identity)
    try:
        pairs = await _begun(exchange, asked)
        kept = await _kept(asked, kept)  # the first may have been answered while we came
        if kept.answer_id is not None:
            await exchange.lease.give_back()
            return Repeated(kept, exchange.identity)
        await _prepare(exchange, asked, pairs)
    except BaseException:
        await exchange.lease.give_back()
        raise
    return exchange


def _exchange(asked: Asked, kept: KeyedRequest) -> Exchange:
    services, identity = asked.services, asked.caller.conversation(kept.session_id)
    records, seconds = services.memory.store.service, services.settings.lease_seconds
    lease = SessionLease(records, identity, seconds=seconds)
    exchange = Exchange(services, identity, lease, asked.question, kept.question_id, asked.key)
    exchange.new_kind = asked.kind if asked.session_id is None else None
    if asked.kind == AGENT:
        exchange.run_id = f"run_{kept.question_id.removeprefix('msg_')}"
    return exchange


async def _begun(exchange: Exchange, asked: Asked) -> Sequence[ConversationMessage]:
    """The history, with the session taken. The question is stored with it, but for one whose
    context is built first: that must not see it as a part of the past."""
    try:
        pairs = await exchange.begin(storing=asked.request.memory != "full")
    except NotFoundError:
        raise not_found() from None
    if pairs is not None:
        return pairs
    with contextlib.suppress(MemoryStoreError):  # the turn goes on all the same
        await _require_session(asked)
    services = asked.services
    return await history(services.memory.conversations, exchange.identity, services.metrics)


def _require_memory_allowed(asked: Asked) -> None:
    if asked.request.memory == "full" and not asked.services.settings.allow_full_memory:
        raise invalid("memory", "full is not allowed by this service")


async def _require_session(asked: Asked) -> None:
    if asked.session_id is None:
        return
    identity = asked.caller.conversation(asked.session_id)
    if not await asked.services.memory.conversations.exists(identity):
        raise not_found()


def _keyed(asked: Asked) -> KeyedRequest:
    """The request as it is kept under its key; one without a key is not kept."""
    keyed = asked.key is not None
    fingerprint = asked.request.fingerprint(asked.kind, asked.session_id) if keyed else ""
    return KeyedRequest(fingerprint, asked.session_id or new_session_id(), new_message_id())


async def _kept(asked: Asked, request: KeyedRequest) -> KeyedRequest:
    if asked.key is None:
        return request
    caller = asked.caller
    kept = await asked.services.memory.store.service.begin(
        caller.tenant, caller.user, asked.key, request, ttl_seconds=KEY_SECONDS
    )
    if kept.fingerprint != request.fingerprint:
        raise Problem(422, "key-used", "Idempotency-Key: was used for another request")
    return kept


async def _prepare(exchange: Exchange, asked: Asked, pairs: Sequence[ConversationMessage]) -> None:
    """Find passages, and build the prompt."""
    services, request = asked.services, asked.request
    exchange.first = not pairs
    exchange.passages = await passages_for(
        services.retriever,
        asked.question,
        tenant_id=asked.caller.tenant,
        seconds=services.memory.policy.call_timeout_seconds,
        metrics=services.metrics,
    )
    leading = [*request.instructions(), *rendered(exchange.passages)]
    question = request.asked()
    window: list[dict[str, Any]]
    if request.memory == "full":
        owner = asked.caller.owner(exchange.identity.session_id, request.project_id)
        notes, window, tokens = await full_context(services.memory, owner, asked.question)
        services.metrics.served("context", tokens)
        leading += notes
        if exchange.taken:
            await exchange.store_question()
    else:
        budget = services.settings.model_context_tokens
        window = within(pairs, [*leading, question], budget=budget)
    exchange.prompt = [*leading, *window, question]
