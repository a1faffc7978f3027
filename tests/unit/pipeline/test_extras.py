"""What is missing is named, with the line that installs it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import kgctl.spark
from kgctl.errors import UsageError
from kgctl.pipeline.engines import EngineOptions
from kgctl.pipeline.extras import is_there, require
from tests.support.patience import PATIENCE_S


def test_what_is_there_is_not_asked_for() -> None:
    require("kgctl history", "json", "csv")
    assert is_there("json")


def test_what_is_missing_is_named_with_its_extra() -> None:
    with pytest.raises(UsageError) as caught:
        require("kgctl history", "json", "no_such_thing", "nor_this")
    assert caught.value.message == "kgctl history needs no_such_thing and nor_this: pip install 'kgctl[spark]'"


def test_spark_connect_is_refused_in_a_line() -> None:
    session: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UsageError, match="do not run through Spark Connect"):
        kgctl.spark.build(session, "/nowhere")
    with pytest.raises(UsageError, match=r"--master sc://host: .* Spark Connect; give the master itself"):
        EngineOptions(master="sc://host")


def test_pyarrow_does_without_pandas_where_it_is_told_so() -> None:
    program = (
        "import sys; from kgctl.pipeline.extras import leave_pandas_out; leave_pandas_out(); import pyarrow as pa;"
        "print(pa.array([1, 2]).to_numpy().sum(), pa.table({'a': [1]}).to_pylist(), 'pandas' in sys.modules); import pandas"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.stdout, done.returncode) == ("3 [{'a': 1}] False\n", 0), done.stderr
