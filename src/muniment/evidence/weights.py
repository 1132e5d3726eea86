"""How much each kind of evidence counts."""

from __future__ import annotations

from dataclasses import dataclass, fields

from muniment.errors import MemoryConfigurationError


@dataclass(frozen=True, slots=True)
class Weights:
    """Factors of the lanes of :mod:`muniment.evidence.lanes`; 0 leaves a lane out.

    ``words`` and ``meaning`` alone are the plain hybrid; the other lanes are evidence from the
    conversation around a row, and are 0 by themselves for rows without sessions and speakers.
    """

    words: float = 1.0
    meaning: float = 2.0
    coverage: float = 0.75
    speaker: float = 1.0
    answer: float = 1.5
    time: float = 1.5

    @property
    def around(self) -> bool:
        """Whether the messages beside a row count for it."""
        return bool(self.coverage or self.answer)

    def by_lane(self) -> dict[str, float]:
        """The weights by lane name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


EVIDENCE = Weights()
"""Round weights chosen on four development conversations."""

HYBRID = Weights(words=0.5, meaning=0.5, coverage=0, speaker=0, answer=0, time=0)
"""Words and meaning in equal parts, and nothing else."""

LANES = tuple(field.name for field in fields(Weights))


@dataclass(frozen=True, slots=True)
class Learned:
    """The learned ranking (see :mod:`muniment.evidence.model`), less the features of some lanes.

    It knows conversations: where no message is among the candidates, the ``EVIDENCE`` weights
    rank instead.
    """

    without: frozenset[str] = frozenset()

    @property
    def around(self) -> bool:
        """The messages beside a row count for it."""
        return True


LEARNED = Learned()
Ranking = Weights | Learned
DEFAULT: Ranking = LEARNED
DEFAULT_NAME = "learned"
BY_NAME: dict[str, Ranking] = {DEFAULT_NAME: LEARNED, "evidence": EVIDENCE, "hybrid": HYBRID}
"""The rankings that a store can be told to use."""


def ranking_named(name: str) -> Ranking:
    """The ranking of this name; MemoryConfigurationError for another."""
    known = BY_NAME.get(name)
    if known is None:
        raise MemoryConfigurationError(f"ranking: must be one of {', '.join(BY_NAME)}")
    return known
