"""What the commands print: text for people, or one JSON document."""

from __future__ import annotations

import json
import logging
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_JOINERS = "\u200c\u200d"


def console() -> Console:
    """Standard output as it is now; plain lines where it is not a terminal."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False)


def error_console() -> Console:
    """Standard error as it is now: what is no result."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False, stderr=True)


def unicode_output() -> bool:
    """Whether standard output can show block characters."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def prepare_streams() -> None:
    """Never fail on a character that the terminal cannot show, or on a stream that is closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for good
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


class HeldWarnings(logging.Handler):
    """The library's warnings, held until a command is done: one that fails says one line."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Hold one."""
        self._lines.append(record.getMessage())

    def tell(self) -> None:
        """Put them on standard error, each on a line that names us, and hold none."""
        for line in self._lines:
            complain(line)
        self.forget()

    def forget(self) -> None:
        """Hold none."""
        self._lines.clear()


def forget_warnings() -> None:
    """Hold no warning any more: what they were about was put right."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, HeldWarnings):
            handler.forget()


def warn_in_words() -> HeldWarnings:
    """Have the library's warnings held, in the place of whatever was to be done with them."""
    held = HeldWarnings()
    logging.basicConfig(handlers=[held], level=logging.WARNING, force=True)
    return held


def print_json(document: Any) -> None:
    """`document` as the only thing on standard output."""
    text = json.dumps(document, ensure_ascii=not unicode_output(), indent=2, allow_nan=False)
    sys.stdout.write(text + "\n")


def complain(message: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"muniment: {shown(message)}\n")


def shown(text: str) -> str:
    """`text` on one line, with nothing in it that could steer a terminal."""
    line = " ".join(text.split())
    return "".join(char for char in line if char in _JOINERS or not _hidden(char))


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN


def day(instant: datetime | None) -> str:
    """`instant` as a date, a dash where there is none."""
    return "-" if instant is None else instant.date().isoformat()


def minute(instant: datetime) -> str:
    """`instant` to the minute, in UTC."""
    return instant.strftime("%Y-%m-%d %H:%M")


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


_ERASED = (
    ("entries", "memory", "memories"),
    ("derived", "derived from them elsewhere", "derived from them elsewhere"),
    ("sessions", "session", "sessions"),
    ("messages", "message", "messages"),
    ("working_states", "working state", "working states"),
)


def erased_words(counts: Mapping[str, Any]) -> str:
    """What an erasure removed or would remove; what it has none of is left out."""
    held = [counted(counts[name], one, many) for name, one, many in _ERASED if counts.get(name)]
    if not held:
        return "nothing"
    return held[0] if len(held) == 1 else f"{', '.join(held[:-1])} and {held[-1]}"


def say(out: Console, text: str = "", *, style: str = "", indent: int = 0) -> None:
    """A line, wrapped at words where the terminal is narrower."""
    pad = " " * indent
    width = max(20, out.width - indent)
    for line in Text(shown(text), style=style).wrap(out, width) or [Text()]:
        line.rstrip()
        out.print(Text(pad) + line)


def table(out: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns of text; the last one takes the room that is left. What is too wide is folded."""
    cells = [[Text(shown(cell)) for cell in row] for row in rows]
    taken = sum(
        max(len(name), *(row[place].cell_len for row in cells), 0) + 2
        for place, name in enumerate(columns[:-1])
    )
    fits = taken + len(columns[-1]) <= out.width
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in columns[:-1]:
        grid.add_column(name, no_wrap=fits, overflow="fold")
    grid.add_column(columns[-1], overflow="fold")
    for row in cells:
        grid.add_row(*row)
    out.print(grid)
