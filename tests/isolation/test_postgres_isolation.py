"""PostgreSQL keeps tenants apart twice: by the statements, and by row-level security alone."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.ports import KeyedRequest
from muniment.stores.postgres import PostgresStore, session
from muniment.testing import Kit
from muniment.testing.kit import StoreMaker, person, talk_of
from tests.isolation.test_ports import WRONG, nothing_is_learned
from tests.servers.databases import DATABASES, execute, name_of, owner_url

TABLES = (
    "audience", "memory", "conversation", "message", "working", "derivation", "served",
    "completion_lease", "keyed_request", "audit", "staged", "staged_talk",
)  # fmt: skip
_TENANT = " = %(tenant)s"
_STAGED = (
    "INSERT INTO muniment.staged (tenant_id, import, line, begun, audience_key, audience_digest,"
    " digest, tokens, terms, marks, length, memory_id, scope, memory_type, content, metadata,"
    " importance, created_at, updated_at, source_message_ids, derived_from, entity_ids, trust)"
    " VALUES (%(tenant)s, 1, 1, 0, '', '', '', 1, '', 0, 0, 'm', 'user', 'fact', 'x', '{}', 0, 0,"
    " 0, '[]', '[]', '[]', 0)"
)

_STAGED_TALK = (
    "INSERT INTO muniment.staged_talk (tenant_id, import, line, begun, user_id, session_id, record)"
    " VALUES (%(tenant)s, 1, 1, 0, 'ana', 's1', '{}')"
)


def _maker(url: str) -> StoreMaker:
    return lambda clock, embedder, **options: PostgresStore(
        url, clock=clock, embedder=embedder, **options
    )


@pytest.fixture
def without_the_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every statement without its condition on the tenant."""
    blind = {name: _blinded(statement.decode()) for name, statement in session.SQL.items()}
    monkeypatch.setattr(session, "SQL", {name: text.encode() for name, text in blind.items()})


def _blinded(statement: str) -> str:
    for column in ("a.tenant_id", "m.tenant_id", "c.tenant_id", "d.tenant_id", "tenant_id"):
        statement = statement.replace(f"{column}{_TENANT}", "true")
    return statement


@pytest.fixture
def without_row_security() -> Iterator[str]:
    """A database in which row-level security is off."""
    url = DATABASES.lend()
    _row_security(url, "DISABLE")
    yield url
    _row_security(url, "ENABLE")


def _row_security(url: str, what: str) -> None:
    for table in TABLES:
        statement = "ALTER TABLE muniment.{} " + what + " ROW LEVEL SECURITY"
        execute(owner_url(name_of(url)), sql.SQL(statement).format(sql.Identifier(table)))


@pytest.mark.usefixtures("without_the_clause")
@pytest.mark.parametrize("wrong", ["another tenant", "a wild card for a tenant"])
async def test_row_level_security_alone_keeps_tenants_apart(wrong: str) -> None:
    await nothing_is_learned(_maker(DATABASES.lend()), _maker(DATABASES.lend()), WRONG[wrong])


@pytest.mark.parametrize("wrong", ["another tenant", "a colleague"])
async def test_the_clause_alone_keeps_owners_apart(without_row_security: str, wrong: str) -> None:
    await nothing_is_learned(_maker(without_row_security), _maker(DATABASES.lend()), WRONG[wrong])


@pytest.mark.usefixtures("without_the_clause")
async def test_with_neither_of_them_this_suite_sees_the_leak(without_row_security: str) -> None:
    make = _maker(without_row_security)
    with pytest.raises(AssertionError):
        await nothing_is_learned(make, _maker(DATABASES.lend()), WRONG["another tenant"])


@pytest.fixture
async def filled() -> str:
    """A database with rows of two tenants in every table."""
    url = DATABASES.lend()
    async with Kit.of(
        lambda clock, embedder, **_: PostgresStore(url, clock=clock, embedder=embedder, audit=True)
    ) as kit:
        for tenant in ("acme", "other"):
            owner = person(tenant, run_id="r1")
            await kit.say(owner, "hello")
            await kit.store.working.put(owner, {"step": 1}, ttl_seconds=60)
            source = await kit.entries.add(Scope(tenant, subject="ana"), "a source")
            await kit.entries.add(Scope(tenant, subject="ana"), "derived", derived_from=[source.id])
            store = kit.store
            assert isinstance(store, PostgresStore)
            store.note_served(tenant, 1, 1)
            await store.usage(Scope(tenant))
            await _service(kit, tenant)
            for statement in (_STAGED, _STAGED_TALK):
                execute(owner_url(name_of(url)), statement, {"tenant": tenant})
    return url


async def _service(kit: Kit, tenant: str) -> None:
    talk = talk_of(person(tenant))
    await kit.store.service.acquire(talk, holder="a", ttl_seconds=60)
    request = KeyedRequest("print", talk.session_id, "msg_1")
    await kit.store.service.begin(tenant, talk.user_id, "k", request, ttl_seconds=60)


def _as_application(url: str, tenant: str | None) -> psycopg.Connection[tuple[object, ...]]:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SET ROLE muniment_app")
    if tenant is not None:
        connection.execute("SELECT set_config('muniment.tenant', %s, false)", (tenant,))
    return connection


@pytest.mark.parametrize("table", TABLES)
def test_a_query_without_a_condition_sees_and_changes_its_tenant_alone(
    filled: str, table: str
) -> None:
    name = sql.Identifier("muniment", table)
    everything = execute(
        owner_url(name_of(filled)), sql.SQL("SELECT tenant_id FROM {}").format(name)
    )
    assert {row[0] for row in everything} >= {"acme", "other"}, "there is something to leak"
    with _as_application(filled, "acme") as application:
        seen = application.execute(sql.SQL("SELECT tenant_id FROM {}").format(name)).fetchall()
        assert {row[0] for row in seen} == {"acme"}
        if table != "audit":  # which nobody may change
            application.execute(sql.SQL("UPDATE {} SET tenant_id = tenant_id").format(name))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                application.execute(sql.SQL("UPDATE {} SET tenant_id = 'other'").format(name))
    with _as_application(filled, None) as nobody:
        assert nobody.execute(sql.SQL("SELECT * FROM {}").format(name)).fetchall() == []


def test_deleting_without_a_condition_takes_the_tenants_own_rows(filled: str) -> None:
    with _as_application(filled, "acme") as application:
        for table in ("derivation", "message", "conversation", "memory", "working", "audience"):
            application.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("muniment", table)))
    for table in ("message", "conversation", "memory", "working", "audience"):
        left = execute(
            owner_url(name_of(filled)),
            sql.SQL("SELECT DISTINCT tenant_id FROM {}").format(sql.Identifier("muniment", table)),
        )
        assert left == [("other",)], table


def test_every_table_is_bound_and_led_by_the_tenant(filled: str) -> None:
    owner = owner_url(name_of(filled))
    tables = execute(
        owner,
        "SELECT relname, relrowsecurity FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = 'muniment'::regnamespace",
    )
    assert {name for name, _ in tables} == {*TABLES, "setting"}
    assert all(bound for _, bound in tables)
    first = execute(
        owner,
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " WHERE i.indisprimary AND c.relnamespace = 'muniment'::regnamespace",
    )
    assert dict(first) == dict.fromkeys((*TABLES, "setting"), "tenant_id")


async def test_global_memories_are_read_by_everybody_and_changed_by_their_tenant() -> None:
    async with Kit.of(_maker(DATABASES.lend())) as kit:
        mine, other = person(), person("other")
        await kit.save(mine, "zebra for all", "g", scope=MemoryScope.GLOBAL)
        assert await kit.found(other, "zebra") == ["zebra for all"]
        assert await kit.recalled_contents(other, "zebra") == ["zebra for all"]
        assert not await kit.memories.delete(other, "g")
        await kit.save(other, "another zebra", "g", scope=MemoryScope.GLOBAL)
        got = await kit.memories.get(mine, "g")
        assert got is not None
        assert got.content == "zebra for all"
        assert await kit.store.count(Scope("acme")) == 1
        assert (await kit.store.erase(Scope("other"))).entries == 1
        assert await kit.found(other, "zebra") == ["zebra for all"]
