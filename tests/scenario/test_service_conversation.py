"""Unmodified clients hold a conversation with the service, across restarts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import APIError, ConflictError, OpenAI

from tests.doubles.openai_server import Gate, OpenAIServer, busy, gated, hang, status, text
from tests.doubles.service import JWT_MODE, Service, bearer, token

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def upstream() -> Iterator[OpenAIServer]:
    with OpenAIServer.running() as server:
        yield server


@pytest.fixture(scope="module")
def service(upstream: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service.running(tmp_path_factory.mktemp("service"), **_model(upstream)) as running:
        yield running


@pytest.fixture
def ana(service: Service) -> Iterator[httpx2.Client]:
    with service.client(**bearer("ana")) as client:
        yield client


def _model(upstream: OpenAIServer) -> dict[str, str]:
    return {
        **JWT_MODE,
        "MUNIMENT_MODEL": "m",
        "MUNIMENT_MODEL_BASE_URL": upstream.url,
        "MUNIMENT_MODEL_API_KEY": "upstream key",
        "MUNIMENT_MODEL_TIMEOUT_SECONDS": "3",
    }


def _said(content: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


def _asked(upstream: OpenAIServer) -> list[tuple[str, str]]:
    """The newest prompt."""
    messages = upstream.requests[-1].body["messages"]
    return [(each["role"], each["content"]) for each in messages]


def _stream(client: httpx2.Client, body: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    with client.stream("POST", CHAT, json={**body, "stream": True}, headers=headers) as response:
        assert response.status_code == 200, response.read()
        lines = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    return [{} if line == "[DONE]" else json.loads(line) for line in lines]


def _messages(client: httpx2.Client, session: str) -> list[tuple[str, str, bool]]:
    rows = client.get(f"/v1/chat/sessions/{session}/messages").json()["messages"]
    return [(row["role"], row["content"], row["partial"]) for row in rows]


def test_the_openai_client_keeps_a_conversation_across_a_restart(
    upstream: OpenAIServer, tmp_path: Path
) -> None:
    session = None
    for number in range(2):
        with (
            Service.running(tmp_path, **_model(upstream)) as service,
            OpenAI(base_url=f"{service.url}/v1", api_key=token(), max_retries=0) as client,
        ):
            more = {"session_id": session} if session else {}
            ask: dict[str, Any] = {"model": "any", "extra_body": more}
            upstream.queue(text(f"answer {number}a"), text(f"answer {number} b"))
            whole = client.chat.completions.create(
                messages=[{"role": "user", "content": f"question {number}a"}], **ask
            )
            assert whole.choices[0].message.content == f"answer {number}a"
            extra = whole.model_extra or {}
            assert extra["memory_persisted"]
            session = extra["session_id"]
            chunks = list(
                client.chat.completions.create(
                    messages=[{"role": "user", "content": f"question {number}b"}],
                    stream=True,
                    model="any",
                    extra_headers={"Muniment-Session-Id": session},
                )
            )
            told = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            assert told == f"answer {number} b"
            last = chunks[-1].model_extra or {}
            assert (last["session_id"], last["memory_persisted"]) == (session, True)
            assert last["title"] == "question 0a"
    assert _asked(upstream) == [
        ("user", "question 0a"), ("assistant", "answer 0a"),
        ("user", "question 0b"), ("assistant", "answer 0 b"),
        ("user", "question 1a"), ("assistant", "answer 1a"),
        ("user", "question 1b"),
    ]  # fmt: skip


def test_curl_keeps_a_conversation_across_a_restart(upstream: OpenAIServer, tmp_path: Path) -> None:
    def curl(service: Service, body: dict[str, Any]) -> str:
        done = subprocess.run(  # noqa: S603
            [  # noqa: S607
                "curl", "-sS", "--fail-with-body", service.url + CHAT,
                "-H", f"Authorization: Bearer {token()}",
                "-H", "Content-Type: application/json", "-d", json.dumps(body),
            ],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    with Service.running(tmp_path, **_model(upstream)) as service:
        upstream.queue(text("noted"))
        first = json.loads(curl(service, _said("my dog is Rex")))
    with Service.running(tmp_path, **_model(upstream)) as service:
        upstream.queue(text("it is Rex"))
        body = _said("and its name?", session_id=first["session_id"], stream=True)
        streamed = curl(service, body)
    assert '"content": "it"' in streamed
    assert streamed.endswith("data: [DONE]\n\n")
    assert _asked(upstream) == [
        ("user", "my dog is Rex"), ("assistant", "noted"), ("user", "and its name?"),
    ]  # fmt: skip


def test_only_the_newest_three_completed_exchanges_are_sent(
    upstream: OpenAIServer, ana: httpx2.Client
) -> None:
    session = ana.post(CHAT, json=_said("q1")).json()["session_id"]
    for number in (2, 3, 4):
        ana.post(CHAT, json=_said(f"q{number}", session_id=session))
    upstream.queue(status(500), text("half an answer", cut_after=1))
    assert ana.post(CHAT, json=_said("unanswered", session_id=session)).status_code == 502
    assert "error" in _stream(ana, _said("broken", session_id=session))[-1]
    body = {
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "not stored here"},
            {"role": "assistant", "content": "nor this"},
            {"role": "developer", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "q5"}]},
        ],
        "session_id": session, "user": "somebody else", "temperature": 0.5,
    }  # fmt: skip
    assert ana.post(CHAT, json=body).status_code == 200
    sent = upstream.requests[-1]
    assert _asked(upstream) == [
        ("system", "be brief"), ("developer", "be kind"),
        ("user", "q2"), ("assistant", "ok"), ("user", "q3"), ("assistant", "ok"),
        ("user", "q4"), ("assistant", "ok"), ("user", [{"type": "text", "text": "q5"}]),
    ]  # fmt: skip
    assert sent.body["temperature"] == 0.5
    assert sent.body["model"] == "m"
    assert "user" not in sent.body
    assert sent.headers["authorization"] == "Bearer upstream key"
    assert ("assistant", "half", True) in _messages(ana, session)
    assert _messages(ana, session)[-2:] == [("user", "q5", False), ("assistant", "ok", False)]


def test_what_breaks_off_is_kept_as_partial_and_told(
    upstream: OpenAIServer, ana: httpx2.Client
) -> None:
    upstream.queue(text("one two three", cut_after=2))
    events = _stream(ana, _said("count"))
    assert events[-1]["error"]["type"] == "model-broken"
    session = ana.get("/v1/chat/sessions").json()["sessions"][0]
    assert session["title"] is None
    assert _messages(ana, session["session_id"]) == [
        ("user", "count", False), ("assistant", "one two", True),
    ]  # fmt: skip


def test_a_client_that_leaves_leaves_a_partial_answer_and_a_free_session(
    upstream: OpenAIServer, ana: httpx2.Client
) -> None:
    gate = Gate()
    upstream.queue(gated("one two three", gate, after=2))
    with ana.stream("POST", CHAT, json=_said("count", stream=True)) as response:
        session = response.headers["muniment-session-id"]
        lines = response.iter_lines()
        while "two" not in next(lines):
            pass
    reply = ana.post(CHAT, json=_said("again", session_id=session))
    while reply.status_code == 409:  # the service notices in its own time that we left
        reply = ana.post(CHAT, json=_said("again", session_id=session))
    gate.open()
    assert reply.status_code == 200
    assert _messages(ana, session)[:2] == [("user", "count", False), ("assistant", "one two", True)]


def test_a_second_completion_of_a_session_is_told_to_wait(
    upstream: OpenAIServer, service: Service, ana: httpx2.Client
) -> None:
    session = ana.post("/v1/chat/sessions").json()["session_id"]
    gate = Gate()
    upstream.queue(gated("slow answer", gate))
    with ana.stream("POST", CHAT, json=_said("a", stream=True, session_id=session)) as response:
        gate.reached.wait(10)
        with (
            OpenAI(base_url=f"{service.url}/v1", api_key=token(), max_retries=0) as client,
            pytest.raises(ConflictError) as refused,
        ):
            client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "b"}],
                extra_body={"session_id": session},
            )
        assert int(refused.value.response.headers["retry-after"]) >= 1
        assert ana.delete(f"/v1/chat/sessions/{session}").status_code == 409
        gate.open()
        response.read()
    assert ana.post(CHAT, json=_said("b", session_id=session)).status_code == 200
    assert [row[1] for row in _messages(ana, session)] == ["a", "slow answer", "b", "ok"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_retry_with_the_same_key_gets_the_first_answer_and_stores_nothing_twice(
    upstream: OpenAIServer, ana: httpx2.Client, streamed: bool
) -> None:
    key = {"Idempotency-Key": f"k-{streamed}"}
    upstream.queue(text("the first"), text("the second"))
    asked = len(upstream.requests)
    if streamed:
        first, again = _stream(ana, _said("once"), **key), _stream(ana, _said("once"), **key)
        session = first[-2]["session_id"]
        assert again[-2]["session_id"] == session
        told = "".join(each["choices"][0]["delta"].get("content") or "" for each in again[:-1])
        assert told == "the first"
    else:
        first, again = (ana.post(CHAT, json=_said("once"), headers=key).json() for _ in range(2))
        assert first == again
        session = first["session_id"]
    assert len(upstream.requests) == asked + 1
    assert len(_messages(ana, session)) == 2
    upstream._replies.clear()


def test_a_retry_after_a_failure_asks_again_and_keeps_one_question(
    upstream: OpenAIServer, ana: httpx2.Client
) -> None:
    key = {"Idempotency-Key": "after a failure"}
    upstream.queue(status(500), text("now"))
    failed = ana.post(CHAT, json=_said("once"), headers=key)
    assert failed.status_code == 502
    done = ana.post(CHAT, json=_said("once"), headers=key).json()
    assert done["session_id"] == failed.headers["muniment-session-id"]
    assert [row[1] for row in _messages(ana, done["session_id"])] == ["once", "now"]


def test_hazard_21_a_key_is_refused_for_another_body_session_or_endpoint(
    ana: httpx2.Client, service: Service
) -> None:
    key = {"Idempotency-Key": "hazard 21"}
    session = ana.post(CHAT, json=_said("once"), headers=key).json()["session_id"]
    for body in (
        _said("twice"), _said("once", session_id=session), _said("once", stream=True),
    ):  # fmt: skip
        refused = ana.post(CHAT, json=body, headers=key)
        assert refused.status_code == 422
        assert refused.json()["type"] == "urn:muniment:problem:key-used"
    with service.client(**bearer("bo")) as bo:
        assert bo.post(CHAT, json=_said("once"), headers=key).json()["session_id"] != session


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (status(500), 502), (status(400), 422), (status(401), 503), (busy(retry_after="7"), 429),
        (status(503), 503), (hang(), 504), (text(None), 200),
    ],
)  # fmt: skip
def test_what_the_model_cannot_do_is_told_without_its_words(
    upstream: OpenAIServer, ana: httpx2.Client, reply: Any, answer: int
) -> None:
    upstream.queue(reply)
    told = ana.post(CHAT, json=_said("hello"))
    assert told.status_code == answer
    if answer == 429:
        assert told.headers["retry-after"] == "7"
    if answer == 200:
        assert not told.json()["memory_persisted"]


def test_titles_come_from_the_first_question_and_a_rename_always_wins(ana: httpx2.Client) -> None:
    long = "one two three four five six seven eight nine ten eleven twelve"
    first = ana.post(CHAT, json=_said(long)).json()
    assert first["title"] == "one two three four five six seven eight nine ten"
    place = f"/v1/chat/sessions/{first['session_id']}"
    assert ana.patch(place, json={"title": " mine "}).json()["title"] == "mine"
    more = _said("more", session_id=first["session_id"])
    assert ana.post(CHAT, json=more).json()["title"] == "mine"
    cleared = ana.post("/v1/chat/sessions").json()["session_id"]
    ana.patch(f"/v1/chat/sessions/{cleared}", json={"title": "  "})
    assert ana.post(CHAT, json=_said("hello", session_id=cleared)).json()["title"] is None
    wide = ana.post(CHAT, json=_said("word" * 30 + " tail")).json()["title"]
    assert wide == ("word" * 30)[:80]


def _asked_about(other: httpx2.Client, session: str) -> list[dict[str, Any]]:
    """What each route says of a session, less the request's own id."""
    place = f"/v1/chat/sessions/{session}"
    answers = [
        other.post(CHAT, json=_said("x", session_id=session)),
        other.post(CHAT, json=_said("x", session_id=session, stream=True)),
        other.get(f"{place}/messages"),
        other.patch(place, json={"title": "taken"}),
        other.delete(place),
    ]
    return [{**each.json(), "request_id": "", "status": each.status_code} for each in answers]


def test_another_user_gets_404_for_the_session_on_every_route(
    ana: httpx2.Client, service: Service
) -> None:
    session = ana.post(CHAT, json=_said("secret")).json()["session_id"]
    for who in (bearer("cy"), bearer("anna", role="admin", tenants=["other", "DEFAULT"])):
        with service.client(**who) as other:
            foreign, unknown = _asked_about(other, session), _asked_about(other, "ses_unknown")
            assert [each.pop("status") for each in foreign] == [404] * 5
            assert [each.pop("status") for each in unknown] == [404] * 5
            assert foreign == unknown
            assert other.get("/v1/chat/sessions").json()["sessions"] == []
    assert len(_messages(ana, session)) == 2


def test_hazard_6_a_deleted_session_is_gone_and_its_deletion_is_told_once(
    ana: httpx2.Client,
) -> None:
    session = ana.post(CHAT, json=_said("secret")).json()["session_id"]
    place = f"/v1/chat/sessions/{session}"
    told = ana.delete(place).json()
    assert (told["session_id"], told["sessions"], told["messages"]) == (session, 1, 2)
    assert ana.delete(place).status_code == 404
    assert ana.get(f"{place}/messages").status_code == 404
    assert ana.post(CHAT, json=_said("x", session_id=session)).status_code == 404


def test_a_broken_stream_raises_in_the_openai_client(
    upstream: OpenAIServer, service: Service
) -> None:
    upstream.queue(text("one two three", cut_after=2))
    with OpenAI(base_url=f"{service.url}/v1", api_key=token(), max_retries=0) as client:
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}], stream=True
        )
        with pytest.raises(APIError, match="broke off"):
            list(stream)


def test_a_question_that_says_nothing_is_refused_before_anything_is_stored(
    upstream: OpenAIServer, ana: httpx2.Client
) -> None:
    before = len(upstream.requests), ana.get("/v1/chat/sessions").json()
    for content in ("", "  ", "a\x00b", None, [{"type": "image_url", "image_url": {"url": "x"}}]):
        assert ana.post(CHAT, json=_said(content)).status_code == 422  # type: ignore[arg-type]
    for messages in ([], [{"role": "assistant", "content": "hello"}]):
        assert ana.post(CHAT, json={"messages": messages}).status_code == 422
    lone = b'{"messages": [{"role": "user", "content": "\\ud800"}]}'
    headers = {"Content-Type": "application/json"}
    assert ana.post(CHAT, content=lone, headers=headers).status_code == 422
    assert (len(upstream.requests), ana.get("/v1/chat/sessions").json()) == before
