"""Records decoded a second: by kgctl with one and two processes and on Spark, beside Spark's own scan of the same files (which
decodes nothing: the limit), a loop with struct, and the same loop as a function in Spark.

kgctl's figures hold reading the Parquet of raw records and writing the decoded Parquet; the others read only. Peers that are slow
get one file of eight.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from kgctl.pipeline.engines import Engine, LocalEngine, SparkEngine
from kgctl.pipeline.session import SparkOptions, spark_session
from tests.benchmarks.clusters import scratch
from tests.benchmarks.pipeline.decode_work import Work, Worked, decode_file, decode_rows, row_decoder
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.pipeline.generated_log import Size, generated_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 8
RECORDS = 5_000_000
SMALL = 8_000
_UDF_RESULT = "group string, topic string, partition int, committed long, epoch int, metadata string, time_ms long"
_STRUCT = pa.struct(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed", pa.int64()),
        ("epoch", pa.int32()),
        ("metadata", pa.string()),
        ("time_ms", pa.int64()),
    ]
)
_CLOCK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """One run: wall clock and processor time, Spark's JVM included."""

    records: int
    wall_s: float
    cpu_s: float
    memory_kb: int = 0


def measure(_: Sequence[str], scale: Scale) -> Sequence[Row]:
    """The best of the runs of each, by wall clock; the first in each process or JVM warms up."""
    with scratch() as folder:
        sources = generate(folder / "raw", SMALL if scale.small else RECORDS)
        works = [Work(str(source), str(folder / "decoded")) for source in sources]
        found: dict[str, Run] = {
            "kgctl, 1 process": best(scale, lambda: through(LocalEngine(1), decode_file, works)),
            "kgctl, 2 processes, as they start": through(LocalEngine(2), decode_file, works),
        }
        for cores in (2,) if scale.small else (1, 2):
            found |= on_spark(cores, works, sources, scale)
        found["loop with struct, 1 process"] = best(scale, lambda: through(LocalEngine(1), decode_rows, works[:1]))
        return rows(found)


def generate(folder: Path, records: int) -> list[Path]:
    """The same records every time, in as many files as partitions."""
    folder.mkdir()
    for partition in range(FILES):
        table = generated_log(partition, Size(records // FILES))
        pq.write_table(table, folder / f"{partition}.parquet", compression="zstd", compression_level=1, row_group_size=1 << 18)
    return sorted(folder.iterdir())


def on_spark(cores: int, works: Sequence[Work], sources: Sequence[Path], scale: Scale) -> dict[str, Run]:
    """kgctl in the light JVM that ``history build`` starts; what passes rows through the JVM in one that compiles all it can."""
    found = {}
    with session(cores, is_light=True) as spark:
        engine = SparkEngine(spark)
        found[f"kgctl on Spark, local[{cores}]"] = best(scale, lambda: through(engine, decode_file, works))
    with session(cores) as spark:
        everything = spark.read.parquet(*map(str, sources))
        found[f"Spark's scan alone, local[{cores}]"] = best(scale, lambda: drained(everything, records_in(sources)))
        if cores > 1:
            one_file = spark.read.parquet(str(sources[0]))
            for name, is_arrow in {"Arrow": True, "pickled": False}.items():
                decoded = by_row(one_file, is_arrow=is_arrow)
                found[f"loop with struct in Spark, {name}, local[{cores}]"] = best(
                    scale, partial(drained, decoded, records_in(sources[:1]))
                )
    return found


@contextmanager
def session(cores: int, *, is_light: bool = False) -> Iterator[SparkSession]:
    """One after the other: a JVM each."""
    options = SparkOptions(master=f"local[{cores}]", is_light=is_light, settings={"spark.default.parallelism": str(cores)})
    with spark_session(options) as spark:
        yield spark


def by_row(frame: DataFrame, *, is_arrow: bool) -> DataFrame:
    """Decoded one record at a time in Python, which gets them one by one or as Arrow arrays."""
    from pyspark.sql.functions import udf
    from pyspark.sql.pandas.functions import arrow_udf

    decode_arrays = arrow_udf(_decode_arrays, _UDF_RESULT)  # type: ignore[call-overload]  # its stubs want a generator
    decoded = (decode_arrays if is_arrow else udf(row_decoder(), _UDF_RESULT, useArrow=False))("key", "value")
    return frame.where("commits is null").select(decoded.alias("found")).select("found.*")


def _decode_arrays(keys: pa.Array, values: pa.Array) -> pa.Array:
    read = row_decoder()
    found = [read(key, value) for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True)]
    return pa.array([None if each is None else dict(zip(_STRUCT.names, each, strict=True)) for each in found], _STRUCT)


def drained(frame: DataFrame, records: int) -> Run:
    """Every row made, none kept."""
    return timed(lambda: [Worked(records, 0, 0)], lambda: frame.write.format("noop").mode("overwrite").save())


def through(engine: Engine, function: Callable[[Work], Worked], works: Sequence[Work]) -> Run:
    """All files through an engine."""
    found: list[Worked] = []
    return timed(lambda: found, lambda: found.extend(done.get() for done in engine.map(function, works)))


def timed(found: Callable[[], list[Worked]], do: Callable[[], object]) -> Run:
    """Do it."""
    wall, cpu = time.perf_counter(), tree_cpu_s()
    do()
    wall, cpu = time.perf_counter() - wall, tree_cpu_s() - cpu
    worked = found()
    return Run(sum(each.records for each in worked), wall, cpu, max(each.memory_kb for each in worked))


def best(scale: Scale, run: Callable[[], Run]) -> Run:
    """Of the runs after the first."""
    return min((run() for _ in range(scale.runs + 1)), key=lambda each: each.wall_s)


def records_in(sources: Sequence[Path]) -> int:
    """Rows of these files."""
    return sum(pq.read_metadata(source).num_rows for source in sources)


def tree_cpu_s() -> float:
    """Processor time of this process and all below it, those that have ended included (Linux)."""
    return sum(family().values()) / _CLOCK


def family() -> dict[int, int]:
    """This process and all below it, each with the clock ticks that it and those of its children that have ended took (Linux)."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    found = {os.getpid()}
    while grown := {pid for pid, (parent, _) in stats.items() if parent in found} - found:
        found |= grown
    return {pid: stats[pid][1] for pid in found if pid in stats}


def rows(found: dict[str, Run]) -> list[Row]:
    """Rates, and each rate as a share of kgctl's on Spark with two cores."""
    own = found["kgctl on Spark, local[2]"]
    lines = []
    for name, run in found.items():
        rate = run.records / run.wall_s
        share = rate / (own.records / own.wall_s)
        per_million = run.cpu_s / run.records * 1e6
        memory = f"{run.memory_kb / 1024:,.0f}" if run.memory_kb else "-"
        lines.append(Row(name, (f"{rate / 1e6:.2f}", f"{per_million:.2f}", f"{share:.2f}", memory)))
    return lines


RATES = Rates(
    "decode",
    "Raw records decoded, Parquet in and out (a worker's memory; share: of kgctl on Spark with two cores)",
    ("M a second", "CPU s a million", "share", "MB a worker"),
    measure,
)
