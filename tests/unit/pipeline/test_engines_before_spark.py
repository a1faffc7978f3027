"""What is said and done before Spark starts, and without it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kgctl
from kgctl.cli.history.asking import require_tables
from kgctl.errors import UnreachableError, UsageError
from kgctl.pipeline.engines import EngineName, EngineOptions, choose
from kgctl.pipeline.session import SparkOptions, spark_session
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.kafka.ports import free_ports
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.generated_log import Size, generated_log
from tests.support.pipeline.warehouses import add


def test_servers_of_spark_connect_are_told_from_masters() -> None:
    with pytest.raises(UsageError, match="--master sc://host: a server of Spark Connect is no master: give it as --remote"):
        EngineOptions(master="sc://host")
    with pytest.raises(UsageError, match=r"--remote spark://host:7077: wanted is sc://HOST\[:PORT\]"):
        EngineOptions(remote="spark://host:7077")
    with pytest.raises(UsageError, match="--master and --remote exclude each other"):
        EngineOptions(remote="sc://host", master="yarn")
    with pytest.raises(UsageError, match="--jobs and --remote both say"):
        EngineOptions(remote="sc://host", jobs=2)
    with pytest.raises(UsageError, match="--remote is Spark's: add --engine spark"):
        EngineOptions(remote="sc://host", name=EngineName.LOCAL)
    assert choose(EngineOptions(remote="sc://host")) == (EngineName.SPARK, "a server of Spark Connect was given")


@pytest.mark.needs("pyspark")
def test_no_server_of_spark_connect_is_one_line() -> None:
    (port,) = free_ports(1)
    said = rf"^sc://127\.0\.0\.1:{port}: no server of Spark Connect answers: "
    with pytest.raises(UnreachableError, match=said), spark_session(SparkOptions(remote=f"sc://127.0.0.1:{port}")):
        pass


@pytest.mark.needs("pyspark")
def test_no_master_of_spark_is_one_line_before_a_jvm_starts() -> None:
    one, two = free_ports(2)
    master = f"spark://127.0.0.1:{one},127.0.0.1:{two}"
    with (
        pytest.raises(UnreachableError, match=rf"^{re.escape(master)}: no master of Spark answers: Connection refused$"),
        spark_session(SparkOptions(master=master)),
    ):
        pass


def test_work_goes_to_spark_as_plans_of_data_frames() -> None:
    shipped = re.compile(r"\bparallelize\b|\bsparkContext\b|\.rdd\b|\bRDD\b|\baccumulator\b|\bdefaultParallelism\b")
    assert [str(path) for path in Path(kgctl.__file__).parent.rglob("*.py") if shipped.search(path.read_text())] == []


@pytest.mark.needs("frames")
def test_pyarrow_does_without_pandas_where_it_is_told_so() -> None:
    program = (
        "import sys; from kgctl.pipeline.no_pandas import leave_pandas_out; leave_pandas_out(); import pyarrow as pa;"
        "print(pa.array([1, 2]).to_numpy().sum(), pa.table({'a': [1]}).to_pylist(), 'pandas' in sys.modules); import pandas"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.stdout, done.returncode) == ("3 [{'a': 1}] False\n", 0), done.stderr


def test_a_build_that_no_spark_does_leaves_pandas_out(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    add(warehouse, "c1", generated_log(0, Size(200)), "generated")
    program = (
        "import sys; from kgctl.cli.app import run_process;"
        f"code = run_process(['history', 'build', '--warehouse', {str(tmp_path / 'w')!r}, '--jobs', '1']);"
        "print(code, 'pyarrow' in sys.modules, 'pandas' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.stderr.splitlines()[-1] == "0 True False", done.stderr


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        (EngineOptions(), "history"),
        (EngineOptions(name=EngineName.SPARK, what="history build --engine spark"), "spark"),
        (EngineOptions(master="spark://there:7077"), "spark"),
        (EngineOptions(remote="sc://there"), "connect"),
    ],
)
def test_a_plain_installation_is_told_once_what_an_engine_needs(
    options: EngineOptions, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgctl.extras.is_there", lambda _: False)
    with pytest.raises(UsageError, match=rf"\[{extra}\]'"):
        require_tables(options)
