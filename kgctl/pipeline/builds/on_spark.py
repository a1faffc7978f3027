"""Slices as a plan of Spark: its own scan of the files, grouped by slice, each group given to the same functions in Python.

Only names of files go back through the JVM; the rows of the tables are written where they are made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from kgctl.pipeline.builds.slices import Slice, placed
from kgctl.pipeline.builds.tables_of import SliceInput, SliceResult, SliceTask, build_slice
from kgctl.pipeline.store.files import DataFile, buckets_of, opened
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
_STATE = "bucket int, state binary"
_GROUP = "substring(key, 5, cast(conv(hex(substring(key, 3, 2)), 16, 10) as int))"
"""Every key begins with a type and a group: int16, then a text with its length before it as int16."""


@dataclass(frozen=True)
class SparkWork:
    """What all slices of a build have in common. It goes to the executors."""

    location: Location
    cluster: str
    slices: Sequence[Slice]
    buckets: int
    given: SliceInput
    everything: bool
    wanted: Sequence[int]


def build_slices(
    spark: SparkSession, work: SparkWork, files: Sequence[DataFile], states: Sequence[tuple[DataFile, Sequence[int]]]
) -> list[SliceResult]:
    """Build the slices ``work.wanted`` of these files of records, which are of one cluster each, going on from these files of
    states; each is of some slices, by number."""
    frame = stored_frame(spark, work.location, "records", files, _SCHEMA)
    first = ", ".join(str(each.first) for each in work.slices)
    spread = frame.selectExpr("*", f"array({first}) AS firsts").selectExpr(
        *_COLUMNS,
        f"explode(CASE WHEN key IS NULL THEN sequence(0, {len(work.slices) - 1}) ELSE "
        f"array(size(filter(firsts, first -> first <= cast(crc32({_GROUP}) % {work.buckets} AS int))) - 1) END) AS slice",
    )
    new = spread.where(f"slice IN ({', '.join(map(str, work.wanted))})").groupBy("slice")
    before = _states_frame(spark, work, states).groupBy("slice")
    rows = new.cogroup(before).applyInArrow(_task(work), "result string").collect()
    return [_result(json.loads(row.result)) for row in rows]


def _states_frame(spark: SparkSession, work: SparkWork, states: Sequence[tuple[DataFile, Sequence[int]]]) -> DataFrame:
    """A row for each slice and each state that it goes on from; without a state where there is none and it is to be made."""
    stored = stored_frame(spark, work.location, "state", [file for file, _ in states], _STATE)
    cases = " ".join(f"WHEN {buckets_of(file)[0]} THEN array({', '.join(map(str, slices))})" for file, slices in states if slices)
    found = stored.selectExpr(f"explode(CASE bucket {cases} ELSE array() END) AS slice", "state") if cases else None
    if not work.everything:
        return found if found is not None else spark.createDataFrame([], "slice int, state binary")
    every = spark.createDataFrame([(number, None) for number in work.wanted], "slice int, state binary")
    return every if found is None else found.unionAll(every)


def stored_frame(spark: SparkSession, location: Location, table: str, files: Sequence[DataFile], schema: str) -> DataFrame:
    """Files of a table as a data frame: by Spark's own scan where it reaches the store without a jar, else by pyarrow."""
    paths = [f"{location.child(table)}/{file.path}" for file in files]
    if not paths:
        return spark.createDataFrame([], schema)
    if location.is_local or location.uri.startswith("hdfs:"):
        scanned = [f"file://{path}" for path in paths] if location.is_local else paths
        return spark.read.schema(schema).parquet(*scanned)
    names = spark.createDataFrame([(file.path,) for file in files], "path string").repartition(len(files))
    return names.mapInArrow(_reader(location, table, [each.split(" ")[0] for each in schema.split(", ")]), schema)


def _reader(location: Location, table: str, columns: Sequence[str]) -> Any:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                with opened(location, table, path) as file:
                    yield from file.read(list(columns)).to_batches(max_chunksize=100_000)

    return read


def _task(work: SparkWork) -> Any:
    def build(key: tuple[Any, ...], rows: pa.Table, before: pa.Table) -> pa.Table:
        import pyarrow as pa

        number = int(key[0].as_py())
        if not rows.num_rows and not work.everything:
            return pa.table({"result": pa.array([], pa.string())})
        raw, _ = placed(conform(from_stored("records", rows.select(list(_COLUMNS))), RAW))
        given = replace(work.given, raw=raw, is_first=number == 0)
        states = [state for state in before.column("state").to_pylist() if state is not None]
        done = build_slice(SliceTask(work.location, work.cluster, work.slices[number], given, work.buckets, states))
        files = {name: [asdict(file) for file in found] for name, found in done.files.items()}
        return pa.table({"result": [json.dumps({**vars(done), "files": files})]})

    return build


def _result(said: dict[str, Any]) -> SliceResult:
    files = {name: [DataFile(**file) for file in found] for name, found in said.pop("files").items()}
    return SliceResult(Slice(*said.pop("slice")), files, Counter(said.pop("counts")), **said)
