"""Processor seconds of a run beside those of another checkout of kgctl, both in turns in the same call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.measure import ENVIRONMENT, BenchmarkError
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.benchmarks.simulate import runs

HERE = Path(__file__).parents[3]
TARGET = 0.5
PROGRAM = """
import gc, sys, time
sys.path.insert(0, sys.argv[1])
from tests.benchmarks.simulate import runs, scenarios
name, members, partitions, restarted = sys.argv[2], *map(int, sys.argv[3:6])
for count in (1, restarted):  # the first fills caches
    scenario = runs._variant(scenarios.rolling(members, partitions, restarted=count), name).scenario
    gc.collect()  # what the first has left is not the second one's
    started_s = time.process_time()
    runs.run(scenario, seed=1)
    seconds = time.process_time() - started_s
print(seconds)
"""
"""Runs with the code of the checkout that it is told, whose benchmarks know how to."""


def measure(clusters: Sequence[str], scale: Scale) -> Iterator[Row]:
    """Give a row for each size and protocol: the quickest run of each checkout, and their ratio."""
    del clusters
    if scale.against is None:
        raise BenchmarkError("simulate-beside needs --against-checkout DIR, the folder of another checkout of kgctl")
    for size in runs.SMALL if scale.small else runs.ROLLING[:2]:
        restarted = min(size.restarted, _MOST_OF_MANY if size.members > _MANY else size.members)
        for name in ("eager", "cooperative", "kip848"):
            here: list[float] = []
            there: list[float] = []
            for _ in range(scale.runs):
                here.append(_seconds(HERE, name, size, restarted))
                there.append(_seconds(scale.against, name, size, restarted))
            ratio = min(here) / min(there)
            title = f"{size.members:,} x {size.partitions:,}, {restarted} restarted, {name}"
            yield Row(
                title, (f"{min(here):.3f}", f"{min(there):.3f}", f"{ratio:.2f} {'reached' if ratio <= TARGET else 'MISSED'}")
            )


_MANY, _MOST_OF_MANY = 40, 10
"""Of a large group the first pods stand for all: every restart costs the same."""


def _seconds(checkout: Path, name: str, size: runs.Rolling, restarted: int) -> float:
    numbers = map(str, (size.members, size.partitions, restarted))
    argv = [sys.executable, "-c", PROGRAM, str(checkout), name, *numbers]
    done = subprocess.run(argv, cwd=checkout, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"the run of {checkout} failed: {done.stderr.strip().rpartition(chr(10))[2]}")
    return float(done.stdout)


RATES = Rates(
    "simulate-beside",
    "kgctl simulate, one run in CPU seconds, beside another checkout in turns (target: half)",
    ("here", "there", "ratio"),
    measure,
)
