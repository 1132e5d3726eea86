"""The ranking alone: messages put straight into a corpus. For choosing; see product_path."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.evaluation.dataset import Conversation
from muniment.evidence.corpus import MESSAGE, Corpus, CorpusRow
from muniment.evidence.eligibility import Filters
from muniment.evidence.query import analyze
from muniment.evidence.score import score
from muniment.evidence.vectors import pack_vector
from muniment.evidence.weights import Ranking
from muniment.lexical.indexing import index_text

Vectors = Sequence[Sequence[float]]


def rankings(
    conversation: Conversation,
    messages: Vectors | None,
    questions: Vectors | None,
    weights: Ranking,
    limit: int,
) -> list[list[str]]:
    """The ids found for each question, best first."""
    corpus, now = (
        corpus_of(conversation, messages),
        conversation.messages[-1].created_at.timestamp(),
    )
    return [
        [
            conversation.messages[found.key].id
            for found in score(
                [corpus],
                analyze(asked.text),
                Filters(now=now),
                embedding=questions[place] if questions is not None else None,
                limit=limit,
                weights=weights,
            )
        ]
        for place, asked in enumerate(conversation.questions)
    ]


def corpus_of(conversation: Conversation, vectors: Vectors | None) -> Corpus:
    """The messages as a store would hold them; keys are places in the conversation."""
    corpus = Corpus()
    corpus.upsert(
        CorpusRow(
            key=place,
            kind=MESSAGE,
            indexed=index_text(message.text, name=message.name),
            at=message.created_at.timestamp(),
            order=place,
            session=message.session,
            role=message.role,
            vector=pack_vector(vectors[place]) if vectors is not None else None,
        )
        for place, message in enumerate(conversation.messages)
    )
    return corpus
