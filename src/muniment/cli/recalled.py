"""Memories as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from muniment.cli.bars import bar, legend, parts_of
from muniment.cli.output import day, say, shown, unicode_output
from muniment.context.recall import RecalledMemory
from muniment.domain.memory import Memory, MemoryType


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


def print_recalled(
    out: Console, recalled: Sequence[RecalledMemory], *, explain: bool, lines: int | None = None
) -> None:
    """Recalled memories best first, with a stacked bar each where explained."""
    if not explain:
        print_memories(out, [each.memory for each in recalled])
        return
    best = max((each.score for each in recalled), default=0.0)
    for each in recalled:
        out.print(_head(each, best=best, width=max(16, min(40, out.width - 52))))
        _print_content(out, spoken(each.memory), lines)


def print_legend(out: Console) -> None:
    """What the bars' marks mean."""
    out.print(legend(blocks=unicode_output()))


def why(recalled: RecalledMemory) -> str:
    """The factors and lanes of a rank in words."""
    factors = " ".join(f"{name} {value:.2f}" for name, value in recalled.factors.items() if value)
    lanes = " ".join(f"{name} {value:.2f}" for name, value in recalled.lanes.items() if value)
    return f"relevance {recalled.relevance:.2f} ({lanes}) {factors}".replace(" ()", "")


def _head(each: RecalledMemory, *, best: float, width: int) -> Text:
    memory = each.memory
    line = Text(f"  {since(memory)}  {memory.trust.value:<9}  {each.score:5.2f}  ")
    line.append_text(bar(parts_of(each), best=best, width=width, blocks=unicode_output()))
    return line.append(f" {memory.memory_type.value}", style="dim")


def _print_content(out: Console, content: str, lines: int | None) -> None:
    room = None if lines is None else lines * max(16, out.width - 6) - 4
    text = content if room is None or len(content) <= room else content[:room].rstrip() + " ..."
    say(out, text, indent=4)
