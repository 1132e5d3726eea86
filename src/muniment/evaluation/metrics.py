"""What is said about a ranking: recall, any-hit, NDCG, reciprocal rank, and their differences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log2

import numpy as np

RESAMPLES = 5_000


def of_ranking(
    ranked: Sequence[str], evidence: Collection[str], ks: Sequence[int]
) -> dict[str, float]:
    """The figures of one question; recall@k is |top k and evidence| / |evidence|."""
    hits = [identifier in evidence for identifier in ranked]
    recall = {f"recall@{k}": sum(hits[:k]) / len(evidence) for k in ks}
    return recall | {
        "any-hit@10": float(any(hits[:10])),
        "NDCG@10": _discounted(hits[:10]) / _discounted([True] * min(10, len(evidence))),
        "MRR": next((1 / (place + 1) for place, hit in enumerate(hits) if hit), 0.0),
    }


def mean(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each figure over the questions."""
    return {name: float(np.mean([one[name] for one in figures])) for name in figures[0]}


def paired_bootstrap(one: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    """The mean of ``one - other`` over the same questions, with its 95 % interval."""
    difference = np.asarray(one) - np.asarray(other)
    draws = np.random.default_rng(0).integers(len(difference), size=(RESAMPLES, len(difference)))
    means = difference[draws].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return {"difference": float(difference.mean()), "low": float(low), "high": float(high)}


def _discounted(hits: Sequence[bool]) -> float:
    return sum(1 / log2(place + 2) for place, hit in enumerate(hits) if hit)
