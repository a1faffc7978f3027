"""kgctl for jobs of Spark: functions of data frames, for notebooks and ``spark-submit``.

::

    import kgctl.spark
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    kgctl.spark.build(spark, "/srv/history")
    lag = kgctl.spark.read(spark, "/srv/history", "lag")
    lag.where("`group` = 'payments'").groupBy("topic").max("lag").show()

Executors need kgctl of the driver's version with its extra ``spark``, and see the warehouse under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.extras import require

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kgctl.pipeline.builds.run import BuildResult

__all__ = ["build", "decode", "lag", "offset_commits", "read", "register"]


def read(spark: SparkSession, warehouse: str | Path, table: str, *, version: int | None = None) -> DataFrame:
    """A table of a warehouse, as of now or of a version of the table, by Spark's own scan of the files that count.

    Rows that are added later are not in it: ask again. A time stands in a ``timestamp`` column, in UTC.

    Raises `UsageError` (no such table), `NotFoundError` (no warehouse), `StorageError` (it cannot be read).
    """
    require("kgctl.spark", "pyarrow", "deltalake", "pyspark")
    from kgctl.pipeline.store.warehouse import Warehouse, require_tables

    require_tables([table])
    opened = Warehouse.open(warehouse).table(table, version)
    schema = _spark_schema(opened.stored.schema)
    paths = [f"{opened.uri}/{file.path}" for file in opened.files()]
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(f"file://{path}" if opened.location.is_local else path for path in paths))


def build(
    spark: SparkSession, warehouse: str | Path, clusters: Sequence[str] | None = None, *, is_rebuild: bool = False
) -> BuildResult:
    """Do what ``kgctl history build`` does, on this Spark. Clusters that fail are in the result's ``failed``.

    Raises `NotFoundError` (no warehouse, or no such cluster).
    """
    require("kgctl.spark", "pyarrow", "numpy", "deltalake", "pyspark")
    from kgctl.pipeline.builds.run import build as build_tables
    from kgctl.pipeline.engines import SparkEngine
    from kgctl.pipeline.store.warehouse import Warehouse

    opened = Warehouse.open(warehouse)
    chosen = opened.clusters() if clusters is None else [opened.require_cluster(name) for name in clusters]
    return build_tables(opened, chosen, lambda _: SparkEngine(spark), is_rebuild=is_rebuild)


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("kgctl-consumer-offsets")`` known: records of brokers' files or of a live cluster."""
    from kgctl.pipeline.sources.spark_source import register as register_source

    register_source(spark)


def decode(records: DataFrame) -> DataFrame:
    """The offset commits in records (columns of ``kgctl-consumer-offsets``, or the table ``records``), a row each; transactions
    are still open.

    Times are milliseconds, as in the records. A removal has a null ``committed_offset``. Raises `UsageError` for missing columns.
    """
    from kgctl.pipeline.decode.decode import decode as decode_table
    from kgctl.pipeline.decode.schemas import COMMITS
    from kgctl.pipeline.store.tables import RAW, conform

    def decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            commits = decode_table(conform(pa.Table.from_batches([batch]), RAW)).commits
            yield from _plain(commits).to_batches()

    return _named(records, "records", RAW).mapInArrow(decoded, _spark_schema(COMMITS))


def offset_commits(records: DataFrame) -> DataFrame:
    """What took effect of the commits in records (as `decode` has them), by the rule of Kafka's loader: ended transactions count
    from their end. They are of one cluster."""
    from kgctl.pipeline.decode.decode import decode as decode_table
    from kgctl.pipeline.decode.decode import resolve
    from kgctl.pipeline.decode.schemas import OFFSET_COMMITS
    from kgctl.pipeline.store.tables import RAW, conform

    def resolved(rows: pa.Table) -> pa.Table:
        decoded = decode_table(conform(rows, RAW))
        return _plain(resolve(decoded.commits, decoded.markers).offset_commits)

    return _named(records, "records", RAW).groupBy("partition").applyInArrow(resolved, _spark_schema(OFFSET_COMMITS))


def lag(commits: DataFrame, samples: DataFrame) -> DataFrame:
    """How far behind groups were, at their commits and at samples in between.

    ``commits``: as `offset_commits` gives them; ``samples``: topic, partition, timestamp_ms, log_start_offset, log_end_offset;
    or, of one cluster, the tables of these names. The samples are collected: they go to every task. Raises `UsageError`.
    """
    from kgctl.pipeline.decode.schemas import COVERAGE, GROUP_RECORDS, OFFSET_COMMITS
    from kgctl.pipeline.store.tables import LOG_OFFSETS, conform
    from kgctl.pipeline.tables.collected import log_end_rows
    from kgctl.pipeline.tables.lag import LAG_COLUMNS
    from kgctl.pipeline.tables.registry import ClusterInputs, PartitionInputs

    known = log_end_rows(ClusterInputs(conform(_named(samples, "samples", LOG_OFFSETS).toArrow(), LOG_OFFSETS)))

    def behind(rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        keys = ("group", "topic", "partition", "effect_offset")
        ordered = rows.select(OFFSET_COMMITS.names).cast(_plain_schema(OFFSET_COMMITS)).sort_by([(k, "ascending") for k in keys])
        encoded = pa.table([ordered.column(field.name).cast(field.type) for field in OFFSET_COMMITS], schema=OFFSET_COMMITS)
        inputs = PartitionInputs(encoded, GROUP_RECORDS.empty_table(), known, COVERAGE.empty_table())
        return _plain(inputs.table("lag"))

    named = _named(commits, "offset_commits", OFFSET_COMMITS)
    return named.groupBy("group").applyInArrow(behind, _spark_schema(LAG_COLUMNS))


def _named(frame: DataFrame, table: str, schema: pa.Schema) -> DataFrame:
    """The columns of ``schema``, which those of ``table`` are brought to. Raises `UsageError` where some are missing."""
    from kgctl.errors import UsageError
    from kgctl.pipeline.store.tables import TABLES

    kinds, renamed = dict(frame.dtypes), TABLES[table].renamed
    missing = [each.name for each in schema if not each.nullable and not {each.name, renamed.get(each.name)} & set(kinds)]
    if missing:
        raise UsageError(f"kgctl.spark: {table} without {', '.join(missing)}: wanted are {', '.join(schema.names)}")
    found = []
    for each in _spark_schema(schema):
        stored = each.name if each.name in kinds else renamed.get(each.name, each.name)
        plain = f"`{stored}`" if stored in kinds else f"CAST(NULL AS {each.dataType.simpleString()})"
        found.append(f"{plain if kinds.get(stored) != 'timestamp' else f'unix_millis({plain})'} AS `{each.name}`")
    return frame.selectExpr(*found)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Without dictionaries; every column may be null, as Spark has it."""
    import pyarrow as pa

    kinds = [(each.name, pa.string() if pa.types.is_dictionary(each.type) else each.type) for each in schema]
    return pa.schema(kinds)


def _plain(table: pa.Table) -> pa.Table:
    return table.cast(_plain_schema(table.schema))


def _spark_schema(schema: pa.Schema) -> Any:
    """The Arrow schema as Spark's."""
    from pyspark.sql.pandas.types import from_arrow_schema

    convert: Callable[[Any], Any] = from_arrow_schema
    return convert(_plain_schema(schema))
