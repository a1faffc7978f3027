"""A sweep, whole processes: on this machine's processors and on Spark, beside the runs alone."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kgctl.simulate.batch.plan import Task, run_task
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.benchmarks.tree import Usage, watch

SCENARIO = """\
kgctl: 1
name: small
topics: {orders: 24}
members: {app: {count: 6}}
warmup: 30s
events:
  - {at: 0s, rolling_restart: app, settle: 20s}
  - {at: 10m, crash: app/1, for: 2m}
"""
PARAMETER = "group.config.session.timeout.ms"
VALUES = ("10s", "20s", "30s", "45s")

ENGINES = {
    "--jobs 1": ("--jobs", "1"),
    "--jobs 2": ("--jobs", "2"),
    "--engine spark --master local[2]": ("--engine", "spark", "--master", "local[2]"),
}


def measure(_clusters: Sequence[str], scale: Scale) -> Sequence[Row]:
    """Each engine in turn; the best of all turns. The limit is what the runs take in one process that does nothing else."""
    seeds = 2 if scale.small else 300
    turns = 1 if scale.small else min(scale.runs, 3)
    alone_s = min(_alone(min(seeds, 50)) for _ in range(turns))
    used: dict[str, list[Usage]] = {name: [] for name in ENGINES}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.yaml"
        file.write_text(SCENARIO)
        for _ in range(turns):
            for name, flags in ENGINES.items():
                used[name].append(watch(_command(file, seeds, flags)))
    runs = seeds * len(VALUES)
    title = Row(f"{runs:,} runs, each alone", ("", "", f"{1 / alone_s:,.0f}", "1.00", ""))
    return [title, *(_row(name, found, runs, alone_s) for name, found in used.items())]


def _command(file: Path, seeds: int, flags: Sequence[str]) -> list[str]:
    sweep = ["simulate", "sweep", str(file), "--set", f"{PARAMETER}={','.join(VALUES)}", "--runs", str(seeds), "--verify", "0"]
    return [sys.executable, "-m", "kgctl", *sweep, *flags, "--out", str(file.with_name("runs.parquet"))]


def _alone(seeds: int) -> float:
    """Seconds of processor for one run."""
    loaded = [load(read_yaml(SCENARIO, ""), settings=[f"{PARAMETER}={value}"]) for value in VALUES]
    started = time.process_time()
    for one in loaded:
        variant = one.variants[0]
        for seed in range(1, seeds + 1):
            run_task(Task(variant=variant.name, scenario=variant.scenario, settings={}, checks=(), seed=seed))
    return (time.process_time() - started) / (seeds * len(loaded))


def _row(name: str, used: Sequence[Usage], runs: int, alone_s: float) -> Row:
    wall_s, cpu_s = min(one.wall_s for one in used), min(one.cpu_s for one in used)
    peak = statistics.median(one.peak_bytes for one in used) / 1e6
    numbers = (f"{wall_s:.1f}", f"{cpu_s:.1f}", f"{runs / cpu_s:,.0f}", f"{cpu_s / runs / alone_s:.2f}", f"{peak:,.0f}")
    return Row(name, numbers)


RATES = Rates("sweep", "kgctl simulate sweep, whole process", ("wall s", "CPU s", "runs a CPU s", "x alone", "peak MB"), measure)
