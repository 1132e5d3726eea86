"""The evidence for each candidate, one number from 0 to 1 a lane.

========  =================================================================================
words     BM25 over stems, relative to the best candidate
meaning   cosine similarity to the question, from the least similar row to the best
coverage  share of the question's terms, by rarity, held by the message and its neighbours
speaker   ``words`` where the question names who speaks, or asks in the first person
answer    the previous message's ``words`` where that one is a question
time      ``words`` where the question asks when and the row names a time
========  =================================================================================
"""

from __future__ import annotations

import numpy as np

from muniment.evidence.view import Values, View, row
from muniment.lexical.marks import Mark


def lanes_of(view: View, *, asks_when: bool) -> dict[str, Values]:
    """The lanes of the candidates, and ``cosine`` as it is."""
    words = view.words[row(0)]
    return {
        "words": words,
        "meaning": np.where(view.compared, view.scale.of_cosine(view.similarity), 0.0),
        "coverage": view.coverage_around,
        "speaker": words * view.named[row(0)],
        "answer": view.asks[row(-1)] * view.words[row(-1)],
        "time": words * view.marked(Mark.TIME) * asks_when,
        "cosine": view.similarity,
    }


def spread(values: Values) -> Values:
    """``values`` from 0 at the least to 1 at the greatest; they must not all be alike."""
    least = float(values.min())
    return (values - least) / (float(values.max()) - least)
