"""Embeddings for measuring the ranking alone."""

from __future__ import annotations

from benchmarks.quality.corpus_path import Vectors
from muniment.evaluation.dataset import Conversation


async def vectors_of(
    conversation: Conversation, embedder: str
) -> tuple[Vectors, Vectors] | tuple[None, None]:
    """The vectors of the messages and of the questions; none for the embedder "none"."""
    if embedder == "none":
        return None, None
    from muniment.embedders.local import LocalEmbedder

    local = LocalEmbedder()
    messages = [f"{one.name}: {one.text}" for one in conversation.messages]
    questions = [asked.text for asked in conversation.questions]
    return await local.embed_batch(messages), await local.embed_batch(questions)
