"""Two replicas of the service on one store: conversations, leases, keys, runs, quotas."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.doubles.openai_server import Gate, OpenAIServer, gated, status, text, tool_call
from tests.doubles.replicas import QUOTA_TOKENS, Person, Replicas

CHAT, AGENT = "/v1/chat/completions", "/v1/agent/completions"


@pytest.fixture
def upstream(replicas: Replicas) -> OpenAIServer:
    return replicas.model


@pytest.fixture
def clients(person: Person) -> tuple[httpx2.Client, httpx2.Client]:
    return person("ana"), person("ana", at=1)


def _said(content: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


def _contents(client: httpx2.Client, session: str) -> list[str]:
    rows = client.get(f"/v1/chat/sessions/{session}/messages").json()["messages"]
    return [row["content"] for row in rows]


def test_a_conversation_goes_on_at_the_other_replica(
    upstream: OpenAIServer, clients: tuple[httpx2.Client, httpx2.Client], person: Person
) -> None:
    one, two = clients
    session = one.post(CHAT, json=_said("first")).json()["session_id"]
    told = two.post(CHAT, json=_said("second", session_id=session)).json()
    assert (told["title"], told["memory_persisted"]) == ("first", True)
    sent = [each["content"] for each in upstream.requests[-1].body["messages"]]
    assert sent == ["first", "ok", "second"]
    listed = one.get("/v1/chat/sessions").json()["sessions"]
    assert [(each["session_id"], each["message_count"]) for each in listed] == [(session, 4)]
    assert two.patch(f"/v1/chat/sessions/{session}", json={"title": "mine"}).status_code == 200
    assert one.get("/v1/chat/sessions").json()["sessions"][0]["title"] == "mine"
    for path in (f"/v1/chat/sessions/{session}/messages", f"/v1/chat/sessions/{session}"):
        method = "GET" if path.endswith("messages") else "DELETE"
        assert person("bo", at=1).request(method, path).status_code == 404
    gone = two.delete(f"/v1/chat/sessions/{session}").json()
    assert (gone["messages"], gone["index_entries"]) == (4, 4)
    assert one.post(CHAT, json=_said("third", session_id=session)).status_code == 404


def test_a_session_is_served_by_one_replica_at_a_time(
    upstream: OpenAIServer, clients: tuple[httpx2.Client, httpx2.Client]
) -> None:
    one, two = clients
    session = one.post("/v1/chat/sessions").json()["session_id"]
    gate = Gate()
    upstream.queue(gated("slow answer", gate))
    with one.stream("POST", CHAT, json=_said("a", session_id=session, stream=True)) as response:
        gate.reached.wait(10)
        busy = two.post(CHAT, json=_said("b", session_id=session))
        assert (busy.status_code, "retry-after" in busy.headers) == (409, True)
        gate.open()
        response.read()
    assert two.post(CHAT, json=_said("b", session_id=session)).status_code == 200
    assert _contents(one, session) == ["a", "slow answer", "b", "ok"]


def test_hazard_21_a_key_is_one_request_on_both_replicas(
    upstream: OpenAIServer, clients: tuple[httpx2.Client, httpx2.Client]
) -> None:
    one, two = clients
    key = {"Idempotency-Key": "k1"}
    asked = len(upstream.requests)
    first = one.post(CHAT, json=_said("once"), headers=key).json()
    assert two.post(CHAT, json=_said("once"), headers=key).json() == first
    assert len(upstream.requests) == asked + 1
    assert two.post(CHAT, json=_said("twice"), headers=key).status_code == 422
    assert len(_contents(two, first["session_id"])) == 2


def test_a_run_that_failed_at_one_replica_is_resumed_at_the_other(
    upstream: OpenAIServer, clients: tuple[httpx2.Client, httpx2.Client], person: Person
) -> None:
    one, two = clients
    upstream.queue(tool_call("weather", {"city": "Oslo"}), status(500), text("It rains."))
    failed = one.post(AGENT, json=_said("weather?"))
    assert failed.status_code == 502
    place = f"/v1/agent/runs/{failed.headers['muniment-run-id']}/resume"
    assert person("bo", at=1).post(place).status_code == 404
    told = two.post(place).json()
    assert told["choices"][0]["message"]["content"] == "It rains."
    assert [each["role"] for each in upstream.requests[-1].body["messages"]][-1] == "tool"
    gone = one.delete(f"/v1/agent/sessions/{told['session_id']}").json()
    assert gone["checkpoints"] >= 3
    assert two.post(place).status_code == 404


def test_a_quota_is_one_limit_for_both_replicas(person: Person) -> None:
    writers = person("ana"), person("ana", at=1)
    large = "word " * (QUOTA_TOKENS // 3)
    answers = [
        writers[turn % 2].post("/v1/memory/memories", json={"content": f"{turn} {large}"})
        for turn in range(4)
    ]
    assert [each.status_code for each in answers].count(507) >= 1
    assert [each.status_code for each in answers] == sorted(each.status_code for each in answers)
    usage = person("root", role="admin").get("/v1/memory/usage").json()
    assert 0 < usage["stored_tokens"] <= QUOTA_TOKENS
