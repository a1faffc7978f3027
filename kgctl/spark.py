"""kgctl for jobs of Spark: functions of data frames, for notebooks and ``spark-submit``.

::

    import kgctl.spark
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    kgctl.spark.build(spark, "/srv/history")
    lag = kgctl.spark.read(spark, "/srv/history", "lag", where={"group": "payments"})
    lag.groupBy("topic").max("lag").show()

What they take and give has the columns of the tables (``kgctl history sql --tables``), by name and type, so that results can be
united with them. Executors need kgctl of the driver's version with its extra ``spark``, and see the warehouse under the same
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.extras import require

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kgctl.pipeline.builds.run import BuildResult

__all__ = ["build", "collect", "decode", "lag", "offset_commits", "read", "register", "register_tables"]

DEFAULT_CLUSTER = "default"
"""The name that ``kgctl history collect`` gives a cluster, too."""


def read(
    spark: SparkSession,
    warehouse: str | Path,
    table: str,
    *,
    version: int | None = None,
    where: Mapping[str, object] | None = None,
) -> DataFrame:
    """A table of a warehouse, as of now or of a version of the table, by Spark's own scan of the files that count.

    ``where`` has columns, each with a value, a list of values, or a tuple (from, to), ends included, None for no bound: the rows
    of which that holds. Files that have none, by what the table's log says of them, are not looked at. Times are `datetime`, in
    UTC where they have no zone, or texts in ISO 8601.

    Rows that are added later are not in it: ask again. A time stands in a ``timestamp`` column, in UTC; ``date``, its day, is the
    folder of the files, by which Spark leaves files out.

    Raises `UsageError` (no such table or column), `NotFoundError` (no warehouse), `StorageError` (it cannot be read).
    """
    require("kgctl.spark", "pyarrow", "deltalake", "pyspark")
    from kgctl.pipeline.store.chosen import Chosen
    from kgctl.pipeline.store.tables import TABLES
    from kgctl.pipeline.store.warehouse import Warehouse, require_tables

    require_tables([table])
    opened = Warehouse.open(warehouse).table(table, version)
    chosen = Chosen.of(table, where or {})
    schema = _spark_schema(TABLES[table].dated())
    place = f"file://{opened.uri}" if opened.location.is_local else opened.uri
    paths = [f"{place}/{file.path}" for file in opened.files() if chosen.may_hold(file)]
    if not paths:
        return spark.createDataFrame([], schema)
    found = spark.read.schema(schema).option("basePath", f"{place}/data").parquet(*paths)
    return found.where(chosen.sql) if chosen.sql else found


def register_tables(spark: SparkSession, warehouse: str | Path) -> None:
    """Make every table of a warehouse, and the views of ``kgctl history sql``, known to ``spark.sql`` under their names: as of
    the last build, and what was collected as of now.

    Raises as `read`.
    """
    require("kgctl.spark", "pyarrow", "deltalake", "pyspark")
    from kgctl.pipeline.sql import VIEWS
    from kgctl.pipeline.store.tables import TABLES
    from kgctl.pipeline.store.warehouse import Warehouse

    built = Warehouse.open(warehouse).versions()
    for name in TABLES:
        read(spark, warehouse, name, version=built.get(name)).createOrReplaceTempView(name)
    for name, (_, text) in VIEWS.items():
        spark.sql(text.replace('"', "`")).createOrReplaceTempView(name)


def collect(
    spark: SparkSession,
    warehouse: str | Path,
    cluster: str,
    properties: Mapping[str, str],
    *,
    every: str = "10 seconds",
    is_once: bool = False,
    most: int = 1_000_000,
    all_topics: bool = False,
) -> StreamingQuery:
    """Start a stream that collects what ``kgctl history collect`` does from a live cluster, under this name; the warehouse is
    made where it is not there.

    ``properties`` have librdkafka's names: ``bootstrap.servers``, logins. Each trigger, ``every`` so long, is one commit of at
    most ``most`` offsets with where the next one begins, and samples the log ends of topics with commits, or of ``all_topics``.
    ``is_once``: up to what is there now. No record is kept twice and none is left out, whatever is killed and however often:
    where to go on stands in the warehouse, which ``kgctl history collect`` goes on from, too; Spark's checkpoint is not needed.

    What ends the stream is in ``awaitTermination()``. Raises `UsageError`, `UnreachableError`, `AuthError`, `NotFoundError` (no
    group ever committed), `RefusedError` (another cluster has this name here).
    """
    require("kgctl.spark", "pyarrow", "numpy", "deltalake", "pyspark")
    from kgctl.errors import UsageError
    from kgctl.pipeline.collect.collection import Collection
    from kgctl.pipeline.collect.stream import BatchWriter, start
    from kgctl.pipeline.sources.live import CollectOrigin
    from kgctl.pipeline.store.warehouse import Warehouse

    if not properties.get("bootstrap.servers"):
        raise UsageError("kgctl.spark.collect: properties without bootstrap.servers")
    origin = CollectOrigin(properties=properties, all_topics=all_topics)
    batches = BatchWriter(Warehouse.create(warehouse), Collection(cluster), origin)
    return start(spark, batches, every=None if is_once else every, most=most)


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


def decode(records: DataFrame, *, cluster: str = DEFAULT_CLUSTER) -> DataFrame:
    """The offset commits in records (of ``kgctl-consumer-offsets``, or the table ``records``), a row each, with the columns of
    ``offset_commits`` that a commit has by itself, and ``producer_id``; transactions are still open.

    ``cluster``: whose they are, where the records do not say. A removal has a null ``committed_offset``. Raises `UsageError` for
    missing columns.
    """
    import pyarrow as pa

    from kgctl.pipeline.decode.decode import decode as decode_table
    from kgctl.pipeline.store.tables import RAW, TABLES, conform, to_stored

    names = [name for name in TABLES["offset_commits"].schema.names if name not in ("effect_offset", "transactional")]

    def decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in batches:
            rows = pa.Table.from_batches([batch])
            for own in pc.unique(rows.column("cluster")).to_pylist():
                here = rows.filter(pc.equal(rows.column("cluster"), own))
                commits = decode_table(conform(here.drop_columns(["cluster"]), RAW)).commits
                stored = to_stored("offset_commits", commits, own).select(names)
                yield from stored.append_column("producer_id", commits.column("producer_id")).to_batches()

    schema = pa.schema([*(TABLES["offset_commits"].schema.field(name) for name in names), ("producer_id", pa.int64())])
    return _named(records, "records", RAW, cluster).mapInArrow(decoded, _spark_schema(schema))


def offset_commits(records: DataFrame, *, cluster: str = DEFAULT_CLUSTER) -> DataFrame:
    """What took effect of the commits in records (as `decode` takes them), by the rule of Kafka's loader: ended transactions
    count from their end. Rows of the table ``offset_commits``."""
    from kgctl.pipeline.decode.decode import decode as decode_table
    from kgctl.pipeline.decode.decode import resolve
    from kgctl.pipeline.store.tables import RAW, TABLES, conform, to_dated

    def resolved(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        decoded = decode_table(conform(rows.drop_columns(["cluster"]), RAW))
        return to_dated("offset_commits", resolve(decoded.commits, decoded.markers).offset_commits, key[0].as_py())

    grouped = _named(records, "records", RAW, cluster).groupBy("cluster", "partition")
    return grouped.applyInArrow(resolved, _spark_schema(TABLES["offset_commits"].dated()))


def lag(commits: DataFrame, samples: DataFrame, *, cluster: str = DEFAULT_CLUSTER) -> DataFrame:
    """How far behind groups were, at their commits and at samples in between. Rows of the table ``lag``.

    ``commits`` and ``samples`` have the columns of the tables ``offset_commits`` and ``samples``. All is a plan: samples are
    joined to the groups that read their topics. Raises `UsageError` for missing columns.
    """
    from pyspark.sql.functions import expr

    from kgctl.pipeline.decode.schemas import OFFSET_COMMITS
    from kgctl.pipeline.store.tables import LOG_OFFSETS, TABLES

    of_groups = _named(commits, "offset_commits", OFFSET_COMMITS, cluster)
    known = _named(samples, "samples", LOG_OFFSETS, cluster)
    key = ("cluster", "group")
    read = of_groups.select(*key, "topic").distinct().join(known, ["cluster", "topic"])
    minutes = known.selectExpr("cluster", "CAST(floor(timestamp_ms / 60000) AS bigint) AS minute").distinct()
    rounds = minutes.groupBy("cluster").agg(expr("collect_list(minute) AS rounds"))
    told = of_groups.select(*key).distinct().join(rounds, "cluster")
    sampled = read.select(*_anew(*key, *LOG_OFFSETS.names)).unionByName(told, allowMissingColumns=True)
    grouped = of_groups.groupBy(*key).cogroup(sampled.groupBy(*key))
    return grouped.applyInArrow(_behind, _spark_schema(TABLES["lag"].dated()))


def _anew(*names: str) -> list[Column]:
    """Columns that Spark does not take for those of the frame that they come from, which the frame is grouped beside."""
    from pyspark.sql.functions import expr

    return [expr(f"`{name}`").alias(name) for name in names]


def _behind(key: tuple[Any, ...], commits: pa.Table, sampled: pa.Table) -> pa.Table:
    """Rows of ``lag`` of a group, from its commits and the samples of its topics; a row of ``sampled`` has ``rounds`` instead."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kgctl.pipeline.decode.schemas import COVERAGE, GROUP_RECORDS, OFFSET_COMMITS
    from kgctl.pipeline.store.tables import LOG_OFFSETS, conform, to_dated
    from kgctl.pipeline.tables.collected import log_end_rows
    from kgctl.pipeline.tables.registry import ClusterInputs, PartitionInputs

    is_told = pc.is_valid(sampled.column("rounds"))
    told = sampled.filter(is_told).column("rounds").to_pylist()
    rounds = np.array(sorted(told[0]) if told else [], np.int64)
    known = log_end_rows(ClusterInputs(conform(sampled.filter(pc.invert(is_told)), LOG_OFFSETS), rounds))
    order = ("group", "topic", "partition", "effect_offset")
    ordered = commits.select(OFFSET_COMMITS.names).sort_by([(name, "ascending") for name in order])
    encoded = pa.table([ordered.column(each.name).cast(each.type) for each in OFFSET_COMMITS], schema=OFFSET_COMMITS)
    inputs = PartitionInputs(encoded, GROUP_RECORDS.empty_table(), known, COVERAGE.empty_table(), rounds=rounds)
    return to_dated("lag", inputs.table("lag"), key[0].as_py())


def _named(frame: DataFrame, table: str, schema: pa.Schema, cluster: str) -> DataFrame:
    """``cluster``, and the columns of ``schema``, which those of ``table`` are brought to. Raises `UsageError` where some are
    missing."""
    from pyspark.sql.functions import expr, lit

    from kgctl.errors import UsageError
    from kgctl.pipeline.store.tables import TABLES

    kinds, renamed = dict(frame.dtypes), TABLES[table].renamed
    wanted = [(each, renamed.get(each.name, each.name)) for each in schema]
    missing = [stored for each, stored in wanted if not each.nullable and stored not in kinds]
    if missing:
        raise UsageError(f"kgctl.spark: {table} without {', '.join(missing)}: wanted are {', '.join(name for _, name in wanted)}")
    found = [expr("cluster") if "cluster" in kinds else lit(cluster).alias("cluster")]
    for (_, stored), each in zip(wanted, _spark_schema(schema), strict=True):
        plain = f"`{stored}`" if stored in kinds else f"CAST(NULL AS {each.dataType.simpleString()})"
        found.append(expr(plain if kinds.get(stored) != "timestamp" else f"unix_millis({plain})").alias(each.name))
    return frame.select(*found)


def _spark_schema(schema: pa.Schema) -> Any:
    """The Arrow schema as Spark's: without dictionaries; every column may be null, as Spark has it."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    kinds = [(each.name, pa.string() if pa.types.is_dictionary(each.type) else each.type) for each in schema]
    convert: Callable[[Any], Any] = from_arrow_schema
    return convert(pa.schema(kinds))
