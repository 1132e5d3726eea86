"""Chroma's persistent client alone: an approximate index over vectors, filtered by owner."""

import chromadb
from chromadb.config import Settings
from shared import asked, tell, texts, timed, vectors

wanted = asked()
lines, questions = texts(wanted)
stored, queries = vectors(wanted, "vectors.f32"), vectors(wanted, "questions.f32")
client = chromadb.PersistentClient(wanted["place"], Settings(anonymized_telemetry=False))
collection = client.create_collection("memories", metadata={"hnsw:space": "cosine"})
for start in range(0, len(lines), 1000):
    part = slice(start, start + 1000)
    collection.add(
        ids=[str(number) for number in range(start, min(start + 1000, len(lines)))],
        embeddings=stored[part],
        documents=lines[part],
        metadatas=[{"user_id": "u"}] * len(lines[part]),
    )


def search(number):
    """The nearest six of one owner."""
    return collection.query(
        query_embeddings=[queries[number % len(queries)]], n_results=6, where={"user_id": "u"}
    )


tell(f"chromadb {chromadb.__version__}, vectors only", **timed(search, wanted["calls"]))
