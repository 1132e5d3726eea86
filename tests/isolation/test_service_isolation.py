"""What one caller has, asked for by another, through every route."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.doubles.app import running_app, url_of
from tests.doubles.requests import REQUESTS, ask
from tests.doubles.service import JWT_MODE, bearer

MEMORIES = "/v1/memory/memories"
ANA = bearer("ana", tenants=["acme"], projects=["apollo"])
OTHERS = {
    "another user of the tenant": bearer("bo", tenants=["acme"], projects=["apollo"]),
    "an admin of the tenant": bearer("root", tenants=["acme"], role="admin"),
    "the same name in another tenant": bearer("ana", tenants=["acme-corp"]),
    "a name that looks alike": bearer("Ana", tenants=["acme"]),
    "a wild card": bearer("%", tenants=["acme"]),
}


@pytest.fixture(params=["sqlite", "postgres", "in_memory"])
async def client(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx2.AsyncClient]:
    store = {"MUNIMENT_DATABASE_URL": url_of(request.param, tmp_path)}
    async with running_app(monkeypatch, **JWT_MODE, **store) as (_, found):
        yield found


def _tenant(headers: dict[str, str]) -> dict[str, str]:
    return {
        "tenant": "acme-corp" if headers is OTHERS["the same name in another tenant"] else "acme"
    }


async def _remember(
    client: httpx2.AsyncClient, content: str, headers: dict[str, str] = ANA, **fields: Any
) -> dict[str, Any]:
    answer = await client.post(
        MEMORIES, json={"content": content, **fields}, headers=headers, params=_tenant(headers)
    )
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _session(client: httpx2.AsyncClient) -> str:
    made = await client.post("/v1/chat/sessions", headers=ANA, params={"tenant": "acme"})
    return str(made.json()["session_id"])


def _told(answer: httpx2.Response) -> tuple[int, Any]:
    body = answer.json() if answer.content else None
    if isinstance(body, dict):
        body.pop("request_id", None)
    return answer.status_code, body


@pytest.mark.parametrize("who", OTHERS)
async def test_hazard_2_foreign_ids_answer_like_ids_that_never_existed(
    client: httpx2.AsyncClient, who: str
) -> None:
    headers = OTHERS[who]
    ids = {
        "session_id": await _session(client),
        "memory_id": (await _remember(client, "Ana's secret is kumquat"))["memory_id"],
        "user_id": "ana",
    }
    before = _told(await client.get(MEMORIES, headers=ANA, params={"tenant": "acme"}))
    for route in REQUESTS:
        if "{user_id}" in route[1] and "admin" in who:
            continue  # an admin may erase a user of the tenant
        if "{" in route[1]:
            foreign = await ask(client, route, headers=headers, params=_tenant(headers), **ids)
            unknown = await ask(client, route, headers=headers, params=_tenant(headers))
            assert _told(foreign) == _told(unknown), route
            assert "kumquat" not in foreign.text
    found = await client.post(
        "/v1/memory/search", json={"query": "kumquat", "session_id": ids["session_id"]},
        headers=headers, params=_tenant(headers),
    )  # fmt: skip
    assert found.json() == {"memories": []}
    assert _told(await client.get(MEMORIES, headers=ANA, params={"tenant": "acme"})) == before


async def test_hazard_3_no_field_of_a_request_names_a_user(client: httpx2.AsyncClient) -> None:
    mine = await _remember(client, "Ana's secret is kumquat")
    bo = OTHERS["another user of the tenant"]
    for field in ("user_id", "user", "tenant_id", "principal_id", "owner"):
        body = {"content": "x", field: "ana"}
        refused = await client.post(MEMORIES, json=body, headers=bo, params={"tenant": "acme"})
        assert refused.status_code == 422, field
        body = {"query": "kumquat", field: "ana"}
        refused = await client.post(
            "/v1/memory/search", json=body, headers=bo, params={"tenant": "acme"}
        )
        assert refused.status_code == 422, field
        listed = await client.get(MEMORIES, headers=bo, params={"tenant": "acme", field: "ana"})
        assert listed.json()["memories"] == []
    smuggled = await _remember(client, "of bo", bo, metadata={"user_id": "ana", "tenant": "x"})
    seen = (await client.get(MEMORIES, headers=ANA, params={"tenant": "acme"})).json()["memories"]
    assert [each["memory_id"] for each in seen] == [mine["memory_id"]]
    assert smuggled["provenance"]["metadata"] == {"user_id": "ana", "tenant": "x"}


async def test_hazard_4_another_tenants_words_change_no_score(client: httpx2.AsyncClient) -> None:
    for content in ("Ana grows kumquat trees", "Ana drinks tea", "Ana likes kumquat jam"):
        await _remember(client, content)

    async def scores() -> Any:
        body = {"query": "kumquat trees", "explain": True}
        found = await client.post(
            "/v1/memory/search", json=body, headers=ANA, params={"tenant": "acme"}
        )
        return [
            (each["memory_id"], each["relevance"], each["lanes"])
            for each in found.json()["memories"]
        ]

    before = await scores()
    assert len(before) >= 2
    for number in range(5):
        for who in ("another user of the tenant", "the same name in another tenant"):
            await _remember(client, f"kumquat trees {number}", OTHERS[who])
    assert await scores() == before


async def test_a_project_is_for_those_whose_token_names_it(client: httpx2.AsyncClient) -> None:
    editor = bearer("ed", tenants=["acme"], projects=["apollo"], role="editor")
    stored = await _remember(
        client, "Apollo ships in May", editor, scope="project", project_id="apollo"
    )
    place = f"{MEMORIES}/{stored['memory_id']}"
    inside = {"tenant": "acme", "project_id": "apollo"}
    seen = await client.get(place, headers=ANA, params=inside)
    assert seen.json()["content"] == "Apollo ships in May"
    assert (seen.json()["own"], seen.json()["provenance"]) == (False, None)
    assert (await client.get(place, headers=ANA, params={"tenant": "acme"})).status_code == 404
    stranger = bearer("cy", tenants=["acme"], projects=["gemini"], role="admin")
    for project in ("apollo", "unheard-of"):
        params = {"tenant": "acme", "project_id": project}
        for method, path in (("GET", place), ("DELETE", place), ("GET", MEMORIES)):
            answer = await client.request(method, path, headers=stranger, params=params)
            assert _told(answer)[0] == 404
            assert answer.json()["detail"] == "no such project"


async def test_who_may_write_and_forget_what_follows_the_role(client: httpx2.AsyncClient) -> None:
    async def write(role: str, scope: str) -> httpx2.Response:
        headers = bearer(role, tenants=["acme"], projects=["apollo"], role=role)
        body = {
            "content": f"{role} {scope}", "scope": scope,
            "project_id": "apollo", "session_id": "s1",
        }  # fmt: skip
        return await client.post(MEMORIES, json=body, headers=headers, params={"tenant": "acme"})

    allowed = {
        "reader": ("user", "session"),
        "editor": ("user", "session", "project"),
        "admin": ("user", "session", "project", "tenant"),
    }
    stored = {}
    for role, scopes in allowed.items():
        for scope in ("user", "session", "project", "tenant"):
            answer = await write(role, scope)
            assert answer.status_code == (201 if scope in scopes else 403), (role, scope)
            stored[role, scope] = answer.json().get("memory_id")
    for scope in ("run", "global"):
        assert (await write("admin", scope)).status_code == 422
    for role in allowed:
        headers = bearer(role, tenants=["acme"], projects=["apollo"], role=role)
        params = {"tenant": "acme", "project_id": "apollo", "session_id": "s1"}
        for scope, needed in (("project", "editor"), ("tenant", "admin")):
            place = f"{MEMORIES}/{stored['admin', scope]}"
            answer = await client.delete(place, headers=headers, params=params)
            higher = list(allowed).index(role) >= list(allowed).index(needed)
            gone = role == "admin" and scope == "project"  # the editor has deleted it
            assert answer.status_code == (404 if gone else 204 if higher else 403), (role, scope)


async def test_trust_is_capped_below_admin(client: httpx2.AsyncClient) -> None:
    assert (await _remember(client, "a fact", trust="owner"))["trust"] == "model"
    assert (await _remember(client, "another", trust="untrusted"))["trust"] == "untrusted"
    admin = bearer("root", tenants=["acme"], role="admin")
    assert (await _remember(client, "a third", admin, trust="owner"))["trust"] == "owner"


async def test_hazard_6_a_forgotten_memory_is_gone_from_every_answer(
    client: httpx2.AsyncClient,
) -> None:
    stored = await _remember(client, "Ana's secret is kumquat")
    place = f"{MEMORIES}/{stored['memory_id']}"
    params = {"tenant": "acme"}
    assert (await client.delete(place, headers=ANA, params=params)).status_code == 204
    assert (await client.delete(place, headers=ANA, params=params)).status_code == 404
    for path in (place, f"{place}/history", MEMORIES):
        assert "kumquat" not in (await client.get(path, headers=ANA, params=params)).text
    for path, body in (
        ("/v1/memory/search", {"query": "what is the secret kumquat?"}),
        ("/v1/memory/context", {"question": "the secret?", "session_id": "s1"}),
    ):
        answer = await client.post(path, json=body, headers=ANA, params=params)
        assert answer.status_code == 200
        assert "secret is" not in answer.text


async def test_what_was_believed_before_stays_to_be_asked(client: httpx2.AsyncClient) -> None:
    rome = await _remember(client, "Ana lives in Rome", valid_from="2026-01-01")
    bonn = await _remember(
        client, "Ana lives in Bonn", valid_from="2026-03-01T00:00:00Z", replaces=rome["memory_id"]
    )
    params = {"tenant": "acme"}
    now = await client.get(MEMORIES, headers=ANA, params=params)
    assert [each["content"] for each in now.json()["memories"]] == ["Ana lives in Bonn"]
    then = await client.get(MEMORIES, headers=ANA, params={**params, "as_of": "2026-02-01"})
    assert [each["content"] for each in then.json()["memories"]] == ["Ana lives in Rome"]
    body = {"query": "Where does Ana live?", "as_of": "2026-02-01T12:00:00+01:00"}
    found = await client.post("/v1/memory/search", json=body, headers=ANA, params=params)
    assert [each["content"] for each in found.json()["memories"]] == ["Ana lives in Rome"]
    place = f"{MEMORIES}/{bonn['memory_id']}/history"
    chain = (await client.get(place, headers=ANA, params=params)).json()["memories"]
    assert [each["memory_id"] for each in chain] == [rome["memory_id"], bonn["memory_id"]]
    for odd in (
        "yesterday",
        "0001-01-01T00:00:00+14:00",
        "2026-02-30",
        "9999-12-31T23:59:59-01:00",
    ):
        answer = await client.get(MEMORIES, headers=ANA, params={**params, "as_of": odd})
        assert answer.status_code == 422, odd


async def test_hazard_20_pages_hold_while_sessions_and_memories_change(
    client: httpx2.AsyncClient,
) -> None:
    params = {"tenant": "acme", "limit": "2"}
    made = [await _session(client) for _ in range(5)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (
            await client.get("/v1/chat/sessions", headers=ANA, params={**params, **cursor})
        ).json()
        seen += [each["session_id"] for each in page["sessions"]]
        await _session(client)
        if len(seen) == 2:
            place = f"/v1/chat/sessions/{seen[-1]}"
            await client.delete(place, headers=ANA, params={"tenant": "acme"})
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == made[::-1]
    for odd in ("x", seen[0], page["next_cursor"] or "eyJ"):
        answer = await client.get(
            "/v1/chat/sessions", headers=ANA, params={**params, "cursor": odd}
        )
        assert answer.status_code == 422
    for number in range(5):
        await _remember(client, f"note {number}")
    notes: list[str] = []
    cursor = {}
    while True:
        page = (await client.get(MEMORIES, headers=ANA, params={**params, **cursor})).json()
        notes += [each["content"] for each in page["memories"]]
        await _remember(client, f"later than {len(notes)}")
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert notes == [f"note {number}" for number in (4, 3, 2, 1, 0)]
    answer = await client.get(
        MEMORIES, headers=ANA, params={**params, "cursor": cursor["cursor"][:-1]}
    )
    assert answer.status_code == 422


async def test_hazard_12_an_exchange_that_says_nothing_stores_nothing(
    client: httpx2.AsyncClient,
) -> None:
    for messages in ([], [{"role": "user", "content": " \n"}]):
        body = {"session_id": "s1", "messages": messages}
        answer = await client.post(
            "/v1/memory/extract", json=body, headers=ANA, params={"tenant": "acme"}
        )
        assert _told(answer) == (200, {"memories": []})


async def test_ids_with_control_characters_are_refused_without_being_repeated(
    client: httpx2.AsyncClient,
) -> None:
    for body in (
        {"content": "x", "session_id": "a\u0001b"},
        {"content": "x\u0000y"},
        {"content": " "},
    ):
        answer = await client.post(MEMORIES, json=body, headers=ANA, params={"tenant": "acme"})
        assert answer.status_code == 422
        assert "must not" in answer.json()["detail"]


async def test_hazard_5_erasing_a_user_takes_all_of_one_and_nothing_of_another(
    client: httpx2.AsyncClient,
) -> None:
    bo, admin = OTHERS["another user of the tenant"], OTHERS["an admin of the tenant"]
    for number in range(30):
        await _remember(client, f"Ana's note {number}")
    session = await _session(client)
    kept = await _remember(client, "of bo", bo)
    params = {"tenant": "acme"}
    usage = (await client.get("/v1/memory/usage", headers=admin, params=params)).json()
    assert usage["entries"] == 31
    told = (await client.delete("/v1/memory/users/ana", headers=admin, params=params)).json()
    assert (told["entries"], told["sessions"]) == (30, 1)
    assert told["receipt"]
    again = (await client.delete("/v1/memory/users/ana", headers=admin, params=params)).json()
    assert (again["entries"], again["sessions"], again["receipt"]) == (0, 0, None)
    assert (await client.get(MEMORIES, headers=ANA, params=params)).json()["memories"] == []
    place = f"/v1/chat/sessions/{session}/messages"
    assert (await client.get(place, headers=ANA, params=params)).status_code == 404
    seen = (await client.get(MEMORIES, headers=bo, params=params)).json()["memories"]
    assert [each["memory_id"] for each in seen] == [kept["memory_id"]]
    usage = (await client.get("/v1/memory/usage", headers=admin, params=params)).json()
    assert usage["entries"] == 1


async def test_erasing_ones_own_session_takes_what_was_noted_in_it(
    client: httpx2.AsyncClient,
) -> None:
    session, params = await _session(client), {"tenant": "acme"}
    await _remember(client, "only here", scope="session", session_id=session)
    kept = await _remember(client, "everywhere")
    place = f"/v1/memory/sessions/{session}"
    told = (await client.delete(place, headers=ANA, params=params)).json()
    assert (told["sessions"], told["entries"]) == (1, 1)
    assert (await client.delete(place, headers=ANA, params=params)).status_code == 404
    params["session_id"] = session
    seen = (await client.get(MEMORIES, headers=ANA, params=params)).json()["memories"]
    assert [each["memory_id"] for each in seen] == [kept["memory_id"]]
