"""The service killed in a stream, two processes on one store, keys that rotate, and its logs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.key_set import KeySet
from tests.doubles.openai_server import Gate, OpenAIServer, cut, gated, hang, status, text
from tests.doubles.service import JWT_MODE, Service, bearer, token

CHAT = "/v1/chat/completions"


@pytest.fixture
def upstream() -> Iterator[OpenAIServer]:
    with OpenAIServer.running() as server:
        yield server


def _settings(upstream: OpenAIServer, **more: str) -> dict[str, str]:
    return {
        **JWT_MODE,
        "MUNIMENT_MODEL": "m",
        "MUNIMENT_MODEL_BASE_URL": upstream.url,
        "MUNIMENT_MODEL_TIMEOUT_SECONDS": "2",
        **more,
    }


def _said(content: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


def _messages(service: Service, session: str) -> list[tuple[str, str, bool]]:
    with service.client(**bearer()) as client:
        rows = client.get(f"/v1/chat/sessions/{session}/messages").json()["messages"]
    return [(row["role"], row["content"], row["partial"]) for row in rows]


def test_killed_in_a_stream_the_question_is_kept_and_the_session_free_again(
    upstream: OpenAIServer, tmp_path: Path
) -> None:
    gate = Gate()
    upstream.queue(gated("one two three", gate, after=2))
    settings = _settings(upstream, MUNIMENT_LEASE_SECONDS="3")
    service = Service.start(tmp_path, **settings)
    with (
        service.client(**bearer()) as client,
        client.stream("POST", CHAT, json=_said("count", stream=True)) as response,
    ):
        session = response.headers["muniment-session-id"]
        gate.reached.wait(10)
        service.kill()
    gate.open()
    with Service.running(tmp_path, **settings) as again, again.client(**bearer()) as client:
        reply = client.post(CHAT, json=_said("and now?", session_id=session))
        until = time.monotonic() + 20
        while reply.status_code == 409 and time.monotonic() < until:
            assert int(reply.headers["retry-after"]) <= 3
            reply = client.post(CHAT, json=_said("and now?", session_id=session))
        assert reply.status_code == 200
        kept = _messages(again, session)
        assert kept[0] == ("user", "count", False)
        assert all(partial for role, said, partial in kept if said.startswith("one"))
        assert kept[-2:] == [("user", "and now?", False), ("assistant", "ok", False)]


def test_stopped_politely_a_stream_is_finished_first(
    upstream: OpenAIServer, tmp_path: Path
) -> None:
    gate = Gate()
    upstream.queue(gated("one two three", gate, after=2))
    with (
        Service.running(tmp_path, **_settings(upstream)) as service,
        service.client(**bearer()) as client,
    ):
        with client.stream("POST", CHAT, json=_said("count", stream=True)) as response:
            session = response.headers["muniment-session-id"]
            gate.reached.wait(10)
            service.process.terminate()
            gate.open()
            assert response.read().endswith(b"data: [DONE]\n\n")
        service.process.wait(20)
    with Service.running(tmp_path, **_settings(upstream)) as again:
        assert _messages(again, session)[-1] == ("assistant", "one two three", False)


def test_two_processes_on_one_store_take_turns_in_a_session(
    upstream: OpenAIServer, tmp_path: Path
) -> None:
    settings = _settings(upstream)
    with Service.running(tmp_path, **settings) as one, Service.running(tmp_path, **settings) as two:
        with one.client(**bearer()) as client:
            session = client.post(CHAT, json=_said("first")).json()["session_id"]
        gate = Gate()
        upstream.queue(gated("slow", gate))
        with (
            one.client(**bearer()) as client,
            client.stream(
                "POST", CHAT, json=_said("a", session_id=session, stream=True)
            ) as response,
        ):
            gate.reached.wait(10)
            with two.client(**bearer()) as other:
                refused = other.post(CHAT, json=_said("b", session_id=session))
                assert refused.status_code == 409
                assert other.delete(f"/v1/chat/sessions/{session}").status_code == 409
            gate.open()
            response.read()
        with two.client(**bearer()) as other:
            assert other.post(CHAT, json=_said("b", session_id=session)).status_code == 200
        said = [row[1] for row in _messages(one, session)]
        assert said == ["first", "ok", "a", "slow", "b", "ok"]


def test_hazard_21_a_key_is_one_request_on_all_replicas(
    upstream: OpenAIServer, tmp_path: Path
) -> None:
    settings = _settings(upstream)
    headers = {**bearer(), "Idempotency-Key": "k1"}
    with Service.running(tmp_path, **settings) as one, Service.running(tmp_path, **settings) as two:
        gate = Gate()
        upstream.queue(gated("only once", gate))

        def ask(service: Service) -> tuple[int, Any]:
            with service.client(**headers) as client:
                answer = client.post(CHAT, json=_said("once"))
            return answer.status_code, answer.json()

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(ask, one)
            gate.reached.wait(10)
            assert ask(two)[0] == 409
            gate.open()
            answered = first.result()
        assert ask(two) == answered
        assert len(upstream.requests) == 1
        with two.client(**headers) as client:
            assert client.post(CHAT, json=_said("twice")).status_code == 422
        with two.client(**{**bearer("bo"), "Idempotency-Key": "k1"}) as client:
            assert client.post(CHAT, json=_said("twice")).status_code == 200


@pytest.mark.parametrize("way", ["asked", "streamed"])
def test_no_log_line_metric_or_error_holds_text_a_token_or_a_user(
    upstream: OpenAIServer, tmp_path: Path, way: str
) -> None:
    secret, user, bearer_token = "xylophone-orchard", "quetzalcoatl-user", ""
    bearer_token = token(user, role="admin", tenants=["DEFAULT", "tarantula-tenant"])
    seen: list[str] = []
    with (
        Service.running(tmp_path, **_settings(upstream)) as service,
        service.client(Authorization=f"Bearer {bearer_token}") as client,
    ):
        upstream.queue(
            text(secret), status(500, message=secret), cut(), hang(),
            text(f"{secret} {secret} {secret}", cut_after=2),
        )  # fmt: skip
        for _ in range(5):
            answer = client.post(CHAT, json=_said(secret, stream=way == "streamed"))
            if answer.status_code != 200:
                seen.append(answer.text)
        memory = client.post("/v1/memory/memories", json={"content": secret}).json()["memory_id"]
        for method, path, body in (
            ("POST", "/v1/memory/memories", {"content": secret, secret: secret}),
            ("POST", "/v1/memory/memories", {"content": secret, "scope": secret}),
            ("POST", "/v1/memory/memories", {"content": secret, "valid_from": secret}),
            ("POST", "/v1/memory/memories", {"content": secret, "scope": "session"}),
            ("POST", "/v1/memory/memories", {"content": f"{secret}\x00"}),
            (
                "POST",
                "/v1/memory/memories",
                {"content": secret, "metadata": {"a": [secret] * 9999}},
            ),
            ("POST", "/v1/memory/search", {"query": secret, "as_of": secret}),
            ("POST", "/v1/memory/context", {"question": secret}),
            ("GET", f"/v1/memory/memories/{secret}", None),
            ("GET", f"/v1/memory/memories?cursor={secret}&tenant=DEFAULT", None),
            ("GET", f"/v1/chat/sessions?tenant={secret}", None),
            ("DELETE", f"/v1/chat/sessions/{secret}", None),
            ("PUT", f"/v1/chat/sessions/{secret}", None),
            ("GET", f"/{secret}", None),
            ("POST", CHAT, {"messages": [{"role": secret, "content": secret}]}),
            ("POST", CHAT, _said(secret, session_id=secret)),
            ("POST", CHAT, _said(secret, memory="full")),
        ):
            answer = client.request(method, path, json=body)
            assert 400 <= answer.status_code < 500, (method, path, answer.status_code)
            seen.append(answer.text)
        broken = b'{"messages": [{"role": "user", "content": "xylophone-orchard'
        seen.append(client.post(CHAT, content=broken).text)
        client.get("/v1/chat/sessions", params={"tenant": "tarantula-tenant"})
        client.delete(f"/v1/memory/memories/{memory}")
        client.delete(f"/v1/memory/users/{user}")
        seen.append(client.get("/metrics").text)
        bad = client.get("/v1/chat/sessions", headers={"Authorization": f"Bearer {secret}"})
        seen.append(bad.text)
        assert bad.status_code == 401
    seen.append(service.logged())
    assert "chat_completion 200" in seen[-1]
    for hidden in (secret, user, "tarantula-tenant", bearer_token, bearer_token.split(".")[2]):
        assert not [each for each in seen if hidden in each], hidden


@pytest.fixture
def key_set() -> Iterator[KeySet]:
    with KeySet.running() as served:
        yield served


def test_a_key_set_that_rotates_is_followed_and_foreign_keys_cost_one_fetch(
    key_set: KeySet, tmp_path: Path
) -> None:
    key_set.rotate("k1")
    elsewhere = KeySet()
    elsewhere.rotate("k9")
    settings = {"MUNIMENT_AUTH_MODE": "jwt", "MUNIMENT_AUTH_JWKS_URL": key_set.url}

    try:
        with Service.running(tmp_path, **settings) as service, service.client() as client:

            def asked(signed: str) -> int:
                headers = {"Authorization": f"Bearer {signed}"}
                return client.get("/v1/chat/sessions", headers=headers).status_code

            assert asked(key_set.signed("k1")) == 200
            old = key_set.keys["k1"]
            key_set.rotate("k2")
            assert asked(key_set.signed("k2")) == 200
            assert asked(key_set.signed("k1", old)) == 401
            fetched = key_set.fetched
            for number in range(20):
                assert asked(elsewhere.signed("k9", kid=f"unknown{number}")) == 401
            assert key_set.fetched <= fetched + 1
            for headers in ({"jku": elsewhere.url}, {"x5u": elsewhere.url}):
                assert asked(elsewhere.signed("k9", **headers)) == 401
            assert asked(elsewhere.signed("k9", kid="k2")) == 401
            assert elsewhere.fetched == 0
    finally:
        elsewhere.close()


def test_a_turn_is_answered_while_the_database_is_away_and_kept_again_when_it_is_back(
    upstream: OpenAIServer, tmp_path: Path
) -> None:
    database, away = tmp_path / "memory.db", tmp_path / "away"
    with (
        Service.running(tmp_path, **_settings(upstream)) as service,
        service.client(**bearer()) as client,
    ):
        session = client.post(CHAT, json=_said("hello")).json()["session_id"]
        database.rename(away)
        for asked in (_said("still here?", session_id=session), _said("and anew?")):
            answer = client.post(CHAT, json=asked)
            assert answer.status_code == 200, answer.text
            assert answer.json()["memory_persisted"] is False
        away.rename(database)
        again = client.post(CHAT, json=_said("back?", session_id=session))
        assert again.json()["memory_persisted"] is True
        told = [content for role, content, _ in _messages(service, session) if role == "user"]
        assert told == ["hello", "back?"]
