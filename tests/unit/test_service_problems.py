"""An error of the service says what to do, in the place where each client looks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from muniment.server.app import create_app
from muniment.server.settings import load_server_settings

ASKED = {"messages": [{"role": "user", "content": "hello"}]}
NO_MODEL = "no model is configured: set MUNIMENT_MODEL and MUNIMENT_MODEL_BASE_URL"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    url = f"sqlite:///{tmp_path}/memory.db"
    settings = {"MUNIMENT_DATABASE_URL": url, "MUNIMENT_EMBEDDER": "none"}
    app = create_app(load_server_settings(settings))
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as opened:
            yield opened


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/agent/completions"])
async def test_a_completion_without_a_model_says_so_where_openai_clients_look(
    client: httpx2.AsyncClient, path: str
) -> None:
    answer = await client.post(path, json=ASKED)
    document = answer.json()
    assert (answer.status_code, document["detail"]) == (503, NO_MODEL)
    assert document["error"] == {"message": NO_MODEL, "type": "no-model", "code": 503}


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ({}, {"content": "is missing"}),
        ({"content": "x", "importance": 2}, {"importance": "must be at most 1.0"}),
        ({"content": "x", "query": 1}, {"query": "is not a field here"}),
        ({"content": "x", "body": 1}, {"body": "is not a field here"}),
    ],
)
async def test_a_field_that_cannot_be_used_is_named_with_its_problem_and_range(
    client: httpx2.AsyncClient, body: dict[str, Any], problems: dict[str, str]
) -> None:
    answer = await client.post("/v1/memory/memories", json=body)
    told = {each["field"]: each["problem"] for each in answer.json()["errors"]}
    assert (answer.status_code, told) == (422, problems)
    assert "error" not in answer.json()


async def test_a_body_without_its_content_type_is_told_to_name_it(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.post("/v1/memory/search", content=b'{"query": "tea"}')
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {
            "field": "body",
            "problem": "must be a JSON object, sent with Content-Type: application/json",
        }
    ]
