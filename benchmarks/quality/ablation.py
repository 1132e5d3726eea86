"""What each lane is worth: the ranking with it taken out, on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.quality.corpus_path import Vectors, rankings
from benchmarks.quality.dataset import Conversation
from benchmarks.quality.report import Measured, compared, measure
from muniment.evidence.weights import EVIDENCE, HYBRID, LANES, Weights

FIGURE = "recall@10"


def ablation(
    conversations: Sequence[Conversation],
    vectors: Sequence[tuple[Vectors, Vectors] | tuple[None, None]],
    ks: Sequence[int],
) -> dict[str, dict[str, float]]:
    """For each variant its recall@10 less that of the ranking in use, with the interval."""

    def run(weights: Weights) -> list[Measured]:
        pairs = zip(conversations, vectors, strict=True)
        found = [rankings(one, *known, weights, max(*ks, 10)) for one, known in pairs]
        return measure(conversations, found, ks)

    full = run(EVIDENCE)
    variants = {f"without {lane}": replace(EVIDENCE, **{lane: 0.0}) for lane in LANES}
    variants["plain hybrid"] = HYBRID
    return {name: compared(run(weights), full, FIGURE) for name, weights in variants.items()}
