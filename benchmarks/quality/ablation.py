"""What each lane is worth: the ranking with it taken out, on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.quality.corpus_path import Vectors, rankings
from muniment.evaluation.dataset import Conversation
from muniment.evaluation.report import Measured, compared, measure
from muniment.evidence.weights import EVIDENCE, HYBRID, LANES, LEARNED, Learned, Ranking

FIGURE = "recall@10"
GROUPS = (*LANES, "context", "kind", "wanted", "concept", "date")


def ablation(
    conversations: Sequence[Conversation],
    vectors: Sequence[tuple[Vectors, Vectors] | tuple[None, None]],
    ks: Sequence[int],
) -> dict[str, dict[str, float]]:
    """For each variant its recall@10 less that of the ranking in use, with the interval."""

    def run(ranking: Ranking) -> list[Measured]:
        pairs = zip(conversations, vectors, strict=True)
        found = [rankings(one, *known, ranking, max(*ks, 10)) for one, known in pairs]
        return measure(conversations, found, ks)

    full = run(LEARNED)
    variants: dict[str, Ranking] = {
        f"without {lane}": Learned(without=frozenset({lane})) for lane in GROUPS
    }
    variants |= {"round weights": EVIDENCE} | {
        f"round, no {lane}": replace(EVIDENCE, **{lane: 0.0}) for lane in LANES
    }
    variants["plain hybrid"] = HYBRID
    return {name: compared(run(ranking), full, FIGURE) for name, ranking in variants.items()}
