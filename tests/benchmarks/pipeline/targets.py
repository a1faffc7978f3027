"""What the history has to cost, row by row beside its target: whole commands from start to end, builds on a warm Spark, one busy
partition of ``__consumer_offsets`` beside many, and the memory of a task.

Targets are of two quiet cores. Processor time is of all processes, Spark's JVM included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree

from kgctl.pipeline.engines import LocalEngine, SparkEngine
from kgctl.pipeline.store.warehouse import Warehouse
from tests.benchmarks.clusters import KGCTL, scratch
from tests.benchmarks.pipeline.build import NEW, anew, run, spark
from tests.benchmarks.pipeline.build_work import PIECE, collected, grow
from tests.benchmarks.pipeline.decode import Run, best, drained, family
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.benchmarks.tree import watch
from tests.support.pipeline.warehouses import data_files

PARTITIONS, PIECES, FEW = 50, 5, 40_000
SMALL = 4_000


def measure(_: Sequence[str], scale: Scale) -> Iterator[Row]:
    """Each row as soon as it is there."""
    size, pieces = (SMALL, 1) if scale.small else (PIECE, PIECES)
    with scratch() as folder:
        history = Warehouse.create(folder / "history")
        for number in range(pieces):
            grow(history, number, size)
            run(history, LocalEngine(1), size)
        yield from commands(Path(history.location.uri), pieces, size, scale)
        yield from on_warm_spark(history, pieces, size)
    with scratch() as folder:
        few = collected(folder / "few", 2, SMALL if scale.small else FEW)
        yield whole(f"{FEW:,} records from nothing, whole command", ["build"], few.location.uri, "2.0 s")
    for partitions in (1,) if scale.small else (PARTITIONS, 1):
        with scratch() as folder:
            yield from full(collected(folder / "w", partitions, SMALL if scale.small else PIECE * PIECES), partitions, scale)


def commands(folder: Path, pieces: int, size: int, scale: Scale) -> Iterator[Row]:
    """Answers, and a build of what is new, on a history of so many pieces."""
    for group, what in (("group-0-30", "a group"), ("group-0-0", "the busiest group (a third of all commits)")):
        for name in ("offsets", "lag", "health"):
            label = f"history {name} of {what}, whole command"
            found = [whole(label, [name, group], str(folder), "0.35 CPU s") for _ in range(scale.runs)]
            yield min(found, key=lambda row: row.numbers[1])
    with scratch() as other:
        copy = Warehouse.create(copytree(folder, other / "w"))
        grow(copy, pieces, min(NEW, size))
        yield whole(f"{NEW} records on {pieces * size:,}, whole command", ["build"], copy.location.uri, "2.0 CPU s")


def whole(name: str, arguments: Sequence[str], warehouse: str, target: str) -> Row:
    """A command of ``kgctl history`` as a user starts it."""
    options = ["--engine", "local", "--jobs", "1"] if arguments[0] == "build" else []
    used = watch([*KGCTL, "history", *arguments, "--warehouse", warehouse, *options], codes=(0, 3))
    return Row(name, (f"{used.wall_s:.2f}", f"{used.cpu_s:.2f}", f"{used.peak_bytes / 1e6:,.0f}", target))


def on_warm_spark(history: Warehouse, pieces: int, size: int) -> Iterator[Row]:
    """A few records more at a time, on one session, as ``history watch`` builds them; the first two warm it up."""
    with scratch() as folder, spark(2, is_light=True) as session:
        copy, engine = Warehouse.create(copytree(history.location.uri, folder / "w")), SparkEngine(session)
        runs = []
        for step in range(5):
            grow(copy, pieces, NEW * (step + 1), NEW * step)
            runs.append(run(copy, engine, NEW))
        yield shown(f"{NEW} records on {pieces * size:,}, warm Spark", min(runs[2:], key=lambda each: each.wall_s), "2.0 s")


def full(warehouse: Warehouse, partitions: int, scale: Scale) -> Iterator[Row]:
    """Everything, here and on a warm Spark, and Spark's own scan of the same files."""
    where = "one partition" if partitions == 1 else f"{partitions} partitions"
    records = sum(file.rows for file in warehouse.table("records").files())
    yield shown(f"all {records:,}, {where}, local", anew(warehouse, LocalEngine(1), records), "22 CPU s")
    with spark(2, is_light=True) as session:
        found = best(scale, lambda: anew(warehouse, SparkEngine(session), records))
        yield shown(f"all {records:,}, {where}, warm Spark", found, "36 CPU s")
        yield Row(f"a task's memory, {where}, warm Spark", ("-", "-", f"{task_memory_kb() / 1024:,.0f}", "600 MB"))
    files = [f"file://{path}" for path in data_files(warehouse, "records")]
    with spark(2, is_light=False) as session:
        scanned = best(scale, lambda: drained(session.read.parquet(*files), records))
        yield shown(f"Spark's scan of them, {where}", scanned, "")


def shown(name: str, found: Run, target: str) -> Row:
    """One measured build."""
    memory = f"{found.memory_kb / 1024:,.0f}" if found.memory_kb else "-"
    return Row(name, (f"{found.wall_s:.2f}", f"{found.cpu_s:.2f}", memory, target))


def task_memory_kb() -> int:
    """The most that one of Spark's Python workers has ever had; they stay for the next job (Linux)."""
    found = [0]
    for pid in family():
        try:
            is_worker = b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
            status = Path(f"/proc/{pid}/status").read_text() if is_worker else ""
        except OSError:
            continue
        found += [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
    return max(found)


RATES = Rates(
    "history",
    "What the history costs (targets: of two quiet cores)",
    ("seconds", "CPU seconds", "MB", "target"),
    measure,
)
