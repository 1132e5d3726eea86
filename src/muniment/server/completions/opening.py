"""From a request to an exchange under way: its session, its lease, its prompt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.domain.identifiers import new_message_id, new_session_id
from muniment.errors import MemoryStoreError
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
    services = asked.services
    identity = asked.caller.conversation(kept.session_id)
    if kept.answer_id is not None:
        return Repeated(kept, identity)
    records = services.memory.store.service
    lease = SessionLease(records, identity, seconds=services.settings.lease_seconds)
    _, pairs, leased = await all_of(
        _require_session(asked),
        history(services.memory.conversations, identity, services.metrics),
        _taken(lease, services),
        undo=lease.give_back,
    )
    try:
        kept = await _kept(asked, kept)  # the first may have been answered while we came
        if kept.answer_id is not None:
            await lease.give_back()
            return Repeated(kept, identity)
        exchange = Exchange(services, identity, lease, asked.question, kept.question_id, asked.key)
        if asked.kind == AGENT:
            exchange.run_id = f"run_{kept.question_id.removeprefix('msg_')}"
            exchange.new_kind = AGENT if asked.session_id is None else None
        await _prepare(exchange, asked, pairs)
        if leased:
            await exchange.store_question()
    except BaseException:
        await lease.give_back()
        raise
    return exchange


async def _taken(lease: SessionLease, services: Services) -> bool:
    """Whether the session is ours; where the store cannot say, nothing of this will be kept."""
    try:
        async with asyncio.timeout(services.memory.policy.call_timeout_seconds):
            await lease.take()
    except (MemoryStoreError, TimeoutError) as error:
        services.metrics.degraded("lease")
        _log.warning("no lease, so nothing will be stored (%s)", type(error).__name__)
        return False
    return True


async def all_of(
    *calls: Coroutine[Any, Any, Any], undo: Callable[[], Awaitable[None]]
) -> list[Any]:
    """What the calls give, made at once. Where some fail the first one's error is raised, after
    all have ended and `undo` has been done."""
    found = await asyncio.gather(*calls, return_exceptions=True)
    failed = [each for each in found if isinstance(each, BaseException)]
    if failed:
        await undo()
        raise failed[0]
    return found


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
    fingerprint = asked.request.fingerprint(asked.kind, asked.session_id)
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
    else:
        budget = services.settings.model_context_tokens
        window = within(pairs, [*leading, question], budget=budget)
    exchange.prompt = [*leading, *window, question]
