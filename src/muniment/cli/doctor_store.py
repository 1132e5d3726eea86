"""The doctor's look at the store: where it is, whether it can be used, and what it needs."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from muniment.cli.diagnosis import Finding, tried
from muniment.cli.doctor_governance import governance_findings
from muniment.cli.exits import one_line
from muniment.cli.running import configured_url, not_there_yet, path_of

_ADVICE = (
    ("run `muniment migrate`", "muniment migrate --url, with the login that owns the database"),
    ("may not act as", "GRANT muniment_app TO the login; see docs/postgres.md"),
    ("extra 'postgres'", "pip install 'muniment[postgres]'"),
    ("extra 'valkey'", "pip install 'muniment[valkey]', or unset MUNIMENT_VALKEY_URL"),
    ("PostgreSQL cannot be reached", "check that the server runs, and its host and port"),
    ("connection to PostgreSQL failed", "check that the server runs, and its host and port"),
    ("install a newer muniment", "pip install -U muniment; the file was left as it is"),
    ("or is encrypted", "check the name; an encrypted file needs MUNIMENT_ENCRYPTION_KEY"),
    ("encryption key does not fit", "set MUNIMENT_ENCRYPTION_KEY to the key it was made with"),
    ("file is not encrypted", "unset MUNIMENT_ENCRYPTION_KEY, export, import into a new file"),
    ("without a cipher", "pip uninstall apsw; pip install --force-reinstall apsw-sqlite3mc"),
    ("another application's database", "name another file with --url"),
    ("run reindex", "muniment reindex, or the embedder that the file was made with"),
)


def store_findings(url: str | None) -> list[Finding]:
    """What there is to say about the store of `url`, or of the settings."""
    target = tried(lambda: url or configured_url())
    if isinstance(target, Exception):
        return [Finding("settings", "failed", one_line(target), "correct or unset it")]
    place = without_secret(target)
    path = tried(lambda: path_of(target))
    if isinstance(path, Exception):
        words = one_line(path)
        return [Finding("store", "failed", f"{place}: {words}", _advice(words))]
    problem = None if path is None else _problem(path)
    if problem is not None:
        return [Finding("store", "failed", f"{place}: {problem[0]}", problem[1])]
    if not_there_yet(target):
        future = Finding("store", "ok", f"{place}: not there yet, the first write makes it")
        return [future, *governance_findings({})]
    described = tried(lambda: asyncio.run(_describe(target)))
    if isinstance(described, Exception):
        words = one_line(described)
        return [Finding("store", "failed", f"{place}: {words}", _advice(words))]
    reachable = Finding("store", "ok", f"{place}: reachable")
    return [reachable, *_schema(described), *governance_findings(described)]


def without_secret(url: str) -> str:
    """`url` without the password in it."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@")


def _problem(path: Path) -> tuple[str, str] | None:
    """What is wrong with where the file is, and what to do; None where nothing is."""
    folder = path.parent
    if path.is_dir():
        return "is a folder, not a file", f"name a file in it: --url sqlite:///{path}/muniment.db"
    if not folder.is_dir():
        return "its folder does not exist", f"mkdir -p {folder}"
    if not _can_write(folder):
        return (
            "its folder is read-only",
            f"make {folder} writable: journals are kept beside the file",
        )
    if path.exists() and isinstance(tried(lambda: path.open("r+b").close()), Exception):
        return "the file cannot be written to", f"make {path} readable and writable for this user"
    return None


def _can_write(folder: Path) -> bool:
    """Tried rather than asked: the answer also holds for a read-only file system."""
    return not isinstance(tried(lambda: tempfile.TemporaryFile(dir=folder).close()), Exception)


def _advice(words: str) -> str:
    for phrase, advice in _ADVICE:
        if phrase in words:
            return advice
    return "check --url, or MUNIMENT_DATABASE_URL"


def _schema(described: Mapping[str, str]) -> list[Finding]:
    names = ("schema", "postgres", "pgvector")
    return [
        Finding(name, "ok", f"version {described[name]}") for name in names if name in described
    ]


async def _describe(url: str) -> Mapping[str, str]:
    from muniment.wiring import open_store

    async with open_store(url) as store:
        return await store.describe()
