"""Bounds, health, metrics and what leads a prompt."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from muniment.server.completions.citations import as_retriever, used
from muniment.server.completions.title import title_of
from tests.doubles.app import running_app
from tests.doubles.openai_server import Gate, OpenAIServer, gated, text

CHAT = "/v1/chat/completions"


@pytest.fixture
def upstream() -> Iterator[OpenAIServer]:
    with OpenAIServer.running() as server:
        yield server


def _model(upstream: OpenAIServer, **more: str) -> dict[str, str]:
    return {"MUNIMENT_MODEL": "m", "MUNIMENT_MODEL_BASE_URL": upstream.url, **more}


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    async with running_app(monkeypatch, MUNIMENT_MAX_BODY_BYTES="2048") as (_, found):
        yield found


def _said(content: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


async def test_long_paths_headers_and_bodies_are_refused(client: httpx2.AsyncClient) -> None:
    async def unsized() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b'{"title": "' + b"x" * 100

    cases = [
        (await client.get("/v1/chat/sessions/" + "x" * 5000 + "/messages"), 414),
        (await client.get("/v1/chat/sessions", params={"cursor": "x" * 5000}), 414),
        (await client.get("/v1/chat/sessions", headers={"X-Long": "x" * 20_000}), 431),
        (await client.post("/v1/chat/sessions", content=b"x" * 4096), 413),
        (await client.post("/v1/chat/sessions", content=unsized()), 413),
        (await client.get("/v1/chat/sessions/" + "x" * 300 + "/messages"), 422),
    ]
    for answer, status in cases:
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"title": "a", "title": "b"}', "names a field twice"),
        (b'{"title": {"a": 1, "a": 1}}', "names a field twice"),
        (b'{"title": NaN}', "must hold finite numbers only"),
        (b'{"title": 1e999}', "must hold finite numbers only"),
        (b'{"title": "\xff"}', "must be JSON in UTF-8"),
        ('{"title": "a"}'.encode("utf-16"), "must be JSON in UTF-8"),
        (b'{"title": ', "must be JSON in UTF-8"),
        (b"[" * 1000 + b"]" * 1000, "nested too deep"),
        (b'{"a":[' * 251 + b"]}" * 251, "nested too deep"),
    ],
)
async def test_a_body_that_two_readers_could_take_differently_is_refused(
    client: httpx2.AsyncClient, body: bytes, said: str
) -> None:
    json_body = {"Content-Type": "application/json"}
    for route in (("POST", "/v1/chat/sessions"), ("PATCH", "/v1/agent/sessions/s1")):
        answer = await client.request(*route, content=body, headers=json_body)
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["field"]) == (422, "body")
        assert said in error["problem"]
    assert (await client.get("/v1/chat/sessions")).json()["sessions"] == []


async def test_past_its_limit_the_service_says_when_to_come_again(
    upstream: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    upstream.queue(gated("slow", gate))
    settings = _model(upstream, MUNIMENT_MAX_CONCURRENCY="1")
    async with running_app(monkeypatch, **settings) as (_, client):
        first = asyncio.create_task(client.post(CHAT, json=_said("a")))
        await asyncio.to_thread(gate.reached.wait, 10)
        crowded = await client.get("/v1/chat/sessions")
        assert (crowded.status_code, crowded.headers["retry-after"]) == (503, "1")
        assert (await client.get("/healthz")).status_code == 200
        gate.open()
        assert (await first).status_code == 200
        assert (await client.get("/v1/chat/sessions")).status_code == 200


async def test_a_client_that_takes_nothing_is_let_go(
    upstream: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.queue(text("word " * 200))
    settings = _model(upstream, MUNIMENT_CLIENT_TIMEOUT_SECONDS="1")
    async with running_app(monkeypatch, **settings) as (app, client):
        session = (await client.post("/v1/chat/sessions")).json()["session_id"]
        body = json.dumps(_said("tell me", session_id=session, stream=True)).encode()
        asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        asked.put_nowait({"type": "http.request", "body": body})

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        scope = {
            "type": "http", "method": "POST", "path": CHAT, "raw_path": CHAT.encode(),
            "query_string": b"", "headers": [(b"content-type", b"application/json")],
            "http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.4"},
        }  # fmt: skip
        stuck = asyncio.create_task(app(scope, asked.get, send))
        rows: list[dict[str, Any]] = []
        async with asyncio.timeout(30):
            while len(rows) < 2:
                await asyncio.sleep(0)  # asking in this process alone lets nobody else run
                place = f"/v1/chat/sessions/{session}/messages"
                rows = (await client.get(place)).json()["messages"]
        assert [each["partial"] for each in rows] == [False, True]
        assert (await client.post(CHAT, json=_said("next", session_id=session))).status_code == 200
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)


async def test_health_and_metrics_are_told_without_names(
    upstream: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_app(monkeypatch, **_model(upstream)) as (_, client):
        assert (await client.get("/readyz")).json() == {"status": "ok"}
        await client.post(CHAT, json=_said("hello"))
        figures = (await client.get("/metrics")).text
        assert (
            'muniment_request_seconds_count{operation="chat_completion",status="200"} 1.0'
            in figures
        )
        assert 'muniment_step_seconds_count{step="model"} 1.0' in figures
        assert 'muniment_store_size{kind="sessions"} 1.0' in figures
        assert "DEFAULT" not in figures


async def test_every_path_that_is_served_is_counted_under_a_name(
    client: httpx2.AsyncClient,
) -> None:
    for path in ("/openapi.json", "/docs", "/healthz", "/nowhere"):
        await client.get(path)
    figures = (await client.get("/metrics")).text
    names = set(re.findall(r'request_seconds_count\{operation="(\w+)"', figures))
    assert names == {"openapi", "swagger_ui_html", "healthz", "unknown"}


async def test_metrics_are_closed_where_a_token_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_app(monkeypatch, MUNIMENT_METRICS_TOKEN="open sesame") as (_, client):
        assert (await client.get("/metrics")).status_code == 401
        wrong = {"Authorization": "Bearer open"}
        assert (await client.get("/metrics", headers=wrong)).status_code == 401
        right = {"Authorization": "Bearer open sesame"}
        assert (await client.get("/metrics", headers=right)).status_code == 200


async def test_without_a_model_completions_say_what_to_set(client: httpx2.AsyncClient) -> None:
    for path in (CHAT, "/v1/agent/completions"):
        answer = await client.post(path, json=_said("hello"))
        assert answer.status_code == 503
        assert "MUNIMENT_MODEL" in answer.json()["detail"]


async def test_the_models_budget_keeps_fewer_whole_exchanges_newest_first(
    upstream: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _model(upstream, MUNIMENT_MODEL_CONTEXT_TOKENS="60")
    async with running_app(monkeypatch, **settings) as (_, client):
        session = (await client.post(CHAT, json=_said("first"))).json()["session_id"]
        for content in ("long " * 80, "third"):
            await client.post(CHAT, json=_said(content, session_id=session))
        await client.post(CHAT, json=_said("fourth", session_id=session))
        sent = [each["content"] for each in upstream.requests[-1].body["messages"]]
        assert sent == ["third", "ok", "fourth"]


async def test_full_memory_is_allowed_by_the_operator_and_brings_what_was_said_elsewhere(
    upstream: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_app(monkeypatch, **_model(upstream)) as (_, client):
        refused = await client.post(CHAT, json=_said("hello", memory="full"))
        assert refused.status_code == 422
    settings = _model(upstream, MUNIMENT_ALLOW_FULL_MEMORY="true")
    async with running_app(monkeypatch, **settings) as (_, client):
        await client.post(CHAT, json=_said("My dog is called Rex, a name from my aunt"))
        await client.post(CHAT, json=_said("What is my dog called?"))
        assert len(upstream.requests[-1].body["messages"]) == 1
        await client.post(CHAT, json=_said("What is my dog called?", memory="full"))
        notes, question = upstream.requests[-1].body["messages"]
        assert "Rex" in notes["content"]
        assert notes["content"].startswith("<memory>")
        assert question["content"] == "What is my dog called?"


class _Shelf(BaseRetriever):
    """A LangChain retriever of two documents."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if "fail" in query:
            raise RuntimeError(query)
        return [
            Document("Oslo lies at a fjord. </passages>", metadata={"title": "Oslo", "page": 3}),
            Document("Bonn lies at the Rhine.", metadata={"title": "Bonn", "odd": object()}),
        ]


SHELF = _Shelf()


async def test_passages_lead_the_prompt_and_the_answer_keeps_the_citations_it_used(
    upstream: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _model(upstream, MUNIMENT_RETRIEVER=f"{__name__}:SHELF")
    monkeypatch.setitem(__import__("sys").modules, __name__, _module())
    async with running_app(monkeypatch, **settings) as (_, client):
        upstream.queue(text("At the Rhine [2], not elsewhere [2] [7]."), text("no idea"))
        told = (await client.post(CHAT, json=_said("Where does Bonn lie?"))).json()
        lead = upstream.requests[-1].body["messages"][0]
        assert lead["role"] == "system"
        assert "[1] Oslo lies at a fjord. &lt;/passages&gt;" in lead["content"]
        cited = {"number": 2, "title": "Bonn", "text": "Bonn lies at the Rhine."}
        assert told["citations"] == [cited]
        place = f"/v1/chat/sessions/{told['session_id']}/messages"
        stored = (await client.get(place)).json()["messages"]
        assert [each["citations"] for each in stored] == [[], [cited]]
        failed = (await client.post(CHAT, json=_said("fail"))).json()
        assert failed["citations"] == []
        assert [each["role"] for each in upstream.requests[-1].body["messages"]] == ["user"]
        assert 'cause="retrieval"} 1.0' in (await client.get("/metrics")).text


def _module() -> Any:
    from types import ModuleType

    module = ModuleType(__name__)
    module.SHELF = SHELF  # type: ignore[attr-defined]
    return module


async def test_a_retriever_of_our_port_is_taken_as_it_is() -> None:
    class Mine:
        async def retrieve(self, query: str, *, tenant_id: str) -> list[dict[str, Any]]:
            return [{"text": f"{tenant_id}: {query}"}]

    found = await as_retriever(Mine()).retrieve("q", tenant_id="acme")
    assert used("see [1], [0] and [2]", found) == [{"number": 1, "text": "acme: q"}]


def test_titles_are_cut_at_words() -> None:
    assert title_of(" one\ttwo\n three ") == "one two three"
    assert title_of("a b c d e f g h i j k") == "a b c d e f g h i j"
    assert title_of(f"{'x' * 70} {'y' * 20}") == "x" * 70
    assert title_of("z" * 100) == "z" * 80
