"""The build on Spark: the same bytes as without, and the tables as data frames."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import kgctl
from kgctl.errors import UsageError
from kgctl.pipeline import frames
from kgctl.pipeline.tables.registry import CLUSTER_TABLES, PARTITION_TABLES
from kgctl.pipeline.warehouse.files import read_table
from tests.support.patience import PATIENCE_S
from tests.unit.pipeline.build.test_run import LOG, built, built_whole, collected, gold_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def test_spark_builds_the_same_bytes(tmp_path: Path, spark: SparkSession) -> None:
    expected = gold_of(built_whole(tmp_path / "local"))
    warehouse = collected(tmp_path / "w")

    result = frames.build(spark, warehouse.path)

    assert (result.failed, result.built) == ([], len(LOG))
    assert gold_of(warehouse) == expected
    assert frames.build(spark, warehouse.path, ["c1"]).unchanged == len(LOG)


def test_a_partition_that_fails_on_spark_is_no_reason_for_the_others_to(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = collected(tmp_path / "w")
    broken = warehouse.path / warehouse.bronze_files("c1", 1)[0].path
    broken.write_bytes(b"PAR1")

    result = frames.build(spark, warehouse.path)

    assert ([error.partition for error in result.failed], result.built) == ([1], len(LOG) - 1)
    assert result.failed[0].code == "STORAGE_ERROR"


@pytest.mark.deep
def test_spark_submit_runs_the_build(tmp_path: Path) -> None:
    expected = gold_of(built_whole(tmp_path / "local"))
    warehouse = collected(tmp_path / "w")
    folder = Path(sys.executable).parent
    line: list[str | Path] = [
        folder / "spark-submit",
        "--master",
        "local[1]",
        Path(kgctl.__file__).with_name("__main__.py"),
        "history",
        "build",
    ]
    # Spark's own scripts look for Spark without quotes around the path: in a folder with a space they must be told.
    spark_home = str(Path(pyspark.__file__).parent)
    environment = {**os.environ, "SPARK_HOME": spark_home, "PYSPARK_PYTHON": sys.executable}

    done = subprocess.run(
        [*line, "--warehouse", warehouse.path, "-o", "json"],
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "ok"
    assert gold_of(warehouse) == expected


def test_tables_are_data_frames(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = built_whole(tmp_path / "w")
    warehouse.add_records("c2", 0, LOG[0], "another cluster")

    for name in (*PARTITION_TABLES, *CLUSTER_TABLES):
        rows = [row for path in warehouse.gold(name, "c1") for row in read_table(path).to_pylist()]
        found = [row.asDict() for row in frames.table(spark, warehouse.path, name).collect()]
        assert sorted(map(str, found)) == sorted(str({"cluster": "c1"} | row) for row in rows), name
    assert frames.table(spark, warehouse.path, "lag", cluster="c2").collect() == [], "nothing of it was built"
    built(warehouse)
    with pytest.raises(UsageError, match="no table 'lags': there are offset_commits, "):
        frames.table(spark, warehouse.path, "lags")
