"""What the peers' scripts share: the same texts and vectors, and the same clocks."""

from __future__ import annotations

import json
import sys
import time
from array import array
from itertools import count
from pathlib import Path


def asked():
    """What this process is asked for."""
    return json.loads(sys.argv[1])


def texts(wanted):
    """Texts and questions, a list each."""
    written = json.loads((Path(wanted["folder"]) / "texts.json").read_text())
    return written["texts"], written["questions"]


def vectors(wanted, name):
    """The vectors of ``texts`` or ``questions``: lists of floats."""
    numbers = array("f")
    numbers.frombytes((Path(wanted["folder"]) / name).read_bytes())
    width = wanted["dimensions"]
    return [numbers[start : start + width].tolist() for start in range(0, len(numbers), width)]


def enough(times, seconds=3.0):
    """0, 1, 2...: so many, and more until so many seconds have passed (as for muniment)."""
    begun = time.perf_counter()
    for number in count():
        if number >= times and time.perf_counter() - begun >= seconds:
            return
        yield number


def timed(call, calls, warm=3):
    """Seconds of each call, on the wall and of the processor."""
    wall, cpu = [], []
    for number in enough(warm + calls):
        begun, worked = time.perf_counter(), time.process_time()
        call(number)
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - worked)
    return {"wall": wall[warm:], "cpu": cpu[warm:]}


def tell(system, **answer):
    """The answer, as the last line."""
    print(json.dumps({"system": system} | answer))
