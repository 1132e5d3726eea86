"""What a row of the benchmark yields, and how it is printed and kept."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.latency.timing import Timing

US = "muniment"


@dataclass(frozen=True, slots=True)
class Figure:
    """One system's figure in one row.

    ``value`` is in ``unit`` (``ms`` a call: the median; ``/s`` calls a second; ``x`` a ratio).
    ``target`` says in words what is to be reached, with ``reached`` where that can be judged.
    """

    row: str
    system: str
    value: float | None
    unit: str = "ms"
    target: str = ""
    reached: bool | None = None
    note: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


def of_timing(row: str, system: str, timing: Timing, *, under: float | None = None) -> Figure:
    """A median, to be under ``under`` milliseconds where that is given."""
    return Figure(
        row,
        system,
        timing.p50,
        target="" if under is None else f"< {under:g} ms",
        reached=None if under is None else timing.p50 < under,
        note=f"fastest {timing.least:.2f}, processor {timing.cpu:.2f}{_paced(timing)}",
        detail=asdict(timing),
    )


def _paced(timing: Timing) -> str:
    return "" if timing.pace is None else f", pace {timing.pace:.2f}"


def machine() -> dict[str, Any]:
    """What the figures were taken on; the load is that of the last minute."""
    import apsw
    import numpy

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "sqlite": apsw.sqlite_lib_version(),
        "sqlite of the interpreter": sqlite3.sqlite_version,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def table(figures: Sequence[Figure]) -> str:
    """The figures as a table of text, rows apart."""
    lines = [f"{'row':<46} {'system':<26} {'figure':>14}  {'to reach':<22} "]
    last = ""
    for each in figures:
        lines.append(_line(each, "" if each.row == last else each.row))
        last = each.row
    return "\n".join(lines)


def _line(each: Figure, row: str) -> str:
    value = "-" if each.value is None else f"{each.value:,.2f} {each.unit}"
    verdict = {True: "reached", False: "MISSED", None: ""}[each.reached]
    tail = f"{each.target} {verdict}".strip()
    return f"{row:<46} {each.system:<26} {value:>14}  {tail:<22} {each.note}".rstrip()


def as_json(figures: Iterable[Figure], settings: dict[str, Any]) -> str:
    """Everything measured, with the machine and the settings."""
    rows = [asdict(each) for each in figures]
    return json.dumps({"machine": machine(), "settings": settings, "figures": rows}, indent=1)
