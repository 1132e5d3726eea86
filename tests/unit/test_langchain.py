"""LangChain: messages both ways and the chat message history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from muniment.domain.conversation import (
    ConversationIdentity,
    ConversationMessage,
    ConversationRole,
)
from muniment.langchain import (
    MunimentChatMessageHistory,
    from_langchain_message,
    from_langchain_messages,
    to_langchain_message,
    to_langchain_messages,
)

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
ANA = ConversationIdentity("acme", "ana", "s1", "ana")
LANGCHAIN_CALLS = json.dumps(
    [{"name": "weather", "args": {"city": "Turin"}, "id": "c1", "type": "tool_call"}]
)
OPENAI_CALLS = json.dumps(
    [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Turin"}'},
        }
    ]
)


class ListedMessages:
    """A message store that is one list a conversation."""

    def __init__(self) -> None:
        self.held: dict[ConversationIdentity, list[ConversationMessage]] = {}

    async def append_messages(
        self, identity: ConversationIdentity, messages: Sequence[ConversationMessage]
    ) -> None:
        kept = self.held.setdefault(identity, [])
        kept += [message for message in messages if message not in kept]

    async def recent_messages(
        self, identity: ConversationIdentity, *, limit: int
    ) -> Sequence[ConversationMessage]:
        return self.held.get(identity, [])[-limit:]

    async def clear_messages(self, identity: ConversationIdentity) -> None:
        self.held.pop(identity, None)


def history(store: Any, **settings: Any) -> MunimentChatMessageHistory:
    return MunimentChatMessageHistory(store, ANA, clock=lambda: AT, **settings)


def said(role: str = "assistant", content: str = "hi", **fields: Any) -> ConversationMessage:
    return ConversationMessage("m1", ConversationRole(role), content, AT, **fields)


words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
calls_json = st.sampled_from([None, LANGCHAIN_CALLS, OPENAI_CALLS, "[]", "null", "{rubbish"])
any_message = st.builds(
    ConversationMessage,
    message_id=words,
    role=st.sampled_from(ConversationRole),
    content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    created_at=st.integers(0, 10**6).map(lambda seconds: AT + timedelta(seconds=seconds)),
    token_count=st.none() | st.integers(0, 1000),
    tool_calls_json=calls_json,
    tool_call_id=st.none() | words,
    citations_json=st.sampled_from([None, '[{"id":1}]', "{}", "null", "{rubbish"]),
    run_id=st.none() | words,
    partial=st.booleans(),
    name=st.none() | words,
)


@given(any_message)
def test_every_message_survives_the_round_trip(message: ConversationMessage) -> None:
    assert from_langchain_message(to_langchain_message(message), clock=pytest.fail) == message


@pytest.mark.parametrize("written", [LANGCHAIN_CALLS, OPENAI_CALLS])
def test_tool_calls_are_read_in_both_shapes(written: str) -> None:
    message = to_langchain_message(said(content="", tool_calls_json=written))
    assert isinstance(message, AIMessage)
    assert [(c["name"], c["args"], c["id"]) for c in message.tool_calls] == [
        ("weather", {"city": "Turin"}, "c1")
    ]


@pytest.mark.parametrize("arguments", ["{half", "[1]", "3", '"text"'])
def test_arguments_that_are_no_object_make_an_invalid_call(arguments: str) -> None:
    written = json.dumps([{"id": "c1", "function": {"name": "f", "arguments": arguments}}])
    message = to_langchain_message(said(tool_calls_json=written))
    assert isinstance(message, AIMessage)
    assert message.tool_calls == []
    assert [(c["name"], c["args"]) for c in message.invalid_tool_calls] == [("f", arguments)]


def test_a_call_without_arguments_has_none() -> None:
    written = json.dumps([{"id": "c1", "function": {"name": "f", "arguments": ""}}])
    message = to_langchain_message(said(tool_calls_json=written))
    assert isinstance(message, AIMessage)
    assert message.tool_calls[0]["args"] == {}


@pytest.mark.parametrize(
    "rubbish",
    ["{", "3", '"x"', "{}", "[[]]", "[1, null]", '[{"id": "c1"}]', '[{"name": 3}]', "[" * 100_000],
)
def test_an_unreadable_json_field_costs_that_field_only(rubbish: str) -> None:
    conversation = [said(tool_calls_json=rubbish, citations_json="{"), said("user", "still here")]
    first, second = to_langchain_messages(conversation)
    assert isinstance(first, AIMessage)
    assert (first.content, first.tool_calls, first.invalid_tool_calls) == ("hi", [], [])
    assert "citations" not in first.additional_kwargs
    assert second.content == "still here"


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "args", "id", "type", "function", "arguments", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(calls=st.lists(any_json, max_size=4) | any_json, citations=any_json)
def test_no_json_makes_a_message_unreadable_or_changes_it(calls: Any, citations: Any) -> None:
    message = said(tool_calls_json=json.dumps(calls), citations_json=json.dumps(citations))
    assert from_langchain_message(to_langchain_message(message)) == message


def test_numbers_that_equal_nothing_change_nothing() -> None:
    calls = '[{"name": "f", "args": {"x": NaN}}]'
    message = said(tool_calls_json=calls)
    returned = from_langchain_message(to_langchain_message(message))
    assert returned.tool_calls_json == calls


def test_citations_are_there_to_be_shown_and_may_be_changed() -> None:
    message = to_langchain_message(said(citations_json='[{"source": "a"}]'))
    assert message.additional_kwargs["citations"] == [{"source": "a"}]
    message.additional_kwargs["citations"] = [{"source": "b"}]
    assert json.loads(from_langchain_message(message).citations_json or "") == [{"source": "b"}]


def test_tool_calls_that_were_changed_are_stored_as_they_are_now() -> None:
    message = to_langchain_message(said(tool_calls_json=OPENAI_CALLS))
    assert isinstance(message, AIMessage)
    message.tool_calls[0]["args"]["city"] = "Bari"
    written = json.loads(from_langchain_message(message).tool_calls_json or "")
    assert written[0]["args"] == {"city": "Bari"}


def test_a_models_own_reply_brings_calls_tokens_and_id() -> None:
    reply = AIMessage(
        "",
        id="run-1",
        tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c1"}],
        usage_metadata={"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
    )
    stored = from_langchain_message(reply, run_id="r9", clock=lambda: AT)
    assert (stored.message_id, stored.token_count, stored.run_id) == ("run-1", 7, "r9")
    assert stored.created_at == AT
    assert json.loads(stored.tool_calls_json or "")[0]["args"] == {"x": 1}


def test_each_kind_of_message_has_its_role() -> None:
    messages: list[BaseMessage] = [
        HumanMessage("a", name="Ana"),
        AIMessageChunk("b"),
        ToolMessage("c", tool_call_id="c1"),
        SystemMessage("d"),
        ChatMessage("e", role="assistant"),
    ]
    stored = from_langchain_messages(messages, clock=lambda: AT)
    assert [m.role for m in stored] == ["user", "assistant", "tool", "system", "assistant"]
    assert (stored[0].name, stored[2].tool_call_id) == ("Ana", "c1")
    assert len({m.message_id for m in stored}) == 5


def test_blocks_are_stored_as_their_text() -> None:
    blocks = HumanMessage(
        [{"type": "text", "text": "look"}, {"type": "image", "url": "https://x.test/y.png"}]
    )
    assert from_langchain_message(blocks, clock=lambda: AT).content == "look"


@pytest.mark.parametrize("message", [RemoveMessage("m1"), ChatMessage("x", role="narrator")])
def test_what_is_no_message_of_a_conversation_is_refused(message: BaseMessage) -> None:
    with pytest.raises(ValueError, match=r"not a message|not a valid"):
        from_langchain_message(message)


@pytest.mark.parametrize(
    "kept", ["text", {"created_at": "yesterday"}, {"created_at": "2026-01-01"}]
)
def test_odd_notes_in_a_message_are_passed_over(kept: object) -> None:
    message = HumanMessage("a", additional_kwargs={"muniment": kept})
    assert from_langchain_message(message, clock=lambda: AT).created_at == AT


async def test_messages_added_are_read_back_in_order_with_run_and_time() -> None:
    store = ListedMessages()
    await history(store, run_id="r1").aadd_messages([HumanMessage("hello"), AIMessage("hi")])
    assert [m.content for m in await history(store).aget_messages()] == ["hello", "hi"]
    assert {(m.run_id, m.created_at) for m in store.held[ANA]} == {("r1", AT)}


async def test_messages_added_again_change_nothing() -> None:
    store = ListedMessages()
    stored = [said("user", "a"), said(tool_calls_json=OPENAI_CALLS, citations_json="[ 1 ]")]
    await store.append_messages(ANA, stored)
    await history(store).aadd_messages(await history(store).aget_messages())
    assert store.held[ANA] == stored


async def test_only_the_newest_are_read_and_no_tool_result_opens_them() -> None:
    store = ListedMessages()
    messages = [AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c1"}])]
    await history(store).aadd_messages(
        [*messages, ToolMessage("r", tool_call_id="c1"), HumanMessage("a"), AIMessage("b")]
    )
    assert [m.content for m in await history(store, recent_limit=3).aget_messages()] == ["a", "b"]


async def test_clearing_removes_every_message() -> None:
    store = ListedMessages()
    await history(store).aadd_messages([HumanMessage("hello")])
    await history(store).aclear()
    assert await history(store).aget_messages() == []


def test_synchronous_calls_say_what_to_call_instead() -> None:
    kept = history(ListedMessages())
    with pytest.raises(NotImplementedError, match=r"await history\.aget_messages"):
        kept.messages  # noqa: B018
    with pytest.raises(NotImplementedError, match=r"await history\.aadd_messages"):
        kept.add_messages([HumanMessage("x")])
    with pytest.raises(NotImplementedError, match=r"await history\.aadd_messages"):
        kept.add_user_message("x")
    with pytest.raises(NotImplementedError, match=r"await history\.aclear"):
        kept.clear()


# LangChain points at LangGraph instead; existing applications still use this class.
@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
async def test_a_chain_with_history_remembers_its_conversation() -> None:
    store = ListedMessages()
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("past"), ("human", "{ask}")])
    chain = RunnableWithMessageHistory(
        prompt | FakeListChatModel(responses=["first", "second"]),
        lambda session_id: history(store, run_id=session_id),
        input_messages_key="ask",
        history_messages_key="past",
    )
    settings: Any = {"configurable": {"session_id": "s1"}}
    await chain.ainvoke({"ask": "one"}, settings)
    await chain.ainvoke({"ask": "two"}, settings)
    assert [m.content for m in store.held[ANA]] == ["one", "first", "two", "second"]
