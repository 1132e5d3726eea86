"""The service in front of a real and very weak language model: no request fails because of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.doubles.service import JWT_MODE, Service, bearer, token
from tests.model.serving import serving

pytestmark = pytest.mark.real_model

SAID = (
    "My name is Ana and I live in Turin.",
    "I am allergic to peanuts, so please keep that in mind.",
    "Where do I live?",
    "What should I not eat?",
)
SHORT: dict[str, Any] = {"model": "any", "max_tokens": 48, "temperature": 0}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {
        "MUNIMENT_MODEL": "smollm2",
        "MUNIMENT_MODEL_TIMEOUT_SECONDS": "120",
        "MUNIMENT_MEMORY_CALL_TIMEOUT_SECONDS": "30",
        "MUNIMENT_MEMORY_TURN_TIMEOUT_SECONDS": "60",
        "MUNIMENT_ALLOW_FULL_MEMORY": "true",
    }
    folder = tmp_path_factory.mktemp("service")
    with (
        serving(context=1024) as url,
        Service.running(folder, **JWT_MODE, **settings, MUNIMENT_MODEL_BASE_URL=url) as running,
    ):
        yield running


@pytest.fixture
def ana(service: Service) -> Iterator[httpx2.Client]:
    with service.client(**bearer("ana")) as client:
        client.timeout = httpx2.Timeout(200)
        yield client


def _rows(client: httpx2.Client, session: str) -> list[dict[str, Any]]:
    answer = client.get(f"/v1/chat/sessions/{session}/messages")
    rows: list[dict[str, Any]] = answer.json()["messages"]
    return rows


@pytest.mark.parametrize("memory", ["off", "full"])
def test_the_openai_client_holds_a_conversation(
    service: Service, ana: httpx2.Client, memory: str
) -> None:
    told: list[str] = []
    with OpenAI(base_url=f"{service.url}/v1", api_key=token(), max_retries=0) as client:
        session = ana.post("/v1/chat/sessions").json()["session_id"]
        more = {"extra_body": {"session_id": session, "memory": memory}}
        for turn, said in enumerate(SAID):
            asked: Any = [{"role": "user", "content": said}]
            if turn % 2:
                chunks = client.chat.completions.create(
                    messages=asked, stream=True, **SHORT, **more
                )
                told.append("".join(each.choices[0].delta.content or "" for each in chunks))
            else:
                whole = client.chat.completions.create(messages=asked, **SHORT, **more)
                assert (whole.model_extra or {})["memory_persisted"] is True
                told.append(whole.choices[0].message.content or "")
    rows = _rows(ana, session)
    assert [each["content"] for each in rows[::2]] == list(SAID)
    assert [each["content"] for each in rows[1::2]] == told
    assert all(told)
    with service.client(**bearer("bo")) as stranger:
        place = f"/v1/chat/sessions/{session}/messages"
        assert stranger.get(place).status_code == 404


def test_a_turns_context_and_facts_are_had_whatever_the_model_says(ana: httpx2.Client) -> None:
    stored = ana.post("/v1/memory/memories", json={"content": "Ana is allergic to peanuts"})
    assert stored.status_code == 201
    question = {"question": "What is Ana allergic to?", "session_id": "s1"}
    context = ana.post("/v1/memory/context", json=question)
    assert context.status_code == 200
    assert "Ana is allergic to peanuts" in [each["content"] for each in context.json()["recalled"]]
    said = [{"role": "user", "content": SAID[0]}, {"role": "assistant", "content": "Noted."}]
    facts = ana.post("/v1/memory/extract", json={"session_id": "s1", "messages": said})
    assert facts.status_code == 200
    assert {each["trust"] for each in facts.json()["memories"]} <= {"model"}


def test_an_agent_run_is_answered(ana: httpx2.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Name a colour."}], "max_tokens": 24}
    answer = ana.post("/v1/agent/completions", json=body)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["run_id"]
    rows = _rows(ana, told["session_id"])
    assert [each["role"] for each in rows] == ["user", "assistant"]
    assert rows[1]["content"] == told["choices"][0]["message"]["content"]
