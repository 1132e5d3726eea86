"""Memories as lines for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from muniment.cli.bars import bar, legend, parts_of
from muniment.cli.output import day, say, shown, unicode_output
from muniment.context.recall import RecalledMemory
from muniment.domain.memory import Memory, MemoryType

_LEARNED = "learned:"
_LEAST_SHOWN = 0.1
_LEAST_BAR = 8
ANSWER = "*"
"""The mark of what answers a question."""


def spoken(memory: Memory) -> str:
    """The content, with who said it where it was said."""
    if memory.memory_type is not MemoryType.CONVERSATION:
        return shown(memory.content)
    speaker = memory.metadata.get("name") or memory.metadata.get("role") or "message"
    return shown(f"{speaker}: {memory.content}")


def since(memory: Memory) -> str:
    """The day from which it holds, or on which it was said."""
    return day(memory.valid_from or memory.created_at)


def held(memory: Memory) -> str:
    """From when to when it held true."""
    until = "now" if memory.invalid_at is None else day(memory.invalid_at)
    return f"{since(memory)} to {until}"


def print_memories(out: Console, memories: Sequence[Memory]) -> None:
    """Each memory on a head line (day, trust, kind, id) and its content below."""
    for memory in memories:
        head = f"{since(memory)}  {memory.trust.value:<9}  {memory.memory_type.value:<12}"
        out.print(Text(head).append(f"  {memory.memory_id}", style="dim"))
        say(out, spoken(memory), indent=2)


def print_ranked(
    out: Console,
    recalled: Sequence[RecalledMemory],
    *,
    ranks: Iterable[int] | None = None,
    answers: Collection[int] = (),
    lines: int | None = None,
) -> None:
    """Recalled memories, best first, each with its score as a stacked bar.

    Only those of `ranks` (from 1) where given; `answers` are marked, and each content is cut
    after so many `lines`.
    """
    best = max((each.score for each in recalled), default=0.0)
    for rank in range(1, len(recalled) + 1) if ranks is None else ranks:
        each = recalled[rank - 1]
        mark = ANSWER if rank in answers else " "
        out.print(Text(f"{mark}{rank:>2}  ").append_text(_head(out, each, best)))
        _print_content(out, spoken(each.memory), lines)


def print_legend(out: Console) -> None:
    """What the bars' marks mean."""
    out.print(legend(blocks=unicode_output()))


def why(recalled: RecalledMemory) -> list[str]:
    """The reasons for a rank, a line each: factors, lanes, and what the learned model adds."""
    lanes = dict(recalled.lanes)
    learned = {name: lanes.pop(name) for name in recalled.lanes if name.startswith(_LEARNED)}
    factors = _named({"relevance": recalled.relevance, **recalled.factors})
    shares = {
        name.removeprefix(_LEARNED): value
        for name, value in sorted(learned.items(), key=lambda share: -abs(share[1]))
        if abs(value) >= _LEAST_SHOWN
    }
    found = [factors]
    if lanes:
        found.append(f"found by {_named(lanes)}")
    if shares:
        found.append(f"learned {_named(shares, sign='+')}")
    return found


def _named(values: Mapping[str, float], sign: str = "") -> str:
    return ", ".join(f"{name} {value:{sign}.2f}" for name, value in values.items() if value)


def _head(out: Console, each: RecalledMemory, best: float) -> Text:
    memory = each.memory
    width = min(40, out.width - 48)
    if width < _LEAST_BAR:
        return Text(f"{since(memory)} {memory.trust.value} {each.score:.2f}").append(
            f" {memory.memory_type.value}", style="dim"
        )
    line = Text(f"{since(memory)}  {memory.trust.value:<9}  {each.score:5.2f}  ")
    line.append_text(bar(parts_of(each), best=best, width=width, blocks=unicode_output()))
    return line.append(f" {memory.memory_type.value}", style="dim")


def _print_content(out: Console, content: str, lines: int | None) -> None:
    wrapped = list(Text(content).wrap(out, max(20, out.width - 9)))
    for number, line in enumerate(wrapped[:lines], start=1):
        line.rstrip()
        cut = number == lines and len(wrapped) > number
        out.print(Text("     ").append_text(line).append(" ..." if cut else ""))
