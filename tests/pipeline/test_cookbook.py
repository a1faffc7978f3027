"""The cookbook's questions: one text gives the same rows in DuckDB and in Spark."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kgctl.spark
from kgctl.pipeline.sql import query
from tests.repo.project import ROOT
from tests.support.pipeline.generated_log import START_MS, Size, generated_log
from tests.support.pipeline.warehouses import add, built, built_whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kgctl.pipeline.store.warehouse import Warehouse

pytestmark = pytest.mark.interop
PAGE = (ROOT / "kgctl" / "manual" / "cookbook.md").read_text()
QUESTIONS = dict(re.findall(r"^## (.+?)\n.*?^```sql\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))


def asked(folder: Path) -> Warehouse:
    """A warehouse with something to tell in every table, the last of it weeks behind the rest."""
    warehouse = built_whole(folder)
    later = generated_log(9, Size(3_000, groups=3, topics=1, partitions=2, interval_ms=50, later_ms=0))
    add(warehouse, "c1", later)
    times = [START_MS + number * 30_000 for number in range(8)]
    rows = [(f"topic-{t}", p, at, 0, (at - START_MS) * 50) for t in range(3) for p in range(2) for at in times]
    names = ("topic", "partition", "timestamp_ms", "log_start_offset", "log_end_offset")
    warehouse.add_samples("c1", pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)}))
    assert built(warehouse).failed == []
    return warehouse


def plain(value: Any) -> Any:
    """As both engines can say it."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, date):
        return value.isoformat()
    return round(float(value), 3) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else value


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(map(plain, row.values())) for row in table.to_pylist()]


def test_one_text_asks_both(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = asked(tmp_path / "w")
    kgctl.spark.register_tables(spark, tmp_path / "w")
    built_versions = warehouse.versions()
    assert len(QUESTIONS) == 10
    for question, text in QUESTIONS.items():
        here, there = query(warehouse, text, built_versions), spark.sql(text).toArrow()
        assert here.column_names == there.column_names, question
        assert rows_of(here) == rows_of(there), question
        assert here.num_rows, question
