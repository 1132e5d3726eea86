"""The doctor's look at what governs a store: audit log, pending erasures, quotas, ranking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from muniment.cli.diagnosis import Finding, tried
from muniment.cli.output import counted
from muniment.governance.audit import verify_audit_log
from muniment.settings import Settings, load_settings

_NO_LOG = "none: MUNIMENT_AUDIT_PATH names a file for one"
_RESTART = "see what happened to it; put it away, then: muniment audit restart"


def governance_findings(described: Mapping[str, str]) -> list[Finding]:
    """What there is to say about governance, of a store that says this of itself."""
    settings = tried(load_settings)
    if isinstance(settings, Exception):
        return []  # said already, where the store is looked for
    found = [_audit(settings), *_waiting(described), *_pending(described), *_encryption(described)]
    ranking = Finding("ranking", "ok", f"{settings.ranking} (MUNIMENT_RANKING)")
    return [*found, _quotas(settings), ranking]


def _audit(settings: Settings) -> Finding:
    if settings.audit_path is None:
        return Finding("audit log", "ok", _NO_LOG)
    path = Path(settings.audit_path)
    if not path.parent.is_dir():
        detail = f"{path}: its folder is not there"
        return Finding("audit log", "failed", detail, f"mkdir -p {path.parent}")
    if not path.exists():
        return Finding("audit log", "ok", f"{path}: not there yet, the first write makes it")
    found = verify_audit_log(path)
    if not found.ok:
        return Finding("audit log", "failed", f"{path}: {found.error}", _RESTART)
    return Finding(
        "audit log", "ok", f"{path}: sound, {counted(found.records, 'record', 'records')}"
    )


def _waiting(described: Mapping[str, str]) -> list[Finding]:
    waiting = int(described.get("audit_waiting", "0"))
    if not waiting:
        return []
    detail = f"{counted(waiting, 'record waits', 'records wait')} in the store for the log"
    advice = "they go with the next write once MUNIMENT_AUDIT_PATH names a sound log"
    return [Finding("audit outbox", "waiting", detail, advice)]


def _pending(described: Mapping[str, str]) -> list[Finding]:
    if described.get("erasure_pending", "no") != "yes":
        return []
    detail = "bytes of what was erased are still in the file or its journal"
    return [Finding("erasure", "waiting", detail, "muniment compact, once no process reads it")]


def _encryption(described: Mapping[str, str]) -> list[Finding]:
    state = described.get("encrypted")
    return [] if state is None else [Finding("encryption", "ok", _AT_REST[state])]


_AT_REST = {"yes": "the file is encrypted", "no": "none: MUNIMENT_ENCRYPTION_KEY is for a new file"}


def _quotas(settings: Settings) -> Finding:
    limits = (("memories", settings.quota_entries), ("tokens", settings.quota_tokens))
    words = ", ".join(f"{limit:,} {name}" for name, limit in limits if limit is not None)
    return Finding("quotas", "ok", f"{words} a tenant" if words else "none")
