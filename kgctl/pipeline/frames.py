"""The built tables as Spark data frames, and the build on a Spark that is there: for notebooks and jobs of `spark-submit`.

::

    from pyspark.sql import SparkSession
    from kgctl.pipeline import frames

    spark = SparkSession.builder.getOrCreate()
    frames.build(spark, "/srv/history")
    lag = frames.table(spark, "/srv/history", "lag")
    lag.where("group = 'payments'").groupBy("topic").max("lag").show()

The warehouse is in a file system that the driver and all executors see under the same path.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.errors import UsageError
from kgctl.pipeline.extras import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kgctl.pipeline.build.run import BuildResult


def table(spark: SparkSession, warehouse: str | Path, name: str, *, cluster: str | None = None) -> DataFrame:
    """A built table, as of its last build, of one cluster or of all; the first column is ``cluster``.

    Rows that are built later are not in it: ask again. Columns: the table's ``SCHEMA`` in `kgctl.pipeline.tables`.

    Raises:
        UsageError: no such table. NotFoundError: no warehouse, or no such cluster. StorageError: it cannot be read.
    """
    require("kgctl.pipeline.frames", "pyarrow", "numpy", "pyspark")
    from pyspark.sql.functions import lit

    from kgctl.pipeline.tables.registry import CLUSTER_TABLES, PARTITION_TABLES, module
    from kgctl.pipeline.warehouse.warehouse import Warehouse

    if name not in (*PARTITION_TABLES, *CLUSTER_TABLES):
        raise UsageError(f"no table {name!r}: there are {', '.join((*PARTITION_TABLES, *CLUSTER_TABLES))}")
    opened = Warehouse.open(Path(warehouse))
    schema = _spark_schema(module(name).SCHEMA)
    found = spark.createDataFrame([], schema).select(lit("").alias("cluster"), "*")
    for each in opened.clusters() if cluster is None else [opened.require_cluster(cluster)]:
        files = [f"file://{file}" for file in opened.gold(name, each)]  # Hadoop takes paths as they are, not quoted
        if files:
            found = found.unionAll(spark.read.schema(schema).parquet(*files).select(lit(each).alias("cluster"), "*"))
    return found


def build(
    spark: SparkSession, warehouse: str | Path, clusters: Sequence[str] | None = None, *, is_rebuild: bool = False
) -> BuildResult:
    """What ``kgctl history build`` does, on this Spark. Partitions that fail are in the result's ``failed``.

    Raises:
        NotFoundError: no warehouse, or no such cluster. RefusedError: somebody else is building it.
    """
    require("kgctl.pipeline.frames", "pyarrow", "numpy", "pyspark")
    from kgctl.pipeline.build.run import build as build_tables
    from kgctl.pipeline.spark_engine import SparkEngine
    from kgctl.pipeline.warehouse.warehouse import Warehouse

    opened = Warehouse.open(Path(warehouse))
    chosen = opened.clusters() if clusters is None else [opened.require_cluster(name) for name in clusters]
    return build_tables(opened, chosen, lambda: SparkEngine(spark.sparkContext), is_rebuild=is_rebuild)


def _spark_schema(schema: Any) -> Any:
    """The Arrow schema as Spark's; dictionaries are plain strings in Parquet."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    plain = [
        pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type, field.nullable)
        for field in schema
    ]
    return from_arrow_schema(pa.schema(plain))
