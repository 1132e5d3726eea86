"""What importing the package does, and what it offers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import muniment

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "muniment").rglob("*.py"))


def _in_fresh_interpreter(code: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT / "src",
    )
    return done.stdout.strip()


def test_importing_the_package_pulls_in_neither_an_extra_nor_a_heavy_library() -> None:
    heavy = "numpy pydantic apsw typer rich Stemmer openai langchain_core onnxruntime tokenizers"
    code = f"import sys, muniment; print([m for m in {heavy.split()} if m in sys.modules])"
    assert _in_fresh_interpreter(code) == "[]"


def test_every_public_name_can_be_imported() -> None:
    for name in [*muniment.__all__, "PostgresStore", "ValkeyWorkingMemoryStore"]:
        assert getattr(muniment, name) is not None
    assert set(muniment.__all__) <= set(dir(muniment))


def test_a_star_import_works_without_any_extra() -> None:
    extras = "psycopg psycopg_pool valkey openai langchain_core langgraph fastapi onnxruntime"
    code = f"import sys; sys.modules.update(dict.fromkeys({extras.split()}))"
    assert _in_fresh_interpreter(f"{code}; from muniment import *; print(Scope)") != ""


def test_a_star_import_never_shadows_the_builtin_memory_error() -> None:
    code = "from muniment import *; import builtins; print(MemoryError is builtins.MemoryError)"
    assert _in_fresh_interpreter(code) == "True"
    assert muniment.MemoryError is not MemoryError


def test_files_and_functions_stay_small() -> None:
    long_files = [str(path) for path in SOURCES if len(path.read_text("utf-8").splitlines()) > 400]
    assert long_files == []
    long_functions = [
        f"{path.name}:{node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _lines_of_code(node) > 40
    ]
    assert long_functions == []


def _lines_of_code(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring; a long signature is not long code."""
    docstring = ast.get_docstring(node, clean=False) or ""
    return (node.end_lineno or node.lineno) - node.body[0].lineno + 1 - docstring.count("\n")


def test_only_the_settings_read_the_environment() -> None:
    readers = [
        path.name
        for path in SOURCES
        if path.name != "settings.py"
        and ("os.environ" in path.read_text("utf-8") or "getenv" in path.read_text("utf-8"))
    ]
    assert readers == []
