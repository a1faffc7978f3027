"""Slices as a plan of Spark: its own scan of the files, grouped by slice, each group given to the same functions in Python.

Only names of files go back through the JVM; the rows of the tables are written where they are made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kgctl.pipeline.builds.slices import Slice, placed
from kgctl.pipeline.builds.tables_of import SliceInput, SliceResult, SliceTask, build_slice
from kgctl.pipeline.store.files import DataFile, opened
from kgctl.pipeline.store.location import Location
from kgctl.pipeline.store.raw import RAW, conform
from kgctl.pipeline.store.tables import from_stored

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = ("log_partition", "log_offset", "time", "key", "value", "producer_id", "producer_epoch", "commits")
_SCHEMA = (
    "log_partition int, log_offset bigint, time timestamp, key binary, value binary, producer_id bigint, "
    "producer_epoch smallint, commits boolean"
)
_GROUP = "substring(key, 5, cast(conv(hex(substring(key, 3, 2)), 16, 10) as int))"
"""Every key begins with a type and a group: int16, then a text with its length before it as int16."""


@dataclass(frozen=True)
class SparkWork:
    """What all slices of a build have in common. It goes to the executors."""

    location: Location
    cluster: str
    slices: Sequence[Slice]
    buckets: int
    samples: pa.Table
    coverage: pa.Table


def build_slices(spark: SparkSession, work: SparkWork, files: Sequence[DataFile]) -> list[SliceResult]:
    """Build the slices of these files of records, which are of one cluster each."""
    frame = records_frame(spark, work.location, files)
    first = ", ".join(str(each.first) for each in work.slices)
    spread = frame.selectExpr("*", f"array({first}) AS firsts").selectExpr(
        *_COLUMNS,
        f"explode(CASE WHEN key IS NULL THEN sequence(0, {len(work.slices) - 1}) ELSE "
        f"array(size(filter(firsts, first -> first <= cast(crc32({_GROUP}) % {work.buckets} AS int))) - 1) END) AS slice",
    )
    rows = spread.groupBy("slice").applyInArrow(_task(work), "result string").collect()
    return [_result(json.loads(row.result)) for row in rows]


def records_frame(spark: SparkSession, location: Location, files: Sequence[DataFile]) -> DataFrame:
    """Records as a data frame: by Spark's own scan where it reaches the store without a jar, else by pyarrow in its tasks."""
    paths = [f"{location.child('records')}/{file.path}" for file in files]
    if not paths:
        return spark.createDataFrame([], _SCHEMA)
    if location.is_local or location.uri.startswith("hdfs:"):
        scanned = [f"file://{path}" for path in paths] if location.is_local else paths
        return spark.read.schema(_SCHEMA).parquet(*scanned)
    names = spark.createDataFrame([(file.path,) for file in files], "path string").repartition(len(files))
    return names.mapInArrow(_reader(location), _SCHEMA)


def _reader(location: Location) -> Any:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                with opened(location, "records", path) as file:
                    yield from file.read(list(_COLUMNS)).to_batches(max_chunksize=100_000)

    return read


def _task(work: SparkWork) -> Any:
    def build(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        number = int(key[0].as_py())
        raw, _ = placed(conform(from_stored("records", rows.select(list(_COLUMNS))), RAW))
        given = SliceInput(raw, work.samples, work.coverage, is_first=number == 0)
        done = build_slice(SliceTask(work.location, work.cluster, work.slices[number], given))
        said = {"files": {name: [asdict(file) for file in files] for name, files in done.files.items()}, "counts": done.counts}
        return pa.table({"result": [json.dumps(said)]})

    return build


def _result(said: dict[str, Any]) -> SliceResult:
    files = {name: [DataFile(**file) for file in found] for name, found in said["files"].items()}
    return SliceResult(files, Counter(said["counts"]))
