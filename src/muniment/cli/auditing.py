"""`audit verify`: whether the log is what was written, and whether it holds a receipt."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli import options
from muniment.cli.consent import ask
from muniment.cli.exits import FAILED, BadInput, Failed
from muniment.cli.output import (
    complain,
    console,
    counted,
    erased_words,
    forget_warnings,
    print_json,
    say,
)
from muniment.cli.running import configured_url, not_there_yet, with_store
from muniment.errors import AuditError
from muniment.governance.audit import VerifyResult, verify_audit_log
from muniment.governance.audit_record import AuditRecord
from muniment.governance.audit_verification import find_receipt
from muniment.governance.receipts import parse_receipt

if TYPE_CHECKING:
    from muniment.wiring import AsyncStore

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="Verify the audit log.")

_HASH = re.compile("[0-9a-f]{64}")
_COUNTS = ("entries", "derived", "sessions", "messages", "working_states")


@app.callback()
def audit() -> None:
    """Verify the audit log."""


@app.command()
def verify(
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            help="This file alone, without its store; by default MUNIMENT_AUDIT_PATH.",
            show_default=False,
        ),
    ] = None,
    receipt: Annotated[
        str | None,
        typer.Option("--receipt", help="What erase printed: the log must hold that erasure."),
    ] = None,
    expected_count: Annotated[
        int | None,
        typer.Option("--expected-count", min=0, help="The log must have so many records."),
    ] = None,
    expected_last_hash: Annotated[
        str | None,
        typer.Option("--expected-last-hash", help="The last record must have this hash."),
    ] = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Follow the chain of the audit log from its first record to its last.

    Edited, inserted, removed and reordered records are found. With its store, the log must also
    hold all that the store recorded. A cut-off end or a log written anew is found by the count
    and the last hash of an earlier verification, kept elsewhere. Exit code 1 where it is not sound.
    """
    _check(receipt, expected_last_hash)
    path = log or _configured_log()
    found = verify_audit_log(
        path, expected_count=expected_count, expected_last_hash=expected_last_hash, receipt=receipt
    )
    beside = None if log is not None else _by_store(url)
    if found.ok and beside is not None and not beside.ok:
        found = replace(found, ok=False, error=beside.error, line=beside.line)
    record = None if receipt is None else find_receipt(path, receipt)
    if as_json:
        print_json({**asdict(found), "erasure": None if record is None else _erasure(record)})
    else:
        _print(found, record)
    if not found.ok:
        raise typer.Exit(FAILED)


@app.command()
def restart(
    yes: options.Yes = False, url: options.Url = None, as_json: options.Json = False
) -> None:
    """Go on with a new log, or an older one, after the damaged one was put away.

    A first record in it says what is given up: how many records the store knew of, and the hash
    of the last. Start other processes on the store anew afterwards.
    """
    _configured_log()
    ask("let the store go on with the log that is there, giving up the one before", yes=yes)

    async def work(store: AsyncStore) -> bool:
        go_on = getattr(store, "restart_audit", None)  # only where the log is a file
        if go_on is None:
            raise Failed("this store keeps its log in itself: there is nothing to restart")
        return bool(await go_on())

    try:
        restarted = with_store(url, work)
    except AuditError as error:
        raise Failed(f"{error}; put that log away first, then restart") from None
    forget_warnings()  # that the old log was unfit
    if as_json:
        print_json({"restarted": restarted})
    else:
        say(console(), "a new log begins" if restarted else "nothing to give up: the log goes on")


def _check(receipt: str | None, last_hash: str | None) -> None:
    if receipt is not None:
        parse_receipt(receipt)
    if last_hash is not None and not _HASH.fullmatch(last_hash):
        raise BadInput("--expected-last-hash: must be 64 hexadecimal digits, lower case")


def _configured_log() -> Path:
    from muniment.settings import load_settings

    path = load_settings().audit_path
    if path is None:
        raise BadInput("--log: is needed, since MUNIMENT_AUDIT_PATH names no audit log")
    return Path(path)


def _by_store(url: str | None) -> VerifyResult | None:
    """What the store says of its log; None where there is no store yet."""
    if not_there_yet(url or configured_url()):
        return None

    async def work(store: AsyncStore) -> VerifyResult | None:
        return await store.verify_audit()

    return with_store(url, work)


def _erasure(record: AuditRecord) -> dict[str, Any]:
    counts = {name: record.data.get(name) for name in _COUNTS}
    return {"sequence": record.sequence, "time": record.time, "realm": record.realm, **counts}


def _print(found: VerifyResult, record: AuditRecord | None) -> None:
    records = counted(found.records, "record", "records")
    if not found.ok:
        complain(f"the audit log is not sound: {found.error} ({records} before that are sound)")
        return
    out = console()
    say(out, f"sound: {records}")
    if record is not None:
        say(out, f"the receipt is that of record {record.sequence}, {record.time}:")
        say(out, f"{record.realm} was erased: {erased_words(record.data)}", indent=2)
    out.print("to find a cut-off end later, keep elsewhere:")
    out.print(f"  --expected-count {found.records}", soft_wrap=True)
    out.print(f"  --expected-last-hash {found.last_hash}", soft_wrap=True)
