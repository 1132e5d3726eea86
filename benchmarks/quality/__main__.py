"""``python -m benchmarks.quality FILE``: recall on a question set, as a table and as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality import corpus_path
from benchmarks.quality.ablation import ablation
from benchmarks.quality.dataset import Conversation, read
from benchmarks.quality.embedding import vectors_of
from benchmarks.quality.report import by_category, evidence_counts, measure, surroundings, table
from muniment.evidence.weights import DEFAULT


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one file and say the result."""
    options = _options(arguments)
    conversations = read(options.file)
    limit = max(*options.k, 10)
    if options.path == "product":
        found = asyncio.run(_product(conversations, options, limit))
        vectors = []
    else:
        vectors = [asyncio.run(vectors_of(one, options.embedder)) for one in conversations]
        pairs = zip(conversations, vectors, strict=True)
        found = [corpus_path.rankings(one, *known, DEFAULT, limit) for one, known in pairs]
    groups = by_category(measure(conversations, found, options.k))
    result = {
        "settings": {"path": options.path, "embedder": options.embedder, "file": options.file.name},
        "surroundings": surroundings(),
        "evidence": evidence_counts(conversations),
        "figures": groups,
    }
    print(f"path {options.path}, embedder {options.embedder}, evidence {result['evidence']}")
    print(table(groups))
    if options.ablate:
        if options.path == "product":
            vectors = [asyncio.run(vectors_of(one, options.embedder)) for one in conversations]
        result["ablation"] = ablation(conversations, vectors, options.k)
        _print_ablation(result["ablation"])
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("file", type=Path, help="LoCoMo's JSON, or JSON Lines (see dataset.py)")
    parser.add_argument("--json", type=Path, help="write the result here too")
    parser.add_argument("--k", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--embedder", choices=("local", "none"), default="local")
    parser.add_argument("--path", choices=("product", "corpus"), default="product")
    parser.add_argument("--url", help="the store to measure; else a SQLite file made for it")
    parser.add_argument("--ablate", action="store_true", help="also take out each lane in turn")
    return parser.parse_args(arguments)


async def _product(
    conversations: Sequence[Conversation], options: argparse.Namespace, limit: int
) -> list[list[list[str]]]:
    from benchmarks.quality.product_path import rankings

    embedder = None if options.embedder == "none" else options.embedder
    return [
        await rankings(one, embedder=embedder, url=options.url, limit=limit)
        for one in conversations
    ]


def _print_ablation(differences: dict[str, dict[str, float]]) -> None:
    print("\nrecall@10 less that of the ranking in use (95 % interval, paired)")
    for name, found in differences.items():
        print(f"{name:18} {found['difference']:+.3f}  [{found['low']:+.3f}, {found['high']:+.3f}]")


if __name__ == "__main__":
    main()
