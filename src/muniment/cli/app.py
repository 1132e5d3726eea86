"""The command line's entry point."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from muniment.cli import (
    adding,
    auditing,
    bench,
    erasing,
    finding,
    importing_chats,
    migrating,
    reindexing,
    serving,
    sessions,
    transferring,
    using,
)
from muniment.cli.demo import demo
from muniment.cli.doctor import doctor, installed_version
from muniment.cli.exits import (
    BAD_INPUT,
    DONE,
    EXIT_CODES,
    FAILED,
    INTERRUPTED,
    as_typed,
    exit_code,
    one_line,
)
from muniment.cli.output import complain, prepare_streams, warn_in_words
from muniment.errors import AuditError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # the one mode that wraps paragraphs
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Memory for chat and agent applications: isolated, historical, accountable.\n\n"
        "Identity (--tenant, --user, --session, --project) is taken as given: this is a tool "
        f"for a trusted operator.\n\n{EXIT_CODES}"
    ),
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"muniment {installed_version('muniment') or 'run from its source'}")
        raise typer.Exit


@app.callback()
def _whole(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is.", callback=_tell_version, is_eager=True
        ),
    ] = False,
) -> None:
    """What holds for every command."""


_NUMBERS = {"int": "a whole number", "float": "a number"}
_REMEMBER, _GOVERN, _RUN = "Remember and ask", "Govern", "Set up and run"

app.command(rich_help_panel=_REMEMBER)(adding.add)
app.command(rich_help_panel=_REMEMBER)(finding.search)
app.command(rich_help_panel=_REMEMBER)(finding.recall)
app.command(rich_help_panel=_REMEMBER)(finding.context)
app.command(rich_help_panel=_REMEMBER)(adding.history)
app.add_typer(sessions.app, name="sessions", rich_help_panel=_REMEMBER)
app.command("import-chats", rich_help_panel=_REMEMBER)(importing_chats.import_chats)
app.command(rich_help_panel=_GOVERN)(transferring.export)
app.command("import", rich_help_panel=_GOVERN)(transferring.import_)
app.command(rich_help_panel=_GOVERN)(erasing.erase)
app.command(rich_help_panel=_GOVERN)(erasing.sweep)
app.command(rich_help_panel=_GOVERN)(erasing.compact)
app.add_typer(auditing.app, name="audit", rich_help_panel=_GOVERN)
app.command(rich_help_panel=_GOVERN)(reindexing.reindex)
app.command(rich_help_panel=_GOVERN)(using.usage)
app.command(rich_help_panel=_RUN)(demo)
app.add_typer(bench.app, name="bench", rich_help_panel=_RUN)
app.command(rich_help_panel=_RUN)(doctor)
app.command(rich_help_panel=_RUN)(migrating.migrate)
app.command(rich_help_panel=_RUN)(serving.serve)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    prepare_streams()
    warnings = warn_in_words()
    code = run(arguments)
    if code == DONE:
        warnings.tell()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit code. Every failure is one line on standard error."""
    given = None if arguments is None else list(arguments)
    try:
        result = app(given, prog_name="muniment", standalone_mode=False)
        return result if isinstance(result, int) else DONE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    """Say it in one line. A usage error knows its own words and where help is."""
    words = getattr(error, "format_message", None)
    if words is None:
        advice = "; muniment doctor says what to do" if isinstance(error, AuditError) else ""
        complain(f"{as_typed(one_line(error))}{advice}")
        return exit_code(error)
    context = getattr(error, "ctx", None)
    place = context.command_path if context is not None else "muniment"
    if message := _out_of_range(error) or " ".join(words().split()):
        complain(f"{message.rstrip('.')} (see {place} --help)")
    return BAD_INPUT


def _out_of_range(error: Exception) -> str | None:
    """The option and its range, of an error about a number; None of any other."""
    option: Any = getattr(error, "param", None)
    if option is None or type(error) is not typer.BadParameter:
        return None
    kind = _NUMBERS.get(option.bare_type())
    return kind and f"{option.opts[0]}: must be {kind}{_range(option.min, option.max)}"


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return "" if low is None else f" of at least {low:g}"


def _reader_left() -> int:
    """Nobody reads our output: stop, and keep the interpreter's last flush from complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
