"""``python -m benchmarks.quality.train FILE``: train the learned ranking and write it.

The model is linear over the features of :mod:`muniment.evidence.features`, brought to mean 0 and
spread 1. It is trained so that, among a question's candidates, the softmax of the scores falls on
the evidence, with an L2 penalty. Figures are from leaving out one conversation at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.corpus_path import Vectors, corpus_of
from benchmarks.quality.embedding import vectors_of
from muniment.evaluation.dataset import Conversation, read
from muniment.evaluation.metrics import mean, of_ranking
from muniment.evidence import model
from muniment.evidence.eligibility import Filters
from muniment.evidence.gathering import gather
from muniment.evidence.query import analyze

Floats = NDArray[np.float64]

STEPS = 250
FIRST_RATE = 0.05
LEAST_SPREAD = 0.15
"""A feature that is rarely other than 0 is not scaled up beyond this: the penalty then holds it."""
KS = (5, 10, 20)


@dataclass(frozen=True, slots=True)
class Example:
    """A question's candidates: their features, ids, and which are evidence."""

    conversation: str
    category: str
    features: Floats
    ids: tuple[str, ...]
    evidence: frozenset[str]

    def wanted(self) -> Floats:
        """The share of each candidate in what is to be found."""
        hits = np.array([one in self.evidence for one in self.ids], dtype=float)
        return hits / max(1.0, hits.sum())


@dataclass(frozen=True, slots=True)
class Fitted:
    """Means, spreads and weights by feature."""

    means: Floats
    spreads: Floats
    weights: Floats

    def ranked(self, example: Example) -> list[str]:
        """The ids by score, best first."""
        scores = ((example.features - self.means) / self.spreads) @ self.weights
        return [example.ids[place] for place in np.argsort(-scores, kind="stable")]


def examples_of(
    conversation: Conversation, messages: Vectors | None, questions: Vectors | None
) -> tuple[list[str], list[Example]]:
    """The names of the features, and an example for each question that is measured."""
    corpus, names, examples = corpus_of(conversation, messages), list[str](), list[Example]()
    for place, asked in enumerate(conversation.questions):
        if not asked.is_measured():
            continue
        embedding = questions[place] if questions is not None else None
        filters = Filters(now=conversation.messages[-1].created_at.timestamp())
        found = gather([corpus], analyze(asked.text), embedding=embedding, filters=filters)
        if not len(found):
            continue
        blocks = list(found.features())
        names = [name for block, _ in blocks for name in block]
        ids = tuple(conversation.messages[key].id for key in found.values("keys"))
        features = np.vstack([values for _, values in blocks]).T
        examples.append(Example(conversation.id, asked.category, features, ids, asked.evidence))
    return names, examples


def fit(examples: Sequence[Example], penalty: float) -> Fitted:
    """Minimize the softmax loss with Adam over all examples at once."""
    every = np.concatenate([one.features for one in examples])
    means, spreads = every.mean(axis=0), np.maximum(every.std(axis=0), LEAST_SPREAD)
    useful = [one for one in examples if one.wanted().any()]
    scaled = np.concatenate([(one.features - means) / spreads for one in useful])
    wanted = np.concatenate([one.wanted() for one in useful])
    sizes = np.array([len(one.ids) for one in useful])
    weights, mean_of, square_of = (np.zeros(scaled.shape[1]) for _ in range(3))
    for step in range(1, STEPS + 1):
        shares = _softmax(scaled @ weights, sizes)
        slope = scaled.T @ (shares - wanted) / len(useful) + penalty * weights
        mean_of = 0.9 * mean_of + 0.1 * slope
        square_of = 0.99 * square_of + 0.01 * slope**2
        rate = FIRST_RATE * (1 - 0.9 * step / STEPS)
        upright = np.sqrt(square_of / (1 - 0.99**step)) + 1e-8
        weights = weights - rate * (mean_of / (1 - 0.9**step)) / upright
    return Fitted(means, spreads, weights)


def _softmax(scores: Floats, sizes: NDArray[np.int64]) -> Floats:
    starts = np.cumsum(sizes) - sizes
    raised = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
    return raised / np.repeat(np.add.reduceat(raised, starts), sizes)


def cross_validated(examples: Sequence[Example], penalty: float) -> dict[str, float]:
    """The mean figures, each conversation ranked by a model of the others."""
    figures: list[dict[str, float]] = []
    for held_out in sorted({one.conversation for one in examples}):
        fitted = fit([one for one in examples if one.conversation != held_out], penalty)
        figures += [
            of_ranking(fitted.ranked(one), one.evidence, KS)
            for one in examples
            if one.conversation == held_out
        ]
    return mean(figures)


def main() -> None:
    """Train both models, say how well they do on what they have not seen, and write them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.train")
    parser.add_argument("file", type=Path)
    parser.add_argument("--penalty", type=float, default=0.03)
    parser.add_argument("--out", type=Path, default=Path(model.__file__).with_name(model.FILE))
    options = parser.parse_args()
    conversations = read(options.file)
    models, figures = {}, {}
    for name, embedder in (("words", "none"), ("words and meaning", "local")):
        names, examples = _all_examples(conversations, embedder)
        figures[name] = cross_validated(examples, options.penalty)
        print(name, len(names), "features", figures[name], flush=True)
        models[name] = _table(names, fit(examples, options.penalty))
    written = {"provenance": _provenance(options, conversations, figures), "models": models}
    options.out.write_text(_readable(written), encoding="utf-8")


def _all_examples(
    conversations: Sequence[Conversation], embedder: str
) -> tuple[list[str], list[Example]]:
    names, examples = list[str](), list[Example]()
    for one in conversations:
        names, added = examples_of(one, *asyncio.run(vectors_of(one, embedder)))
        examples += added
    return names, examples


def _table(names: Sequence[str], fitted: Fitted) -> dict[str, list[float]]:
    columns = np.stack([fitted.means, fitted.spreads, fitted.weights], axis=1).round(5)
    return dict(zip(names, columns.tolist(), strict=True))


def _provenance(
    options: argparse.Namespace, conversations: Sequence[Conversation], figures: dict[str, Any]
) -> dict[str, Any]:
    return {
        "made by": "python -m benchmarks.quality.train",
        "data": "LoCoMo (Maharana et al., 2024), conversations "
        + ", ".join(one.id for one in conversations)
        + "; no text of it is in this file",
        "columns": ["mean", "spread", "weight"],
        "penalty": options.penalty,
        "least spread": LEAST_SPREAD,
        "embedder": "all-MiniLM-L6-v2-int8",
        "cross-validated": {
            name: {figure: round(value, 3) for figure, value in found.items()}
            for name, found in figures.items()
        },
    }


def _readable(written: dict[str, Any]) -> str:
    """JSON with a feature a line."""
    parts = [f'"provenance": {json.dumps(written["provenance"], indent=1)}']
    models = []
    for name, table in written["models"].items():
        lines = ",\n".join(f"{json.dumps(feature)}: {row}" for feature, row in table.items())
        models.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    parts.append('"models": {\n' + ",\n".join(models) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main()
