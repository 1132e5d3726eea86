"""`bench quality`: how well recall does on one's own questions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli import options
from muniment.cli.exits import BadInput
from muniment.cli.output import console, print_json, say
from muniment.cli.progress import progress

if TYPE_CHECKING:
    from muniment.evaluation.dataset import Conversation
    from muniment.evaluation.product_path import Setup
    from muniment.evaluation.report import Measured

app = typer.Typer(no_args_is_help=True, help="Measure this memory on one's own data.")

_KS = (5, 10, 20)


@app.callback()
def _of_several() -> None:
    """Measure this memory on one's own data."""


@app.command()
def quality(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Messages and questions: JSON Lines, or LoCoMo's JSON."
        ),
    ],
    embedder: Annotated[str, typer.Option(help="auto, local or none.")] = "auto",
    ranking: Annotated[
        str | None, typer.Option(help="learned, evidence or hybrid; else the setting's.")
    ] = None,
    at_the_end: Annotated[
        bool,
        typer.Option(
            "--at-the-end", help="Ask as of the last message, so that recency counts; else now."
        ),
    ] = False,
    questions: Annotated[
        Path | None,
        typer.Option(help="Write each question, what was recalled and what was missed here."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Store a file's messages, ask its questions, and say how much of the evidence was recalled.

    The messages go into a store made for this and removed again. A line of the file holds an id,
    messages (id, session, role, name, text, created_at), memories (id, type, text, created_at)
    and questions (question, evidence, category); evidence names messages and memories by id.
    """
    from muniment.evaluation.dataset import QuestionSetError, read
    from muniment.evaluation.product_path import Setup
    from muniment.evaluation.report import by_category, evidence_counts, surroundings, table

    _check_choice("--embedder", embedder, ("auto", "local", "none"))
    if ranking is not None:
        _check_choice("--ranking", ranking, ("learned", "evidence", "hybrid"))
    try:
        conversations = read(file)
    except QuestionSetError as error:
        raise BadInput(str(error)) from None
    setup = Setup(embedder=embedder, ranking=ranking, at_the_end=at_the_end)
    measured = asyncio.run(_measured(conversations, setup, silent=as_json))
    groups, evidence = by_category(measured), evidence_counts(conversations)
    if questions:
        _write_questions(questions, measured)
    if as_json:
        print_json({"figures": groups, "evidence": evidence, "surroundings": surroundings()})
    else:
        say(console(), table(groups))
        say(console(), f"evidence ids: {_counted(evidence)}")


async def _measured(
    conversations: Sequence[Conversation], setup: Setup, *, silent: bool
) -> list[Measured]:
    from muniment.evaluation.product_path import rankings
    from muniment.evaluation.report import measure

    found = []
    with progress("Asking", total=len(conversations), silent=silent) as seen:
        for place, one in enumerate(conversations, 1):
            found.append(await rankings(one, setup, limit=max(_KS)))
            seen(place)
    return measure(conversations, found, _KS)


def _check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise BadInput(f"{name}: must be one of {', '.join(allowed)}")


def _write_questions(path: Path, measured: Sequence[Measured]) -> None:
    lines = "".join(json.dumps(one.record(), ensure_ascii=False) + "\n" for one in measured)
    try:
        path.write_text(lines, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--questions: {error.strerror or 'cannot be written'}") from None


def _counted(evidence: dict[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in evidence.items())
