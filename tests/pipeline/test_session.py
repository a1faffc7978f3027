"""Spark as kgctl starts it: quiet, with the settings that are promised, and gone when the work is over."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from kgctl.pipeline.session import SparkOptions, spark_session
from tests.support.gates import SPARK
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLD = """\
import sys
from kgctl.pipeline.session import SparkOptions, spark_session
with spark_session(SparkOptions(master="local[2]", is_light=True)) as session:
    print([row.id for row in session.range(1, 5).mapInArrow(lambda batches: batches, "id long").collect()], flush=True)
    print(session._sc._gateway.proc.pid, flush=True)
    sys.stdin.readline()
print("done", flush=True)
"""

INTERRUPTED = """\
import os, select
from pyspark import java_gateway
from kgctl.pipeline.session import SparkOptions, spark_session
make, java = java_gateway.Popen, []
def popen(*words, **settings):
    process = make(*words, **settings)
    java.append(os.pidfd_open(process.pid))
    return process
class Interrupting:
    def sleep(seconds):
        raise KeyboardInterrupt
java_gateway.Popen, java_gateway.time = popen, Interrupting
try:
    with spark_session(SparkOptions(master="local[1]", is_light=True)):
        pass
except KeyboardInterrupt:
    print(select.select(java, [], [], 0)[0] == java)
"""


def test_what_is_set(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    asked = ("spark.master", "spark.app.name", "spark.ui.enabled", "spark.ui.showConsoleProgress", "spark.sql.session.timeZone")
    assert [conf.get(name) for name in asked] == ["local[2]", "kgctl", "false", "false", "UTC"]
    assert spark.sql("SELECT current_timezone()").head() == ("UTC",)


def test_workers_are_this_python_and_find_this_kgctl(spark: SparkSession) -> None:
    import kgctl

    def who(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import kgctl

        for _ in batches:
            yield pa.record_batch({"python": [sys.executable], "kgctl": [kgctl.__file__]})

    assert spark.range(1).mapInArrow(who, "python string, kgctl string").collect() == [(sys.executable, kgctl.__file__)]


def test_the_session_there_is_is_used_and_not_ended(spark: SparkSession) -> None:
    with spark_session(SparkOptions(master="local[1]")) as session:
        assert session is spark
    assert spark.range(2).count() == 2


def test_sigint_is_still_whose_it_was(spark: SparkSession) -> None:
    assert spark is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _holding(tmp_path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "KGCTL_SPARK_ARCHIVE": "off"}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.needs(*SPARK)
def test_nothing_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    with _holding(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "[1, 2, 3, 4]\n"
        java = int(process.stdout.readline())
        process.stdin.write("\n")
        process.stdin.close()
        assert (process.stdout.read(), process.stderr.read(), process.wait(PATIENCE_S)) == ("done\n", "", 0)
    assert not Path(f"/proc/{java}").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.needs(*SPARK)
def test_java_ends_when_its_driver_is_killed(tmp_path: Path) -> None:
    with _holding(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[1, 2, 3, 4]\n"
        java = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert select.select([java], [], [], PATIENCE_S)[0] == [java]
    os.close(java)


@pytest.mark.needs(*SPARK)
def test_an_interrupted_start_leaves_no_java_behind() -> None:
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.needs(*SPARK)
def test_a_master_that_is_none_is_one_line() -> None:
    program = (
        "from kgctl.cli.app import run_process\n"
        "raise SystemExit(run_process('simulate sweep crash-detection --runs 2 --engine spark --master foo://x'.split()))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert ran.stderr.startswith("kgctl: Spark does not start: ")
    Path(ran.stderr.rstrip(")\n").rpartition("its log: ")[2]).unlink()


def test_options_of_a_cluster_do_not_bind_the_driver_to_loopback() -> None:
    assert SparkOptions().is_local
    assert SparkOptions(master="local[3]").is_local
    assert not SparkOptions(master="spark://head:7077").is_local
