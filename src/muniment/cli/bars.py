"""A score as a stacked bar: how much each factor adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from muniment.context.recall import RecalledMemory

FACTORS = ("recency", "importance", "entity", "type")
_PARTS = ("relevance", *FACTORS)
_BLOCKS: dict[str, str] = dict(zip(_PARTS, "█▓▒░▚", strict=True))
_LETTERS: dict[str, str] = dict(zip(_PARTS, "#+=-.", strict=True))
_STYLES: dict[str, str] = dict(
    zip(_PARTS, ("cyan", "green", "yellow", "magenta", "blue"), strict=True)
)


def parts_of(recalled: RecalledMemory) -> dict[str, float]:
    """What each factor adds, in the order in which they multiply; the sum is the score."""
    total = recalled.relevance
    parts = {"relevance": total}
    for name in FACTORS:
        factor = recalled.factors.get(name, 0.0)
        parts[name] = total * factor
        total += parts[name]
    return parts


def bar(parts: Mapping[str, float], *, best: float, width: int, blocks: bool = True) -> Text:
    """`parts` side by side, `width` cells for a total of `best`."""
    marks = _BLOCKS if blocks else _LETTERS
    line, total, filled = Text(), 0.0, 0
    for name, share in parts.items():
        total += share
        upto = round(width * total / best) if best > 0 else 0
        line.append(marks[name] * (upto - filled), style=_STYLES[name])
        filled = upto
    line.append(" " * (width - filled))
    return line


def legend(*, blocks: bool = True, used: Sequence[str] = _PARTS) -> Text:
    """What the marks of a bar mean."""
    marks = _BLOCKS if blocks else _LETTERS
    line = Text("score = ")
    for position, name in enumerate(used):
        line.append("  " if position else "")
        line.append(marks[name] * 2, style=_STYLES[name])
        line.append(f" {name}")
    return line
