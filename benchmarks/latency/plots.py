"""Growth as pictures: ``python -m benchmarks.latency.plots FOLDER`` reads its latency.json.

Needs matplotlib, which is in ``benchmarks/requirements.txt`` and nowhere else.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

_LINES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("p95", {"label": "95 of 100 calls", "color": "tab:gray", "linestyle": ":", "marker": "."}),
    ("p50", {"label": "median", "color": "tab:blue", "linewidth": 5, "alpha": 0.35}),
    ("cpu", {"label": "median, processor time", "color": "tab:orange", "marker": "s"}),
    ("least", {"label": "fastest", "color": "tab:green", "linestyle": "--", "marker": "."}),
)


def draw(folder: Path) -> list[Path]:
    """One PNG for each series of the figures in ``folder``; none where there is no series."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    written = json.loads((folder / "latency.json").read_text())
    drawn = []
    for name, points in _series(written["figures"]).items():
        figure, axes = pyplot.subplots(figsize=(6, 4))
        places = range(len(points))  # sizes grow by steps: each step is as wide as the next
        for key, look in _LINES:
            axes.plot(places, [point[key] for point in points], **look)
        axes.set_xticks(places, [f"{point['size']:,}" for point in points])
        call = points[0]["call"]
        axes.set(
            xlabel=f"{name} (steps, not to scale)",
            ylabel=f"{call}, ms",
            title=f"{call.capitalize()} by {name}",
            ylim=(0, 1.1 * max(point["p95"] for point in points)),
        )
        axes.grid(alpha=0.3)
        axes.legend()
        drawn.append(folder / f"growth-{name.replace(' ', '-')}.png")
        figure.savefig(drawn[-1], dpi=110, bbox_inches="tight")
        pyplot.close(figure)
    return drawn


def _series(figures: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for figure in figures:
        if "series" in figure["detail"]:
            found[figure["detail"]["series"]].append(figure["detail"])
    return found


if __name__ == "__main__":
    for path in draw(Path(sys.argv[1])):
        print(path)
