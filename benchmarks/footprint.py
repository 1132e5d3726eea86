"""The weight of the base install and the cost of importing the package.

``python -m benchmarks.footprint [--json OUT]`` makes a fresh virtual environment, installs the
package without extras, counts what came with it, and times ``import muniment`` against an
interpreter that imports nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = {"pip", "setuptools", "wheel"}
RUNS = 15


def _run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def _mebibytes(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_blocks * 512 for path in files) / (1 << 20)


def _seconds(python: Path, code: str) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        _run(python, "-c", code)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure() -> dict[str, float | int | list[str]]:
    """Packages and size (as `du -m`) of a base install; milliseconds of the import alone."""
    with tempfile.TemporaryDirectory() as folder:
        _run(sys.executable, "-m", "venv", folder)
        python = Path(folder) / "bin" / "python"
        _run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", ROOT)
        listed = json.loads(_run(python, "-m", "pip", "list", "--format", "json"))
        packages = sorted(row["name"] for row in listed if row["name"].lower() not in TOOLS)
        site = next((Path(folder) / "lib").glob("python*/site-packages"))
        tools = sum(_mebibytes(path) for tool in TOOLS for path in site.glob(f"{tool}*"))
        bare = _seconds(python, "pass")
        return {
            "packages": len(packages),
            "package_names": packages,
            "mebibytes": round(_mebibytes(site) - tools, 1),
            "import_ms": round((_seconds(python, "import muniment") - bare) * 1000, 1),
            "interpreter_ms": round(bare * 1000, 1),
        }


def main() -> None:
    """Print the figures beside those to reach."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    figures = measure()
    print(f"base install: {figures['packages']} packages (to reach: at most 20)")
    print(f"              {figures['mebibytes']} MB as `du -m` counts (to reach: at most 120)")
    print(
        f"import:       {figures['import_ms']} ms beyond an interpreter of "
        f"{figures['interpreter_ms']} ms (to reach: under 150 ms)"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
