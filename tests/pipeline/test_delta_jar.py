"""Delta Lake's own jar, with the Spark that it is made for, on a warehouse that was built in several goes: the same rows, now
and as of each version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kgctl.pipeline.store.tables import GOLD
from tests.repo.project import ROOT
from tests.support.machine import Unavailable
from tests.support.maven import cache_folder, cache_lock, class_path
from tests.support.pipeline.warehouses import LOG, SAMPLES, add, built, collected

pytestmark = [pytest.mark.deep, pytest.mark.slow]

PYSPARK = "4.2.0"
READING = """\
import json, sys
from pyspark.sql import SparkSession
jars, root, tables = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spark = (
    SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog").getOrCreate()
)
def read(name, version):
    frame = spark.read.format("delta").option("versionAsOf", version).load(f"{root}/{name}")
    return [frame.count(), frame.selectExpr("sum(log_partition)").head()[0] if "log_partition" in frame.columns else None]
print(json.dumps({name: {version: read(name, version) for version in range(count)} for name, count in tables.items()}))
"""


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python with the pyspark that there is a Delta jar for; made once."""
    folder = cache_folder() / f"pyspark-{PYSPARK}"
    found = folder / "bin/python"
    with cache_lock(folder.name):
        if not (folder / "whole").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            done = subprocess.run(
                [found, "-m", "pip", "install", "-q", f"pyspark=={PYSPARK}"], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise Unavailable(f"pyspark {PYSPARK} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
            (folder / "whole").touch()
    return found


def test_the_delta_jar_reads_every_version(tmp_path: Path, python: Path) -> None:
    jars = class_path(ROOT / "tests/java/delta/pom.xml").replace(os.pathsep, ",")
    warehouse = collected(tmp_path / "w", [part.slice(0, 30) for part in LOG], SAMPLES.slice(0, 40))
    built(warehouse)
    for part in LOG:
        add(warehouse, "c1", part.slice(30))
    warehouse.add_samples("c1", SAMPLES.slice(40))
    built(warehouse)

    expected, versions = {}, {}
    for name in ("records", "samples", *(name for name in GOLD if name != "undecoded"), "coverage", "state"):
        versions[name] = warehouse.table(name).version + 1
        expected[name] = {str(number): _read(tmp_path / "w" / name, number) for number in range(versions[name])}
    done = subprocess.run(
        [python, "-c", READING, jars, str(tmp_path / "w"), json.dumps(versions)],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == expected
    assert versions["lag"] > 1


def _read(table: Path, version: int) -> list[int | None]:
    rows = DeltaTable(str(table), version=version).to_pyarrow_table()
    return [
        rows.num_rows,
        sum(rows.column("log_partition").to_pylist()) if "log_partition" in rows.column_names and rows.num_rows else None,
    ]
