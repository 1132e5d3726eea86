"""The reference page of the commands, made from the commands themselves.

`python -m muniment.cli.reference` prints it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import typer

from muniment.cli.app import app
from muniment.cli.exits import EXIT_CODES

_HEAD = f"""# The commands

Made from the code by `make docs`; a test compares them. {EXIT_CODES} Every failure is one line on
standard error. Every command takes `--json` and then prints one document and nothing else.
`--url` names the store, by default that of `MUNIMENT_DATABASE_URL`. Identity is taken as given:
the command line is for a trusted operator.
"""
_EVERYWHERE = {"help", "as_json", "url"}


def reference() -> str:
    """The page, in Markdown."""
    sections = (_section(name, command) for name, command in _commands(app))
    return "\n".join([_HEAD, *sections])


def _commands(group: typer.Typer) -> Iterator[tuple[str, Any]]:
    yield from _below("muniment", typer.main.get_command(group))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    for key, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from _below(f"{name} {key}", each)
        else:
            yield f"{name} {key}", each


def _section(name: str, command: Any) -> str:
    shown = [each for each in command.params if each.name not in _EVERYWHERE]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    usage = " ".join([name, *map(_argument_name, arguments), *map(_needed, options)]).rstrip()
    lines = [f"## `{usage}`", "", inspect.cleandoc(command.help or ""), ""]
    if shown:
        lines += ["| | | default |", "|---|---|---|"]
        lines += [_row(f"`{_argument_name(each)}`", each) for each in arguments]
        lines += [_row(", ".join(f"`{opt}`" for opt in each.opts), each) for each in options]
        lines.append("")
    return "\n".join(lines)


def _argument_name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _needed(option: Any) -> str:
    return f"{option.opts[0]} {option.name.upper()}" if option.required else ""


def _row(name: str, parameter: Any) -> str:
    default = "needed" if parameter.required else parameter.default
    shown = "" if default in (None, False) else str(default)
    return f"| {name} | {(parameter.help or '').replace('|', '/')} | {shown} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
