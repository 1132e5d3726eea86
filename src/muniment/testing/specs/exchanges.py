"""A completion's two writes: how an exchange begins, and what is kept at its end."""
# ruff: noqa: S101 - a spec asserts.

from __future__ import annotations

from muniment.domain.conversation import ConversationIdentity, ConversationMessage
from muniment.errors import NotFoundError
from muniment.ports import Begun, Ending, KeyedRequest
from muniment.testing.kit import Kit, person, talk_of
from muniment.testing.refusals import refused
from muniment.testing.registry import Capability, spec

TALK = talk_of(person())
REQUEST = KeyedRequest("print", TALK.session_id, "m1")


async def _begin(
    kit: Kit,
    question: str | None,
    *,
    holder: str = "a",
    new_kind: str | None = "chat",
    talk: ConversationIdentity = TALK,
) -> Begun:
    return await kit.store.exchanges.begin(
        talk,
        None if question is None else kit.message(question),
        holder=holder,
        ttl_seconds=30,
        new_kind=new_kind,
        pairs=3,
    )


async def _end(kit: Kit, answer: str | None, *, holder: str = "a", **more: str) -> str | None:
    message = None if answer is None else _reply(kit, answer)
    return await kit.store.exchanges.end(TALK, Ending(message, **more), holder=holder)


def _reply(kit: Kit, answer: str) -> ConversationMessage:
    return kit.message(answer, role="assistant")


@spec(Capability.EXCHANGES)
async def an_exchange_is_stored_titled_and_leaves_its_session_free(kit: Kit) -> None:
    assert await _begin(kit, "question", new_kind="agent") == Begun(0.0, ())
    assert await kit.said(person()) == ["question"]
    assert await kit.conversations.exists(TALK, kind="agent")
    assert await _end(kit, "answer", title="a title") == "a title"
    assert await kit.said(person()) == ["question", "answer"]
    assert await kit.store.service.acquire(TALK, holder="b", ttl_seconds=30) == 0


@spec(Capability.EXCHANGES)
async def an_exchange_begins_with_the_newest_completed_ones(kit: Kit) -> None:
    for number in range(5):
        await _begin(kit, f"question {number}")
        await _end(kit, f"answer {number}")
        await _begin(kit, f"unanswered {number}")
        await _end(kit, None)
    begun = await _begin(kit, None, new_kind=None)
    said = [message.content for message in begun.pairs]
    assert said == [f"{kind} {n}" for n in (2, 3, 4) for kind in ("question", "answer")]


@spec(Capability.EXCHANGES)
async def a_session_that_another_has_is_told_how_long_and_keeps_as_it_was(kit: Kit) -> None:
    await _begin(kit, "question")
    kit.clock.move(seconds=10)
    assert await _begin(kit, "another", holder="b") == Begun(20.0, ())
    assert await kit.said(person()) == ["question"]
    assert await kit.store.service.renew(TALK, holder="a", ttl_seconds=30)


@spec(Capability.EXCHANGES)
async def a_session_that_is_not_there_or_anothers_is_not_found_and_not_made(kit: Kit) -> None:
    await _begin(kit, "question")
    for other in (person("other"), person(user="bo"), person(session="s2")):
        talk = talk_of(other)
        await refused(NotFoundError, _begin(kit, "mine now", new_kind=None, talk=talk))
        assert not await kit.conversations.exists(talk)
        late = kit.store.exchanges.end(talk, Ending(_reply(kit, "answer")), holder="a")
        await refused(NotFoundError, late)
        assert await kit.store.exchanges.end(talk, Ending(), holder="a") is None
    assert await kit.said(person()) == ["question"]
    assert await kit.store.service.renew(TALK, holder="a", ttl_seconds=30)


@spec(Capability.EXCHANGES)
async def an_answer_without_its_lease_is_not_kept_nor_anything_with_it(kit: Kit) -> None:
    who = (TALK.tenant_id, TALK.user_id, "k")
    await kit.store.service.begin(*who, REQUEST, ttl_seconds=60)
    await _begin(kit, "question")
    late = _end(kit, "answer", holder="b", title="a title", key="k", envelope="{}")
    await refused(NotFoundError, late)
    assert await kit.said(person()) == ["question"]
    assert await kit.conversations.get_title(TALK) is None
    assert await kit.store.service.begin(*who, REQUEST, ttl_seconds=60) == REQUEST


@spec(Capability.EXCHANGES)
async def an_answer_is_noted_under_its_key_and_a_title_by_hand_stays(kit: Kit) -> None:
    who = (TALK.tenant_id, TALK.user_id, "k")
    await kit.store.service.begin(*who, REQUEST, ttl_seconds=60)
    await _begin(kit, "question")
    await kit.conversations.rename_conversation(TALK, title="by hand")
    told = await _end(kit, "answer", title="a title", key="k", envelope='{"a": 1}')
    assert told == "by hand"
    kept = await kit.store.service.begin(*who, REQUEST, ttl_seconds=60)
    assert (kept.answer_id, kept.envelope) == (kit.message("answer").message_id, '{"a": 1}')


@spec(Capability.EXCHANGES)
async def the_same_question_again_is_stored_once(kit: Kit) -> None:
    await _begin(kit, "question")
    await _end(kit, None)
    await _begin(kit, "question", new_kind=None)
    assert await kit.said(person()) == ["question"]
