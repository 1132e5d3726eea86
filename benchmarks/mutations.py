"""Does the test suite notice when a promise is broken?

``python -m benchmarks.mutations [--only NAME] [--json OUT] [--jobs 2]`` breaks one promise after
another in a copy of the checkout and runs the tests that guard it. A mutation is caught where they
fail, and survives where they pass; the exit status is 1 when one survives or could not be tried.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from benchmarks.promises import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "benchmarks", "pyproject.toml")
LONGEST_SECONDS = 180
CAUGHT, SURVIVED, BROKEN = "caught", "SURVIVED", "BROKEN"


class NotApplicable(Exception):
    """The text to change is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one mutation; `detail` names the failed test, or what went wrong."""

    promise: str
    file: str
    verdict: str
    detail: str
    seconds: float


def copy_checkout(target: Path) -> Path:
    """The parts of the checkout that the tests need, in a folder of their own."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target / name, ignore=ignored)
        else:
            shutil.copy2(source, target / name)
    return target


@contextmanager
def applied(checkout: Path, mutation: Mutation) -> Iterator[None]:
    """`mutation` in force; NotApplicable unless its text is there exactly once."""
    path = checkout / "src" / "muniment" / mutation.file
    text = path.read_text("utf-8")
    places = text.count(mutation.before)
    if places != 1 or mutation.before == mutation.after:
        raise NotApplicable(f"the text to change is there {places} times")
    path.write_text(text.replace(mutation.before, mutation.after), "utf-8")
    try:
        yield
    finally:
        path.write_text(text, "utf-8")


def run_tests(checkout: Path, tests: Sequence[str]) -> tuple[int | None, str]:
    """pytest's exit status and report; None where the tests hang."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "--no-header"]
    command += ["-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    try:
        done = subprocess.run(  # noqa: S603
            command,
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def judged(checkout: Path, mutation: Mutation) -> Outcome:
    """Break the promise and see."""
    begun = time.monotonic()
    try:
        with applied(checkout, mutation):
            status, report = run_tests(checkout, mutation.tests)
        verdict, detail = verdict_of(status, report)
    except (NotApplicable, OSError) as error:
        verdict, detail = BROKEN, str(error)
    seconds = round(time.monotonic() - begun, 1)
    return Outcome(mutation.promise, mutation.file, verdict, detail, seconds)


def verdict_of(status: int | None, report: str) -> tuple[str, str]:
    """Failed tests catch, passed ones let through; a suite that cannot run says nothing."""
    if status is None:
        return CAUGHT, "the tests hang"
    failed = [line for line in report.splitlines() if line.startswith("FAILED ")]
    if status == 1 and failed:
        return CAUGHT, failed[0].removeprefix("FAILED ").partition(" - ")[0]
    if status == 0:
        return SURVIVED, ""
    return BROKEN, f"pytest ended with {status}"


def all_judged(mutations: Sequence[Mutation], jobs: int) -> list[Outcome]:
    """Every outcome, in the order of the list; each job has a checkout of its own."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            free.put(copy_checkout(Path(folder) / str(number)))
        check_unbroken(Path(folder) / "0", mutations)

        def one(mutation: Mutation) -> Outcome:
            checkout = free.get()
            try:
                outcome = judged(checkout, mutation)
            finally:
                free.put(checkout)
            print(f"{outcome.verdict:8} {outcome.promise}", file=sys.stderr, flush=True)
            return outcome

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, mutations))


def check_unbroken(checkout: Path, mutations: Sequence[Mutation]) -> None:
    """Exit unless every guarding test passes as long as nothing is broken."""
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    status, report = run_tests(checkout, tests)
    if status != 0:
        sys.exit(f"the tests fail before anything is changed ({status}):\n{report[-3000:]}")


def print_table(outcomes: Sequence[Outcome]) -> None:
    """One line a mutation, and the total."""
    width = max(len(outcome.promise) for outcome in outcomes)
    for each in outcomes:
        print(f"{each.promise:{width}}  {each.verdict:8}  {each.detail}")
    caught = sum(outcome.verdict == CAUGHT for outcome in outcomes)
    print(f"{caught} of {len(outcomes)} caught")


def main() -> int:
    """Run what is asked for; 1 where a mutation was not caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", help="the mutations whose promise holds this text")
    parser.add_argument("--json", type=Path, help="write the outcomes to this file too")
    parser.add_argument("--jobs", type=int, default=2, help="checkouts at work side by side")
    options = parser.parse_args()
    wanted = [each for each in MUTATIONS if (options.only or "") in each.promise]
    if not wanted:
        parser.error("no promise holds that text")
    outcomes = all_judged(wanted, max(1, options.jobs))
    print_table(outcomes)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=2) + "\n")
    return 0 if all(outcome.verdict == CAUGHT for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
