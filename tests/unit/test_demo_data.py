"""The shipped demo history is complete, consistent and answers its own questions."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from muniment import MemoryScope, MemoryType, Trust
from muniment.demo import Demo, DemoMessage, load_demo


@pytest.fixture(scope="module")
def demo() -> Demo:
    return load_demo()


def by_id(demo: Demo) -> dict[str, DemoMessage]:
    return {message.message_id: message for message in demo.messages}


def test_the_history_is_many_sessions_of_three_users_in_two_tenants(demo: Demo) -> None:
    assert len(demo.messages) >= 620
    assert len({message.session for message in demo.messages}) >= 26
    assert {(message.tenant, message.user) for message in demo.messages} == {
        ("acme", "ana"),
        ("acme", "bo"),
        ("acme-corp", "chris"),
    }


def test_the_history_runs_from_january_to_july_2026(demo: Demo) -> None:
    months = {(message.at.year, message.at.month) for message in demo.messages}
    assert months == {(2026, month) for month in range(1, 8)}


def test_message_ids_are_unique(demo: Demo) -> None:
    assert len(by_id(demo)) == len(demo.messages)


def test_a_session_belongs_to_one_user(demo: Demo) -> None:
    owners = {(message.session, message.tenant, message.user) for message in demo.messages}
    assert max(Counter(session for session, _, _ in owners).values()) == 1


def test_times_are_aware_utc_and_rise_within_a_session(demo: Demo) -> None:
    assert all(message.at.utcoffset() == timedelta(0) for message in demo.messages)
    for earlier, later in pairwise(demo.messages):
        if earlier.session == later.session:
            assert earlier.at < later.at


def test_the_messages_of_a_session_stand_together(demo: Demo) -> None:
    changes = sum(a.session != b.session for a, b in pairwise(demo.messages))
    assert changes + 1 == len({message.session for message in demo.messages})


def test_a_role_has_its_speaker(demo: Demo) -> None:
    speakers = {(message.user, message.role, message.name) for message in demo.messages}
    assert speakers == {
        (user, role, name)
        for user in ("ana", "bo", "chris")
        for role, name in (("user", user.title()), ("assistant", "Juno"))
    }


def test_no_content_is_blank_or_said_twice(demo: Demo) -> None:
    contents = Counter(" ".join(message.content.casefold().split()) for message in demo.messages)
    assert "" not in contents
    assert [text for text, count in contents.items() if count > 1] == []


def test_there_are_bursts_and_long_answers(demo: Demo) -> None:
    bursts = sum(
        a.role == b.role == "user" and a.session == b.session for a, b in pairwise(demo.messages)
    )
    assert bursts >= 30
    assert sum(len(message.content) > 300 for message in demo.messages) >= 5


@pytest.mark.parametrize(
    ("first", "last"), [("\u4e00", "\u9fff"), ("\u3040", "\u30ff"), ("ü", "ü"), ("ř", "ř")]
)
def test_users_write_in_other_scripts_and_languages(demo: Demo, first: str, last: str) -> None:
    written = "".join(message.content for message in demo.messages if message.role == "user")
    assert any(first <= character <= last for character in written)


def test_there_are_enough_questions_and_memories(demo: Demo) -> None:
    assert len(demo.questions) >= 12
    assert len(demo.memories) >= 6


def test_expected_messages_exist_and_belong_to_the_asked_user(demo: Demo) -> None:
    messages = by_id(demo)
    for question in demo.questions:
        assert len(set(question.expect_message_ids)) == len(question.expect_message_ids)
        for message_id in question.expect_message_ids:
            message = messages[message_id]
            assert (message.tenant, message.user) == (question.tenant, question.user)


def test_expected_messages_were_said_before_the_asked_instant(demo: Demo) -> None:
    messages = by_id(demo)
    for question in demo.questions:
        instant = question.as_of or datetime(2026, 8, 1, tzinfo=UTC)
        assert all(messages[wanted].at < instant for wanted in question.expect_message_ids)


def test_a_changed_fact_is_asked_now_and_as_of_an_earlier_date(demo: Demo) -> None:
    now = {q.question: q.expect_message_ids for q in demo.questions if q.as_of is None}
    then = {q.question: q.expect_message_ids for q in demo.questions if q.as_of is not None}
    assert then.keys() <= now.keys()
    assert len(then) >= 3
    assert all(set(then[question]).isdisjoint(now[question]) for question in then)


def test_a_fact_of_another_user_and_one_of_another_tenant_expect_nothing(demo: Demo) -> None:
    nothing = {q.tenant for q in demo.questions if not q.expect_message_ids}
    assert nothing == {"acme", "acme-corp"}


def test_memories_hold_values_that_the_domain_knows(demo: Demo) -> None:
    for memory in demo.memories:
        assert memory.memory_type in set(MemoryType)
        assert memory.scope in {MemoryScope.USER, MemoryScope.TENANT}
        assert memory.trust in set(Trust)
        assert 0 <= memory.importance <= 1
        assert memory.valid_from.utcoffset() == timedelta(0)


def test_a_memory_replaces_an_earlier_one_of_the_same_user_once(demo: Demo) -> None:
    replaced = [memory.replaces for memory in demo.memories if memory.replaces is not None]
    assert len(set(replaced)) == len(replaced) >= 2
    for index, memory in enumerate(demo.memories):
        if memory.replaces is not None:
            older = demo.memories[memory.replaces]
            assert memory.replaces < index
            assert (older.tenant, older.user) == (memory.tenant, memory.user)
            assert (older.scope, older.memory_type) == (memory.scope, memory.memory_type)


def test_one_memory_comes_as_late_news(demo: Demo) -> None:
    pairs = [(demo.memories[m.replaces], m) for m in demo.memories if m.replaces is not None]
    assert any(newer.valid_from < older.valid_from for older, newer in pairs)


def test_loading_twice_gives_the_same_frozen_data(demo: Demo) -> None:
    assert load_demo() == demo
    with pytest.raises(FrozenInstanceError):
        demo.messages[0].content = "changed"  # type: ignore[misc]


def test_loading_needs_no_third_party_module() -> None:
    script = (
        "import sys, muniment.demo as d; d.load_demo();"
        "print([m for m in ('numpy', 'pydantic', 'apsw', 'typer', 'rich') if m in sys.modules])"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(  # noqa: S603 -- our own interpreter and script
        [sys.executable, "-c", script],
        env=path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.strip() == "[]"
