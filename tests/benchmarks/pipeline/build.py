"""A whole build, raw records to all tables: by kgctl with one and two processes and on Spark, beside Spark's own scan of the same
files, which decodes nothing and writes nothing: the limit.

Warm: Spark runs already and has built once; a process of kgctl's own engine starts with each build. Then the same build again,
which finds nothing new, and one after a hundredth more was collected.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shutil import copytree
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from kgctl.pipeline.builds.run import build
from kgctl.pipeline.engines import Engine, LocalEngine, SparkEngine
from kgctl.pipeline.session import SparkOptions, spark_session
from kgctl.pipeline.store.warehouse import Warehouse
from tests.benchmarks.clusters import scratch
from tests.benchmarks.pipeline.build_work import PIECE, Noting, collected, grow
from tests.benchmarks.pipeline.decode import Run, best, drained, tree_cpu_s
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.pipeline.generated_log import Size, generated_log
from tests.support.pipeline.warehouses import add, data_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS, RECORDS = 50, 5_000_000
SMALL_PARTITIONS, SMALL_RECORDS = 2, 4_000
PIECES, TOLD = 20, (1, 5, 20)
"""Of a history of so many million records, built as it grows, what 200 more cost is told after these."""
NEW = 200


def measure(_: Sequence[str], scale: Scale) -> Sequence[Row]:
    """The best of the runs of each, by wall clock."""
    partitions, records = (SMALL_PARTITIONS, SMALL_RECORDS) if scale.small else (PARTITIONS, RECORDS)
    with scratch() as folder:
        warehouse = collected(folder / "warehouse", partitions, records)
        found = {
            "kgctl, 1 process": best(scale, lambda: anew(warehouse, LocalEngine(1), records)),
            "kgctl, 2 processes": best(scale, lambda: anew(warehouse, LocalEngine(2), records)),
        }
        for cores in (2,) if scale.small else (1, 2):
            found |= on_spark(warehouse, cores, records, scale)
        found["the same again: nothing new"] = best(scale, lambda: run(warehouse, LocalEngine(2), records))
        found[f"200 more on {records:,}"] = more(warehouse, partitions, records)
    with scratch() as folder:
        found |= grown(
            Warehouse.create(folder / "warehouse"), 1 if scale.small else PIECES, SMALL_RECORDS if scale.small else PIECE
        )
    own = found["kgctl on Spark, local[2]"]
    return [row(name, each, own) for name, each in found.items()]


def on_spark(warehouse: Warehouse, cores: int, records: int, scale: Scale) -> dict[str, Run]:
    """What runs on Spark; the scan with the whole compiler, since its rows pass through the JVM."""
    files = [f"file://{path}" for path in data_files(warehouse, "records")]
    with spark(cores, is_light=True) as session:
        engine = SparkEngine(session)
        built = best(scale, lambda: anew(warehouse, engine, records))
    with spark(cores, is_light=False) as session:
        scanned = best(scale, lambda: drained(session.read.parquet(*files), records))
    return {f"kgctl on Spark, local[{cores}]": built, f"Spark's scan alone, local[{cores}]": scanned}


@contextmanager
def spark(cores: int, *, is_light: bool) -> Iterator[SparkSession]:
    """Spark as ``kgctl history build`` starts it, or with the whole compiler."""
    settings = {"spark.default.parallelism": str(cores)}
    with spark_session(SparkOptions(master=f"local[{cores}]", is_light=is_light, settings=settings)) as session:
        yield session


def anew(warehouse: Warehouse, engine: Engine, records: int) -> Run:
    """Build everything."""
    return run(warehouse, engine, records, is_rebuild=True)


def more(warehouse: Warehouse, partitions: int, records: int) -> Run:
    """Build after a few records more were added: those that follow in the same log."""
    size = records // partitions
    for partition in range(partitions):
        log = generated_log(partition, Size(size)).slice(size - NEW // partitions)
        for name, step in (("offset", NEW // partitions), ("timestamp_ms", 1_000)):
            later = pc.add(log.column(name), step)
            log = log.set_column(log.schema.get_field_index(name), log.schema.field(name), later)
        add(warehouse, "c1", log, "more")
    return run(warehouse, LocalEngine(1), NEW)


def grown(warehouse: Warehouse, pieces: int, size: int) -> dict[str, Run]:
    """What a few records more cost, the least of three builds, on a history that grows at the same rate: not more than before."""
    found = {}
    for number in range(pieces):
        grow(warehouse, number, size)
        run(warehouse, LocalEngine(1), size)
        if number + 1 in TOLD:
            copy = Warehouse.create(copytree(warehouse.location.uri, f"{warehouse.location.uri}-{number}"))
            runs = []
            for step in range(3):
                grow(copy, number + 1, NEW * (step + 1), NEW * step)
                runs.append(run(copy, LocalEngine(1), NEW))
            found[f"200 more on {(number + 1) * size:,} of one partition"] = min(runs, key=lambda each: each.cpu_s)
    return found


def run(warehouse: Warehouse, engine: Engine, records: int, *, is_rebuild: bool = False) -> Run:
    """One build."""
    noting = Noting(engine)
    wall, cpu = time.perf_counter(), tree_cpu_s()
    given = engine if engine.name == "spark" else noting
    result = build(warehouse, ["c1"], lambda _: given, is_rebuild=is_rebuild)
    assert not result.failed
    return Run(records, time.perf_counter() - wall, tree_cpu_s() - cpu, noting.memory_kb)


def row(name: str, found: Run, own: Run) -> Row:
    """Seconds, rates, and each rate as a share of kgctl's on Spark with two cores."""
    rate, share = found.records / found.wall_s, found.records / found.wall_s * own.wall_s / own.records
    memory = f"{found.memory_kb / 1024:,.0f}" if found.memory_kb else "-"
    return Row(name, (f"{found.wall_s:.2f}", f"{found.cpu_s:.2f}", f"{rate / 1e6:.2f}", f"{share:.2f}", memory))


RATES = Rates(
    "build",
    "Tables of a history built from raw records (a worker's memory; share: of kgctl on Spark with two cores)",
    ("seconds", "CPU seconds", "M a second", "share", "MB a worker"),
    measure,
)
