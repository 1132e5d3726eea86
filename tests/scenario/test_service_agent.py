"""Agent runs over HTTP: tools, checkpoints, resuming, and what a deletion takes along."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.doubles.app import running_app
from tests.doubles.openai_server import OpenAIServer, status, text, tool_call
from tests.doubles.service import JWT_MODE, bearer

ASK = "/v1/agent/completions"
ANA, BO = bearer("ana", projects=["apollo"]), bearer("bo")


@pytest.fixture
def upstream() -> Iterator[OpenAIServer]:
    with OpenAIServer.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "in_memory"])
async def client(
    request: pytest.FixtureRequest,
    upstream: OpenAIServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[httpx2.AsyncClient]:
    folder = tmp_path if request.param == "sqlite" else None
    async with running_app(monkeypatch, folder, **_settings(upstream)) as (_, found):
        found.headers.update(ANA)
        yield found


def _settings(upstream: OpenAIServer) -> dict[str, str]:
    return {
        **JWT_MODE,
        "MUNIMENT_MODEL": "m",
        "MUNIMENT_MODEL_BASE_URL": upstream.url,
        "MUNIMENT_ALLOW_FULL_MEMORY": "true",
        "MUNIMENT_AGENT_TOOLS": "tests.doubles.tools:TOOLS",
    }


def _said(content: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


def _holding(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.glob("*checkpoints*") if text in path.read_bytes()]


async def _messages(client: httpx2.AsyncClient, session: str) -> list[tuple[str, str, str]]:
    rows = (await client.get(f"/v1/agent/sessions/{session}/messages")).json()["messages"]
    return [(row["role"], row["content"], row["run_id"]) for row in rows]


async def test_a_run_calls_the_operators_tools_and_stores_question_and_answer(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.queue(tool_call("weather", {"city": "Oslo"}), text("It rains in Oslo."))
    answer = await client.post(ASK, json=_said("weather in Oslo?"))
    told = answer.json()
    assert told["choices"][0]["message"]["content"] == "It rains in Oslo."
    run, session = told["run_id"], told["session_id"]
    assert answer.headers["muniment-run-id"] == run
    assert (told["memory_persisted"], told["title"]) == (True, "weather in Oslo?")
    assert await _messages(client, session) == [
        ("user", "weather in Oslo?", run), ("assistant", "It rains in Oslo.", run),
    ]  # fmt: skip
    offered = [each["function"]["name"] for each in upstream.requests[0].body["tools"]]
    assert offered == ["weather"]
    result = upstream.requests[1].body["messages"][-1]
    assert (result["role"], result["content"]) == ("tool", "rain in Oslo")
    listed = (await client.get("/v1/agent/sessions")).json()["sessions"]
    assert [(each["session_id"], each["kind"]) for each in listed] == [(session, "agent")]
    assert (await client.get("/v1/chat/sessions")).json()["sessions"] == []


async def test_a_session_may_alternate_between_chat_and_agent(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    session = (await client.post(ASK, json=_said("a"))).json()["session_id"]
    await client.post("/v1/chat/completions", json=_said("b", session_id=session))
    await client.post(ASK, json=_said("c", session_id=session))
    sent = [each["content"] for each in upstream.requests[-1].body["messages"]]
    assert sent == ["a", "ok", "b", "ok", "c"]


async def test_memory_tools_are_bound_to_the_caller_and_only_where_asked_for(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.queue(
        tool_call("manage_memory", {"content": "Ana likes kumquats"}),
        tool_call("manage_memory", {"content": "x", "user_id": "bo"}),
        tool_call("search_memory", {"query": "kumquats"}),
        text("Noted."),
    )
    await client.post(ASK, json=_said("I like kumquats", memory="full"))
    results = [
        each["content"] for each in upstream.requests[-1].body["messages"] if each["role"] == "tool"
    ]
    assert '"status": "stored"' in results[0]
    assert "no owner fields" in results[1]
    assert "Ana likes kumquats" in results[2]
    upstream.queue(tool_call("search_memory", {"query": "kumquats"}), text("Nothing."))
    await client.post(ASK, json=_said("and?", memory="full"), headers=BO)
    assert '{"memories": []}' in upstream.requests[-1].body["messages"][-1]["content"]
    seen = (await client.get("/v1/memory/memories")).json()["memories"]
    assert [(each["content"], each["trust"]) for each in seen] == [("Ana likes kumquats", "model")]


async def test_a_failed_run_is_resumed_where_it_stopped(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.queue(tool_call("weather", {"city": "Oslo"}), status(500))
    failed = await client.post(ASK, json=_said("weather in Oslo?"))
    assert failed.status_code == 502
    run, session = failed.headers["muniment-run-id"], failed.headers["muniment-session-id"]
    await client.post(ASK, json=_said("something else", session_id=session))
    place = f"/v1/agent/runs/{run}/resume"
    for who in (BO, bearer("ana", tenants=["acme"])):
        params = {"tenant": "acme" if who is not BO else "DEFAULT"}
        assert (await client.post(place, headers=who, params=params)).status_code == 404
    upstream.queue(text("It rains."))
    told = (await client.post(place)).json()
    assert (told["choices"][0]["message"]["content"], told["run_id"]) == ("It rains.", run)
    assert told["memory_persisted"]
    resumed = [each["role"] for each in upstream.requests[-1].body["messages"]]
    assert resumed == ["user", "assistant", "tool"]
    assert (await _messages(client, session))[-1] == ("assistant", "It rains.", run)
    asked = len(upstream.requests)
    again = (await client.post(place)).json()
    assert again["choices"][0]["message"]["content"] == "It rains."
    assert len(upstream.requests) == asked
    assert (await client.post("/v1/agent/runs/run_unknown/resume")).status_code == 404


async def test_a_keyed_retry_of_a_failed_run_goes_on_with_it(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    key = {"Idempotency-Key": "k"}
    upstream.queue(tool_call("weather", {"city": "Oslo"}), status(500), text("It rains."))
    failed = await client.post(ASK, json=_said("weather?"), headers=key)
    told = (await client.post(ASK, json=_said("weather?"), headers=key)).json()
    assert told["run_id"] == failed.headers["muniment-run-id"]
    assert [each["role"] for each in upstream.requests[-1].body["messages"]][-1] == "tool"
    assert len(await _messages(client, told["session_id"])) == 2
    again = (await client.post(ASK, json=_said("weather?"), headers=key)).json()
    assert again["choices"] == told["choices"]


async def test_a_run_that_never_ends_is_ended(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.default = tool_call("weather", {"city": "Oslo"})
    answer = await client.post(ASK, json=_said("weather?"))
    assert (answer.status_code, answer.json()["type"]) == (502, "urn:muniment:problem:agent-steps")


async def test_rubbish_calls_are_told_to_the_model_and_fail_nothing(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.queue(
        tool_call("weather", "{not json"), tool_call("weather", [1]), tool_call("unknown", {}),
        tool_call("weather", {"town": "Oslo"}), text("done"),
    )  # fmt: skip
    answer = await client.post(ASK, json=_said("weather?"))
    assert answer.json()["choices"][0]["message"]["content"] == "done"
    results = [
        each["content"] for each in upstream.requests[-1].body["messages"] if each["role"] == "tool"
    ]
    assert all("error" in each for each in results)
    assert len(results) == 4


async def test_a_stream_tells_the_answer_and_our_fields_last(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.queue(tool_call("weather", {"city": "Oslo"}), text("It rains."))
    answer = await client.post(ASK, json=_said("weather?", stream=True))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert 'rains."' in answer.text
    assert '"memory_persisted": true' in answer.text.split("data: ")[-2]
    assert answer.text.endswith("data: [DONE]\n\n")


async def test_a_streamed_answer_comes_word_by_word_and_is_stored_whole(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.queue(tool_call("weather", {"city": "Oslo"}), text("It rains in Oslo."))
    answer = await client.post(ASK, json=_said("weather?", stream=True))
    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    chunks = [json.loads(each) for each in events]
    words = [each["choices"][0]["delta"].get("content") for each in chunks]
    assert len([each for each in words if each]) == 4
    assert "".join(each for each in words if each) == "It rains in Oslo."
    place = f"/v1/agent/sessions/{chunks[-1]['session_id']}/messages"
    rows = (await client.get(place)).json()["messages"]
    assert [each["content"] for each in rows] == ["weather?", "It rains in Oslo."]
    assert [each["partial"] for each in rows] == [False, False]


async def test_a_run_that_fails_is_an_error_before_its_first_word_and_an_event_after_it(
    upstream: OpenAIServer, client: httpx2.AsyncClient
) -> None:
    upstream.queue(status(500))
    failed = await client.post(ASK, json=_said("one", stream=True))
    assert failed.status_code == 502
    assert "muniment-run-id" in failed.headers
    upstream.queue(text("It rains in Oslo.", cut_after=2))
    broken = await client.post(ASK, json=_said("two", stream=True))
    assert broken.status_code == 200
    assert '"error"' in broken.text.split("data: ")[-1]
    assert "[DONE]" not in broken.text
    place = f"/v1/agent/runs/{broken.headers['muniment-run-id']}/resume"
    told = (await client.post(place)).json()
    assert told["choices"][0]["message"]["content"] == "ok"


@pytest.mark.parametrize("client", ["sqlite"], indirect=True)
async def test_deleting_a_session_takes_its_checkpoints_and_their_bytes_along(
    upstream: OpenAIServer, client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    upstream.queue(tool_call("weather", {"city": "xylophone"}), text("It rains xylophones."))
    told = (await client.post(ASK, json=_said("xylophone weather?"))).json()
    place = f"/v1/agent/sessions/{told['session_id']}"
    assert _holding(tmp_path, b"xylophone")
    gone = (await client.delete(place)).json()
    assert gone["checkpoints"] >= 3
    assert (gone["messages"], gone["index_entries"], gone["memories"]) == (2, 2, 0)
    assert not _holding(tmp_path, b"xylophone")
    run = f"/v1/agent/runs/{told['run_id']}/resume"
    assert (await client.post(run)).status_code == 404


@pytest.mark.parametrize("client", ["sqlite"], indirect=True)
async def test_erasing_a_session_or_a_user_takes_checkpoints_along(
    upstream: OpenAIServer, client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    session = (await client.post(ASK, json=_said("xylophone?"))).json()["session_id"]
    told = (await client.delete(f"/v1/memory/sessions/{session}")).json()
    assert told["checkpoints"] >= 1
    assert not _holding(tmp_path, b"xylophone")
    for _ in range(2):
        await client.post(ASK, json=_said("xylophone?"))
    await client.post(ASK, json=_said("of bo"), headers=BO)
    admin = bearer("root", role="admin")
    told = (await client.delete("/v1/memory/users/ana", headers=admin)).json()
    assert told["checkpoints"] >= 2
    assert not _holding(tmp_path, b"xylophone")
    assert _holding(tmp_path, b"of bo")


@pytest.mark.parametrize("odd", ['"\\ud83b"', "4783261944986970259193856", "[[[1]]]"])
async def test_a_request_of_any_json_is_kept_in_a_checkpoint(
    upstream: OpenAIServer, client: httpx2.AsyncClient, odd: str
) -> None:
    body = f'{{"messages": [{{"role": "user", "content": "x", "extra": {odd}}}], "more": {odd}}}'
    headers = {"Content-Type": "application/json"}
    assert (await client.post(ASK, content=body, headers=headers)).status_code == 200


async def test_no_log_at_any_level_says_what_was_asked(
    upstream: OpenAIServer, client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    upstream.queue(text("a secret answer"))
    assert (await client.post(ASK, json=_said("a secret question"))).status_code == 200
    assert caplog.records
    assert "secret" not in caplog.text
