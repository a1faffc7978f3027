"""``python -m tests.benchmarks.assignors``: the assignors' speed and memory, beside their peers in the same run.

    python -m tests.benchmarks.assignors            everything: some minutes
    python -m tests.benchmarks.assignors --small    only shows that it works

In memory, from the members' bytes to the assignments' bytes, and ``kgctl simulate assign`` as a whole process; kafka-python's and
aiokafka's assignors at a size that they finish, Kafka's Java classes (first call, and best of those after it) where there is a
JDK and Maven. Times are the best of some runs, in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.benchmarks.assignors.groups import Group, Owned, Size, steps
from tests.benchmarks.assignors.subjects import PEERS, Prepare, kgctl_bytes, kgctl_in_memory, own_answer
from tests.support.java_assignors import SOURCES
from tests.support.machine import Unavailable
from tests.support.maven import compile_java, java_command

CLIENT = ("range", "roundrobin", "sticky", "cooperative-sticky")
LARGE = (Size(1000, 1000, 2000), Size(100, 10_000, 2000), Size(1000, 1000, 2000, scattered=True))
UNEQUAL = (Size(100, 200, 500, "half"), Size(1000, 1000, 2000, "odd"))
MODEST = (Size(20, 100, 50), Size(100, 100, 100), Size(10, 50, 20, "half"))
WHOLE = (Size(100, 1000, 2000), Size(1000, 1000, 2000))
SMALL = Size(10, 20, 10)
STEPS = ("fresh", "one left", "one joined", "a tenth left")


def cpu_s() -> float:
    """Processor time of this process and of those it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
clock = "wall"


def best(call: Callable[[], object], runs: int, now: Callable[[], float] | None = None) -> float:
    """The shortest of some runs."""
    times = []
    now = now or CLOCKS[clock]
    for _ in range(runs):
        start = now()
        call()
        times.append(now() - start)
    return min(times)


def line(name: str, times: Sequence[float], note: str = "") -> None:
    """One row of a table."""
    print(f"  {name:<34}" + "".join(f"{seconds:>14.4f}" for seconds in times) + f"  {note}", flush=True)


def head(title: str) -> None:
    """A table's head."""
    print(f"\n{title}\n  {'':<34}" + "".join(f"{step:>14}" for step in STEPS))


def cases(name: str, group: Group) -> Iterator[tuple[str, Group, Owned]]:
    """The steps, from kgctl's own assignments."""
    return steps(group, partial(own_answer, name))


def measure(prepare: Prepare, name: str, group: Group, runs: int) -> list[float]:
    """One assignor over the steps."""
    return [best(prepare(name, at, owned), runs) for _, at, owned in cases(name, group)]


def peak_mb(name: str, group: Group) -> float:
    """The most memory that an assignment after a member left needs besides its input."""
    call = next(kgctl_in_memory(name, at, owned) for step, at, owned in cases(name, group) if step == "one left")
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def large(size: Size, runs: int) -> None:
    """kgctl alone, in memory and as bytes, beside Java."""
    group = size.group()
    head(f"{size}: in memory")
    for name in (*CLIENT, "uniform"):
        line(f"kgctl {name}", measure(kgctl_in_memory, name, group, runs), f"{peak_mb(name, group):.0f} MB")
    java(size, "memory")
    head(f"{size}: members' bytes in, assignments' bytes out")
    for name in CLIENT:
        line(f"kgctl {name}", measure(kgctl_bytes, name, group, runs))
    java(size, "bytes")


def unequal(size: Size, runs: int) -> None:
    """Unequal subscriptions; Java only where it ends within a minute."""
    group = size.group()
    head(f"{size}: in memory")
    for name in ("sticky", "cooperative-sticky", "uniform"):
        line(f"kgctl {name}", measure(kgctl_in_memory, name, group, runs))
    if size.topics * size.partitions <= 20_000:
        java(size, "memory")


def beside_python(size: Size, runs: int) -> None:
    """kgctl and the Python clients' assignors."""
    group = size.group()
    head(f"{size}: beside Python clients")
    for name in ("range", "roundrobin", "sticky"):
        line(f"kgctl {name}", measure(kgctl_in_memory, name, group, runs))
        for peer, prepare in PEERS.items():
            try:
                line(f"{peer} {name}", measure(prepare, name, group, 1))
            except Exception as error:  # noqa: BLE001 - whatever a peer does, the others are measured
                print(f"  {peer} {name}: fails with {type(error).__name__}: {error}")


def java(size: Size, form: str) -> None:
    """Kafka's own classes: the first call of a fresh JVM, and the best of those after it."""
    try:
        classes = compile_java(SOURCES / "pom.xml", sorted(SOURCES.glob("*.java")))
    except Unavailable as error:
        print(f"  Kafka's classes not measured: {error}")
        return
    for name in CLIENT if size.subscriptions == "equal" else CLIENT[2:]:
        group = size.group()
        command = java_command(classes, "Measure", name, form, clock, jvm=("-Xmx3g", "-XX:+UseSerialGC"))
        text = "\n".join(
            [",".join(group.topics), str(size.partitions), *(f"{m} {','.join(t)}" for m, t in group.subscriptions.items())]
        )
        ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=900)
        if ran.returncode:
            print(f"  Java {name}: {ran.stderr.strip().splitlines()[-1]}")
            continue
        measured = json.loads(ran.stdout)
        line(f"Java {name}, warm", [measured[step]["best"] for step in STEPS])
        line(f"Java {name}, first call", [measured[step]["first"] for step in STEPS])


def whole_process(size: Size, runs: int) -> None:
    """``kgctl simulate assign`` over a JSON file."""
    group = size.group()
    head(f"{size}: kgctl simulate assign FILE.json -o json, whole process")
    for name in ("sticky", "cooperative-sticky", "uniform"):
        times = []
        for _, at, owned in cases(name, group):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "group.json"
                path.write_text(json.dumps(_document(at, owned)))
                command = [sys.executable, "-m", "kgctl", "simulate", "assign", str(path), "--assignor", name, "-o", "json"]
                call = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
                times.append(best(call, runs, cpu_s if clock == "cpu" else None))
        line(f"kgctl {name}", times)


def _document(group: Group, owned: Owned) -> dict[str, object]:
    members: dict[str, dict[str, object]] = {member: {"topics": topics} for member, topics in group.subscriptions.items()}
    for member in members.keys() & owned.keys():
        members[member] |= {"owned": owned[member], "generation": 1}
    return {"id": "big", "topics": group.topics, "members": members}


def main() -> None:
    """Runs everything and prints it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.assignors", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a size that only shows that it works")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--part", action="append", choices=["large", "unequal", "python", "process"], help="repeatable; all without"
    )
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="on a busy machine processor time tells more")
    options = parser.parse_args()
    global clock
    clock = options.clock
    if options.small:
        large(SMALL, 1)
        unequal(Size(4, 10, 6, "half"), 1)
        beside_python(SMALL, 1)
        whole_process(SMALL, 1)
        return
    parts = {
        "large": (large, LARGE),
        "unequal": (unequal, UNEQUAL),
        "python": (beside_python, MODEST),
        "process": (whole_process, WHOLE),
    }
    for part in options.part or parts:
        table, sizes = parts[part]
        for size in sizes:
            table(size, options.runs)


if __name__ == "__main__":
    main()
