"""``python -m benchmarks.quality FILE``: recall on a question set, as a table and as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.quality import corpus_path
from benchmarks.quality.ablation import ablation
from benchmarks.quality.corpus_path import Vectors
from benchmarks.quality.embedding import vectors_of
from muniment.evaluation.dataset import Conversation, read
from muniment.evaluation.product_path import Setup, rankings
from muniment.evaluation.report import by_category, evidence_counts, measure, surroundings, table
from muniment.evaluation.stability import stability
from muniment.evidence.weights import BY_NAME, DEFAULT_NAME, ranking_named


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one file and say the result."""
    options = _options(arguments)
    conversations = read(options.file)
    setup = Setup(options.embedder, options.ranking, options.url, options.at_the_end)
    limit = max(*options.k, 10)
    if options.path == "product":
        found = asyncio.run(_product(conversations, setup, limit))
    else:
        ranking = ranking_named(options.ranking)
        pairs = zip(conversations, _vectors(conversations, options), strict=True)
        found = [corpus_path.rankings(one, *known, ranking, limit) for one, known in pairs]
    measured = measure(conversations, found, options.k)
    groups = by_category(measured)
    result = {
        "settings": {
            "path": options.path,
            "embedder": options.embedder,
            "ranking": options.ranking,
            "file": options.file.name,
        },
        "surroundings": surroundings(),
        "evidence": evidence_counts(conversations),
        "figures": groups,
    }
    print(f"{result['settings']}, evidence {result['evidence']}")
    print(table(groups))
    if options.ablate:
        vectors = _vectors(conversations, options)
        result["ablation"] = ablation(conversations, vectors, options.k)
        _print_ablation(result["ablation"])
    if options.stable:
        kept = asyncio.run(stability(conversations[0], setup, tenants=options.stable))
        result["stability"] = asdict(kept)
        print(f"answered otherwise beside {options.stable} other tenants, later: {kept}")
    if options.questions:
        lines = [json.dumps(one.record(), ensure_ascii=False) for one in measured]
        options.questions.write_text("\n".join(lines) + "\n", encoding="utf-8")
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
    parser.add_argument("--ranking", choices=tuple(BY_NAME), default=DEFAULT_NAME)
    parser.add_argument("--at-the-end", action="store_true", help="ask as of the last message")
    parser.add_argument("--ablate", action="store_true", help="also take out each lane in turn")
    parser.add_argument("--questions", type=Path, help="each question's outcome, as JSON Lines")
    parser.add_argument(
        "--stable", type=int, metavar="N", help="also ask beside N tenants, restarted, reindexed"
    )
    return parser.parse_args(arguments)


async def _product(
    conversations: Sequence[Conversation], setup: Setup, limit: int
) -> list[list[list[str]]]:
    return [await rankings(one, setup, limit=limit) for one in conversations]


def _vectors(
    conversations: Sequence[Conversation], options: argparse.Namespace
) -> list[tuple[Vectors, Vectors] | tuple[None, None]]:
    return [asyncio.run(vectors_of(one, options.embedder)) for one in conversations]


def _print_ablation(differences: dict[str, dict[str, float]]) -> None:
    print("\nrecall@10 less that of the ranking in use (95 % interval, paired)")
    for name, found in differences.items():
        print(f"{name:18} {found['difference']:+.3f}  [{found['low']:+.3f}, {found['high']:+.3f}]")


if __name__ == "__main__":
    main()
