"""`demo`: the main job on a shipped chat history, offline."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from muniment.cli import options
from muniment.cli.demo_model import POLICY, ModelTurn
from muniment.cli.demo_play import (
    Answer,
    Changed,
    DemoClock,
    Erasure,
    Isolation,
    Play,
    Restarted,
    Section,
    Stored,
    demo_clock,
    unseen,
)
from muniment.cli.demo_show import DemoPrinter, print_summary, section_record
from muniment.cli.output import console, print_json, say
from muniment.demo import load_demo

if TYPE_CHECKING:
    from muniment.wiring import OpenMemory

_MANY: dict[type[Section], str] = {Answer: "questions", Changed: "history"}
_ONE: dict[type[Section], str] = {
    Stored: "stored",
    Isolation: "isolation",
    Restarted: "restart",
    ModelTurn: "model",
    Erasure: "erasure",
}


def demo(
    top: Annotated[
        int, typer.Option("--top", min=1, max=6, help="Show so many for each question.")
    ] = 2,
    as_json: options.Json = False,
) -> None:
    """Store a shipped chat history in a temporary file, ask questions and show why it answers.

    It ends with an erasure, whose receipt is held against the audit log. Offline, with no model
    and no key; where a model is configured, one turn is also extracted, summarized and answered.
    Nothing is left behind.
    """
    with tempfile.TemporaryDirectory(prefix="muniment-demo-") as folder:
        sections = asyncio.run(_play(Path(folder) / "demo.db", None if as_json else top))
    if as_json:
        print_json(_document(sections))


async def _play(path: Path, top: int | None) -> list[Section]:
    """Run the story; printed as it goes unless `top` is None."""
    shipped = load_demo()
    clock = demo_clock(shipped)
    out = console()
    printer = None if top is None else DemoPrinter(out, shown_per_question=top)
    sections: list[Section] = []
    with _progress(out, silent=printer is None) as progress:
        play = Play(shipped, lambda: _opened(path, clock), clock, progress)
        async with aclosing(play.run()) as story:  # closed also where nobody reads on
            async for section in story:
                sections.append(section)
                if printer is not None:
                    printer.show(section)
    if printer is not None:
        print_summary(out, sections)
    return sections


@contextmanager
def _progress(out: Console, *, silent: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal that goes away when it is full; elsewhere one plain line."""
    if silent or not out.is_terminal:
        if not silent:
            say(out, "Storing the chat history in a temporary file, offline ...")
        yield unseen
        return
    bar = Progress(console=out, transient=True)
    task = bar.add_task("Storing the chat history, offline", total=None)

    def update(done: int, of: int) -> None:
        bar.update(task, completed=done, total=of)
        if done == of:
            bar.stop()

    with bar:
        yield update


def _opened(path: Path, clock: DemoClock) -> AbstractAsyncContextManager[OpenMemory]:
    from muniment.wiring import open_memory

    # Given, so that no policy in this machine's settings changes what is shown.
    audit = path.with_name("audit.jsonl")
    return open_memory(f"sqlite:///{path}", policy=POLICY, clock=clock, audit=audit)


def _document(sections: list[Section]) -> dict[str, object]:
    document: dict[str, object] = {}
    for kind, name in _MANY.items():
        chosen = [section for section in sections if type(section) is kind]
        document[name] = [section_record(section) for section in chosen]
    for section in sections:
        if type(section) in _ONE:
            document[_ONE[type(section)]] = section_record(section)
    return document
