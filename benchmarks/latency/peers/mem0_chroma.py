"""mem0 on Chroma with an embedder and a model that do nothing: its own search path."""

import os

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = "mem0-home"

from importlib.metadata import version
from pathlib import Path

from shared import asked, tell, texts, timed, vectors

wanted = asked()
os.environ["MEM0_DIR"] = str(Path(wanted["place"]) / "home")
os.environ["OPENAI_API_KEY"] = "none-is-called"

from mem0 import Memory  # noqa: E402 - reads its folder when it is imported

lines, questions = texts(wanted)
ready = dict(zip(lines, vectors(wanted, "vectors.f32"), strict=True))
ready |= dict(zip(questions, vectors(wanted, "questions.f32"), strict=True))
memory = Memory.from_config(
    {
        "vector_store": {
            "provider": "chroma",
            "config": {"collection_name": "memories", "path": str(Path(wanted["place"]) / "db")},
        },
        "history_db_path": str(Path(wanted["place"]) / "history.db"),
    }
)


class Ready:
    """An embedder with the answers ready."""

    config = memory.embedding_model.config

    def embed(self, text, *_, **__):
        """The vector of a known text."""
        return ready[text]

    def embed_batch(self, given, *_, **__):
        """Several at once."""
        return [ready[text] for text in given]


memory.embedding_model = Ready()
for start in range(0, len(lines), 500):
    part = lines[start : start + 500]
    memory.vector_store.insert(
        vectors=[ready[text] for text in part],
        payloads=[{"data": text, "user_id": "u", "hash": str(start)} for text in part],
        ids=[f"{number:032x}" for number in range(start, start + len(part))],
    )


def search(number):
    """Its search as an application calls it."""
    question = questions[number % len(questions)]
    return memory.search(question, filters={"user_id": "u"}, top_k=6)


tell(f"mem0ai {version('mem0ai')} on chromadb", **timed(search, wanted["calls"]))
