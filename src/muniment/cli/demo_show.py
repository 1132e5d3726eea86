"""The demonstration's sections for people, and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from muniment.cli.demo_model import ModelTurn
from muniment.cli.demo_play import (
    Answer,
    Attempt,
    Changed,
    Erasure,
    Isolation,
    Restarted,
    Section,
    Stored,
    name_of,
)
from muniment.cli.output import counted, day, say, table
from muniment.cli.recalled import ANSWER, held, print_legend, print_ranked, spoken
from muniment.cli.records import iso, memory_record, recalled_record


class DemoPrinter:
    """Prints sections as they come; a heading where a new kind begins."""

    def __init__(self, out: Console, *, shown_per_question: int) -> None:
        self._out = out
        self._most = shown_per_question
        self._kind: type[Section] | None = None
        self._number = 0

    def show(self, section: Section) -> None:
        """Print one section."""
        if type(section) is not self._kind:
            self._kind = type(section)
            self._heading(section)
        match section:
            case Stored():
                self._stored(section)
            case Answer():
                self._answer(section)
            case Changed():
                self._changed(section)
            case Isolation():
                self._isolation(section)
            case Restarted():
                self._restarted(section)
            case ModelTurn():
                self._turn(section)
            case Erasure():
                self._erased(section)

    def _heading(self, section: Section) -> None:
        self._number += 1
        title = f" {self._number}. {_TITLES[type(section)]} "
        self._out.print()
        self._out.print(Text(title.ljust(self._out.width, "-"), style="bold"))
        if isinstance(section, Answer):
            say(self._out, _how_to_read(self._most))
            print_legend(self._out)

    def _stored(self, section: Stored) -> None:
        say(
            self._out,
            f"{section.messages} messages in {section.conversations} conversations and "
            f"{section.memories} facts of {', '.join(section.owners)}, "
            f"{day(section.first)} to {day(section.last)}, in one SQLite file: "
            f"{_seconds(section.seconds)}",
        )

    def _answer(self, section: Answer) -> None:
        asked = section.asked
        moment = "" if asked.as_of is None else f" (as of {day(asked.as_of)})"
        self._out.print()
        who = name_of(asked.tenant, asked.user)
        say(self._out, f"{who} asks: {asked.question}{moment}", style="bold")
        say(self._out, f"{asked.note}; {_verdict(section)}; {_seconds(section.seconds)}", indent=2)
        best = [rank for rank in range(1, len(section.recalled) + 1) if rank <= self._most]
        print_ranked(
            self._out,
            section.recalled,
            ranks=sorted({*best, *section.ranks[:1]}),
            answers=section.ranks,
            lines=2,
        )

    def _changed(self, section: Changed) -> None:
        say(self._out, f"{section.who} ({_seconds(section.seconds)})", style="bold")
        for memory in section.chain:
            say(self._out, f"{held(memory)}  {memory.trust.value}", indent=2)
            say(self._out, spoken(memory), indent=4)

    def _isolation(self, section: Isolation) -> None:
        say(self._out, f"Others ask: {section.question} ({_seconds(section.seconds)})")
        rows = [_attempt_row(attempt) for attempt in section.attempts]
        columns = ("WHO", "RECALLED", f"OF {section.whose}", "ITS FACT BY ID")
        table(self._out, columns, rows)

    def _restarted(self, section: Restarted) -> None:
        verdict = "the same memories" if section.same else "OTHER memories"
        say(
            self._out,
            f"Closed and opened again: the first question recalls {verdict}, "
            f"{_seconds(section.first_seconds)} after opening; "
            f"asked once more it takes {_seconds(section.again_seconds)}.",
        )

    def _turn(self, section: ModelTurn) -> None:
        out = self._out
        stored = counted(len(section.extracted), "fact", "facts")
        say(out, f"{section.who}: {stored} extracted ({_seconds(section.extracting_seconds)})")
        for memory in section.extracted:
            say(out, f"{memory.scope.value}  {memory.trust.value}  {spoken(memory)}", indent=2)
        say(out, f"Summary of what left the window ({_seconds(section.building_seconds)}):")
        say(out, section.summary or "none", indent=2)
        say(out, f"Question: {section.question}", style="bold")
        if section.standalone_query != section.question:
            say(out, f"asked as: {section.standalone_query}", indent=2)
        answer = section.answer or f"none ({section.problem or 'an empty reply'})"
        say(out, f"Answer ({_seconds(section.answering_seconds)}): {answer}", indent=2)

    def _erased(self, section: Erasure) -> None:
        out = self._out
        say(
            out,
            f"{section.who}: {section.memories} facts, {section.conversations} conversations, "
            f"{section.messages} messages gone ({_seconds(section.seconds)}). Asking as that "
            f"user now recalls {section.left}; the other tenant still recalls {section.others}.",
        )
        say(out, "The receipt of this erasure:")
        out.print(f"  {section.receipt}", soft_wrap=True)
        verdict = "sound and holds it" if section.verified else "NOT sound, or does not hold it"
        say(
            out,
            f"Held against the audit log ({section.records} records, ids and counts only): the "
            f"log is {verdict} ({_seconds(section.verifying_seconds)}).",
        )


_TITLES: dict[type[Section], str] = {
    Stored: "A chat history of several people is stored",
    Answer: "What is recalled, from when, with what trust, and why",
    Changed: "What a changed fact was before: nothing is overwritten",
    Isolation: "Other users, and the tenant with the similar name, see nothing",
    Restarted: "Restart",
    ModelTurn: "With a language model: extracted, summarized, answered",
    Erasure: "Erasure, and its proof",
}


def print_summary(out: Console, sections: Sequence[Section]) -> None:
    """How many questions found what answers them, and how fast."""
    answers = [section for section in sections if isinstance(section, Answer)]
    asked = [each for each in answers if each.asked.expect_message_ids]
    found = sum(bool(each.ranks) for each in asked)
    slow = sorted(each.seconds for each in answers)
    out.print()
    say(
        out,
        f"{found} of {len(asked)} answers recalled, {sum(each.foreign for each in answers)} "
        f"memories of others among {sum(len(each.recalled) for each in answers)}; "
        f"a recall took {_seconds(slow[len(slow) // 2])} in the middle, "
        f"{_seconds(slow[-1])} at most.",
        style="bold",
    )


def section_record(section: Section) -> dict[str, Any]:
    """A section as JSON values; times in seconds."""
    if isinstance(section, Answer):
        return _answer_record(section)
    if isinstance(section, Changed):
        chain = [memory_record(memory) for memory in section.chain]
        return {"who": section.who, "chain": chain, "seconds": section.seconds}
    record = _plain(section)
    if isinstance(section, Stored):
        record |= {"first": iso(section.first), "last": iso(section.last)}
    return record


def _plain(section: Stored | Isolation | Restarted | ModelTurn | Erasure) -> dict[str, Any]:
    if isinstance(section, ModelTurn):
        facts = [memory_record(memory) for memory in section.extracted]
        return asdict(replace(section, extracted=())) | {"extracted": facts}
    return asdict(section)


def _answer_record(section: Answer) -> dict[str, Any]:
    asked = section.asked
    return {
        "tenant": asked.tenant,
        "user": asked.user,
        "question": asked.question,
        "as_of": iso(asked.as_of),
        "note": asked.note,
        "expected": list(asked.expect_message_ids),
        "expected_memories": list(asked.expect_memories),
        "ranks": list(section.ranks),
        "foreign": section.foreign,
        "seconds": section.seconds,
        "recalled": [recalled_record(each, explain=True) for each in section.recalled],
    }


def _verdict(section: Answer) -> str:
    if not section.asked.expect_message_ids:
        return f"{section.foreign} of {len(section.recalled)} recalled are somebody else's"
    if not section.ranks:
        return f"the answer is not among the best {len(section.recalled)}"
    return f"the answer is number {section.ranks[0]}"


def _how_to_read(most: int) -> str:
    return f"The best {most} for each, and what answers it ({ANSWER}). What makes the score:"


def _attempt_row(attempt: Attempt) -> tuple[str, str, str, str]:
    found = "FOUND" if attempt.found_by_id else "no such memory"
    return attempt.who, str(attempt.recalled), str(attempt.stolen), found


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
