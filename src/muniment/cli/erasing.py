"""`erase`, `sweep` and `compact`: what goes away, and its bytes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import options
from muniment.cli.consent import ask
from muniment.cli.identity import realm_of, realm_words
from muniment.cli.output import console, counted, erased_words, print_json, say
from muniment.cli.running import with_store
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.stores.erasure import ErasureResult

if TYPE_CHECKING:
    from muniment.wiring import AsyncStore


def erase(
    tenant: Annotated[
        str,
        typer.Option("--tenant", help="Of this tenant.", rich_help_panel=options.OPERATOR),
    ],
    user: options.RealmUser = None,
    agent: options.RealmAgent = None,
    session: options.RealmSession = None,
    keep_derived: Annotated[
        bool,
        typer.Option("--keep-derived", help="Keep what was derived from it alone, elsewhere."),
    ] = False,
    yes: options.Yes = False,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Erase memories, sessions, messages, summaries and working state, and their bytes.

    What was derived from the erased alone goes with it. With an audit log, the receipt can be
    held against it later: muniment audit verify --receipt.
    """
    realm = realm_of(tenant, user, agent, session)
    words = realm_words(tenant, user, agent, session)

    async def work(store: AsyncStore) -> ErasureResult:
        if not yes:
            expected = await store.erase(realm, cascade=not keep_derived, preview=True)
            if not expected.anything:
                return expected
            ask(f"erase {erased_words(asdict(expected))} of {words}")
        return await store.erase(realm, cascade=not keep_derived)

    result = with_store(url, work)
    if as_json:
        print_json(asdict(result))
    else:
        _print(result, words)


def _print(result: ErasureResult, words: str) -> None:
    out = console()
    say(out, f"erased {erased_words(asdict(result))} of {words}")
    if result.pending:
        say(
            out,
            "pending: the rows are gone, their bytes are still in the file or its journal, since "
            "another process reads it or it is large; muniment compact completes it",
        )
    if result.receipt is not None:
        out.print(f"receipt: {result.receipt}", soft_wrap=True)


def sweep(
    tenant: options.RealmTenant = options.DEFAULT_TENANT,
    user: options.RealmUser = None,
    agent: options.RealmAgent = None,
    session: options.RealmSession = None,
    yes: options.Yes = False,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Remove the memories whose time is over; until then only readers do not see them."""
    realm = realm_of(tenant, user, agent, session)
    words = realm_words(tenant, user, agent, session)

    async def work(store: AsyncStore) -> int:
        if not yes:
            expired = await _expired(store, realm)
            if not expired:
                return 0
            ask(f"remove {counted(expired, 'expired memory', 'expired memories')} of {words}")
        return await store.sweep_expired(realm)

    swept = with_store(url, work)
    if as_json:
        print_json({"swept": swept})
    else:
        say(console(), f"removed {counted(swept, 'expired memory', 'expired memories')} of {words}")


async def _expired(store: AsyncStore, realm: Scope | MemoryOwner) -> int:
    now, count = datetime.now(UTC), 0
    async for entry in store.entries.export(realm):
        ends = entry["expires_at"]
        count += ends is not None and datetime.fromisoformat(ends) <= now
    return count


def compact(url: options.Url = None, as_json: options.Json = False) -> None:
    """Give back the space of what was deleted, and complete erasures that are pending.

    Fails while another process uses the file.
    """
    with_store(url, lambda store: store.compact())
    if as_json:
        print_json({"compacted": True})
    else:
        say(console(), "compacted")
