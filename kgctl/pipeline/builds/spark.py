"""Portions of a build as plans of Spark: its own scan of the records, a shuffle by slices, and the same fold in each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kgctl.pipeline.builds.cut import placed
from kgctl.pipeline.builds.fold import Folded, Portion, folding
from kgctl.pipeline.engines import JOBS, dealt, side_by_side
from kgctl.pipeline.sources.spark_source import COLUMNS, SCHEMA
from kgctl.pipeline.store.files import StoreLocation, opened
from kgctl.pipeline.store.tables import RAW, conform, from_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def fold_all(spark: SparkSession, portions: Sequence[Portion]) -> Iterator[tuple[int, Folded]]:
    """Fold these portions, of different slices; each with its number, a job's at a time."""
    for future in side_by_side(spark, partial(_fold, spark), dealt(dict(enumerate(portions)), JOBS)):
        yield from future.result()


def _fold(spark: SparkSession, job: Sequence[tuple[int, Portion]]) -> list[tuple[int, Folded]]:
    """One job: a task for each portion. Nothing is sorted on the way, as it would be for groups."""
    portions = [portion for _, portion in job]
    paths = list(dict.fromkeys(each.path for portion in portions for each in portion.records))
    rows = stored_frame(spark, portions[0].location, "records", paths, SCHEMA).where(_condition(portions))
    numbered = rows.selectExpr(f"{_number(portions)} AS portion", *COLUMNS)
    every = spark.createDataFrame([(number, -1) for number in range(len(portions))], "portion int, log_partition int")
    apart = numbered.unionByName(every, allowMissingColumns=True).repartitionById(len(portions), "portion")
    found = apart.mapInArrow(_task(portions), "portion int, result string").collect()  # an iterator runs one task at a time
    return [(job[row.portion][0], Folded.of_text(row.result)) for row in found]


def _number(portions: Sequence[Portion]) -> str:
    """In Spark's SQL, the number of the portion that a record is of; their slices ascend."""
    cases = (f"WHEN log_partition < {portion.slice.end} THEN {number}" for number, portion in enumerate(portions))
    return f"CASE {' '.join(cases)} END"


def _condition(portions: Sequence[Portion]) -> str:
    """In Spark's SQL, which records of their files these portions have."""
    bounds: dict[int, tuple[int, int]] = {}
    for each in (each for portion in portions for each in portion.records):
        low, high = bounds.get(each.partition, (each.low, each.high))
        bounds[each.partition] = min(low, each.low), max(high, each.high)
    ranges = (f"(log_partition = {number} AND log_offset BETWEEN {low} AND {high})" for number, (low, high) in bounds.items())
    return " OR ".join(ranges) or "false"


def _task(portions: Sequence[Portion]) -> Any:
    given = [replace(portion, records=()) for portion in portions]

    def build(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = pa.Table.from_batches(batches)
        (number,) = pc.unique(rows.column("portion")).to_pylist()
        own = rows.filter(pc.greater_equal(rows.column("log_partition"), 0)).select(list(COLUMNS))
        raw, _ = placed(conform(from_stored("records", own), RAW))
        done = folding(given[number], raw)
        yield pa.record_batch({"portion": pa.array([number], pa.int32()), "result": [done.text()]})

    return build


def stored_frame(spark: SparkSession, location: StoreLocation, table: str, paths: Sequence[str], schema: str) -> DataFrame:
    """Files of a table as a data frame: by Spark's own scan where it reaches the store without a jar, else by pyarrow."""
    if not paths:
        return spark.createDataFrame([], schema)
    if location.is_local or location.uri.startswith("hdfs:"):
        scheme = "file://" if location.is_local else ""
        return spark.read.schema(schema).parquet(*(f"{scheme}{location.child(table)}/{path}" for path in paths))
    names = spark.createDataFrame([(path,) for path in paths], "path string").repartition(len(paths))
    return names.mapInArrow(_reader(location, table, [each.split(" ")[0] for each in schema.split(", ")]), schema)


def _reader(location: StoreLocation, table: str, columns: Sequence[str]) -> Any:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                with opened(location, table, path) as file:
                    yield from file.read(list(columns)).to_batches(max_chunksize=100_000)

    return read
