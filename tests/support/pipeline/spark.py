"""One Spark for all tests that need one; none of them stops it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.pipeline.session import SparkOptions, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2", "spark.ui.enabled": "false"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """``local[2]``, two shuffle partitions, a warehouse of its own. Functions of test modules can be sent to its workers."""
    root = str(Path(__file__).resolve().parents[3])
    folder = tmp_path_factory.mktemp("spark")
    settings = {**_SETTINGS, "spark.executorEnv.PYTHONPATH": root, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    with spark_session(SparkOptions(master="local[2]", is_light=True, settings=settings)) as session:
        java: Any = session.sparkContext._gateway
        yield session
        pid = java.proc.pid
    assert not Path(f"/proc/{pid}").exists(), "Spark's JVM ends with its session"
