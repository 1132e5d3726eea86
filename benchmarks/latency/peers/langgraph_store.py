"""LangGraph's SqliteStore with vectors (it has no lexical search)."""

import json
import sys
from importlib.metadata import version

import pysqlite3

# It loads an extension, which the interpreter's own sqlite3 may have been built without.
sys.modules["sqlite3"] = pysqlite3

from langgraph.store.base import PutOp  # noqa: E402
from langgraph.store.sqlite import SqliteStore  # noqa: E402
from shared import asked, tell, texts, timed, vectors  # noqa: E402

wanted = asked()
lines, questions = texts(wanted)
ready = dict(zip(lines, vectors(wanted, "vectors.f32"), strict=True))
ready |= dict(zip(questions, vectors(wanted, "questions.f32"), strict=True))


def embed(given):
    """Ready vectors: embedding costs nothing here."""
    return [ready[json.loads(text)["text"] if text.startswith("{") else text] for text in given]


index = {"dims": wanted["dimensions"], "embed": embed, "fields": ["text"]}
with SqliteStore.from_conn_string(f"{wanted['place']}/store.db", index=index) as store:
    store.setup()
    for start in range(0, len(lines), 500):
        part = lines[start : start + 500]
        store.batch(
            [PutOp(("memories", "u"), str(start + i), {"text": t}) for i, t in enumerate(part)]
        )

    def search(number):
        return store.search(("memories", "u"), query=questions[number % len(questions)], limit=6)

    name = f"langgraph {version('langgraph-checkpoint-sqlite')}, vectors only"
    tell(name, **timed(search, wanted["calls"]))
