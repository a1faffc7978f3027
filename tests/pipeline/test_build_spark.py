"""The build on Spark: the same rows as without, and functions of data frames."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import kgctl
import kgctl.spark
from kgctl.errors import UsageError
from kgctl.pipeline.builds import cut
from kgctl.pipeline.builds.carry import Slice
from kgctl.pipeline.builds.fold import Portion
from kgctl.pipeline.engines import JOBS
from kgctl.pipeline.store.warehouse import Warehouse
from tests.cli.harness import Cli
from tests.pipeline.test_collect_spark import FEW_PARTITIONS, collect_here, commits, kept
from tests.support.gates import SPARK
from tests.support.kafka.ports import free_ports
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.segments import example_segments
from tests.support.pipeline.warehouses import (
    LOG,
    add,
    built,
    built_whole,
    collected,
    data_files,
    rows_of,
    tables_of,
    tables_of_whole,
)
from tests.support.serve import ServeFactory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_HOME = Path(sysconfig.get_path("purelib")) / "pyspark"
pytestmark = [pytest.mark.slow, pytest.mark.needs(*SPARK), pytest.mark.xdist_group("spark")]


@pytest.fixture
def many_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "PORTION_ROWS", 40)


@pytest.mark.usefixtures("many_slices")
def test_spark_builds_the_same_rows(tmp_path: Path, spark: SparkSession) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w", [part.slice(0, 35) for part in LOG])

    first = kgctl.spark.build(spark, tmp_path / "w")
    for part in LOG:
        add(warehouse, "c1", part.slice(35))
    result = kgctl.spark.build(spark, tmp_path / "w")

    assert (first.failed, result.failed, result.built, result.late) == ([], [], 1, {})
    assert tables_of(warehouse) == expected
    assert kgctl.spark.build(spark, tmp_path / "w", ["c1"]).unchanged == 1
    assert len(warehouse.table("lag").files()) > 3


def test_slices_are_built_side_by_side(tmp_path: Path, spark: SparkSession) -> None:
    """In a few jobs with a task for each slice, not in a job for each: those would come one after the other."""
    from kgctl.pipeline.builds.spark import fold_all

    location = Warehouse.create(tmp_path / "w").location
    portions = [Portion(location, "c1", Slice(number, number + 1), []) for number in range(40)]
    before = _newest_job(spark)

    found = dict(fold_all(spark, portions))

    assert {number: folded.slice for number, folded in found.items()} == {
        number: portion.slice for number, portion in enumerate(portions)
    }
    assert _newest_job(spark) - before <= 2 * JOBS


def _newest_job(spark: SparkSession) -> int:
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(), default=-1)


@pytest.mark.deep
def test_watch_builds_on_spark_and_goes_on_where_it_was(tmp_path: Path, spark: SparkSession) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w", [part.slice(0, 35) for part in LOG])
    line = f"history watch --no-collect --once --engine spark --alert gone --allow-unknown --warehouse {tmp_path / 'w'} -o json"
    first = Cli(tmp_path)(line)
    for part in LOG:
        add(warehouse, "c1", part.slice(35))

    second = Cli(tmp_path)(line)

    assert [(ran.code, ran.data, ran.err) for ran in (first, second)] == [(0, [], "No alert fires.\n")] * 2
    assert tables_of(warehouse) == expected
    assert spark.range(3).count() == 3, "the session goes on"


def test_a_damaged_file_is_named_by_spark_and_the_other_cluster_is_built(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = collected(tmp_path / "w")
    broken = data_files(warehouse, "records")[0]
    add(warehouse, "c2", LOG[0])
    broken.write_bytes(b"PAR1")

    result = kgctl.spark.build(spark, tmp_path / "w")

    assert ([error.code for error in result.failed], result.built) == (["STORAGE_ERROR"], 1)
    assert str(broken) in result.failed[0].message


@pytest.mark.deep
def test_spark_submit_runs_the_build(tmp_path: Path) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w")
    folder = Path(sys.executable).parent
    program = Path(kgctl.__file__).with_name("__main__.py")
    line: list[str | Path] = [folder / "spark-submit", "--master", "local[1]", program, "history", "build"]
    # Spark's own scripts look for Spark without quotes around the path: in a folder with a space they must be told.
    environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable}

    done = subprocess.run(
        [*line, "--warehouse", str(tmp_path / "w"), "-o", "json"],
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    said, result = done.stdout.splitlines()  # spark-submit makes one stream of both
    assert (said, json.loads(result)["status"]) == ("Built by Spark: spark-submit runs this.", "ok")
    assert tables_of(warehouse) == expected


@dataclass
class Standalone:
    """A master of Spark and its workers, as they run."""

    url: str
    workers: list[subprocess.Popen[bytes]]

    def executors(self) -> list[int]:
        """The processes of its executors that are at work: that have a Python."""
        found = [child for worker in self.workers for child in children(worker.pid)]
        return [pid for pid in found if children(pid)]


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task")
    try:
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    except FileNotFoundError:
        return []


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    """A standalone master of Spark with two workers, of pyspark's own jars."""
    ports = free_ports(4)
    url = f"spark://127.0.0.1:{ports[0]}"
    own = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
    worker = ["worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
    programs = [["master.Master", "--port", str(ports[0]), "--webui-port", str(ports[1])]]
    programs += [[*worker, "--webui-port", str(port), url] for port in ports[2:]]
    running = []
    for number, (name, *words) in enumerate(programs):
        line = [str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *words]
        with (tmp_path / f"{number}.log").open("w") as log:
            running.append(subprocess.Popen(line, env={**os.environ, **own}, stdout=log, stderr=subprocess.STDOUT))
    try:
        told = tmp_path / "0.log"
        wait_until(lambda: told.read_text().count("Registering worker") == 2, "both workers are there")
        yield Standalone(url, running[1:])
    finally:
        for process in running:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.mark.deep
def test_a_master_with_two_workers_builds_the_same_rows(tmp_path: Path, standalone: Standalone) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w", [part.slice(0, 35) for part in LOG])
    line = [sys.executable, "-m", "kgctl", "history", "build", "--warehouse", str(tmp_path / "w"), "--master", standalone.url]
    own = {"PYTHONPATH": os.pathsep.join(sys.path)}

    for _ in range(2):
        done = subprocess.run(line, env={**os.environ, **own}, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        for part in LOG:
            add(warehouse, "c1", part.slice(35))

    assert tables_of(warehouse) == expected


@pytest.mark.deep
def test_an_executor_that_is_killed_in_mid_build_changes_nothing(tmp_path: Path, standalone: Standalone) -> None:
    expected = tables_of(built_whole(tmp_path / "local"))
    warehouse = collected(tmp_path / "w")
    line = [sys.executable, "-m", "kgctl", "history", "build", "--warehouse", str(tmp_path / "w"), "--master", standalone.url]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    with subprocess.Popen(line, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as building:
        wait_until(lambda: bool(standalone.executors()), "an executor has a Python at work")
        for pid in standalone.executors()[:1]:
            os.kill(pid, signal.SIGKILL)
        said = building.communicate(timeout=300)

    assert building.returncode == 0, said
    assert tables_of(warehouse) == expected


def test_tables_are_data_frames(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = built_whole(tmp_path / "w")
    built(warehouse, is_rebuild=True)

    for name in ("offset_commits", "lag", "generations", "resets"):
        frame = kgctl.spark.read(spark, tmp_path / "w", name)
        assert frame.count() == len(rows_of(warehouse, name)), name
        assert dict(frame.dtypes)["time"] == "timestamp"
    assert kgctl.spark.read(spark, tmp_path / "w", "undecoded").collect() == []
    with pytest.raises(UsageError, match="no table 'lags': there are records, "):
        kgctl.spark.read(spark, tmp_path / "w", "lags")


def test_functions_of_data_frames_say_what_the_build_says(tmp_path: Path, spark: SparkSession) -> None:
    built_whole(tmp_path / "w")
    tables = {name: kgctl.spark.read(spark, tmp_path / "w", name) for name in ("records", "offset_commits", "samples", "lag")}
    records = tables["records"].where("log_partition IN (0, 1)")

    commits = kgctl.spark.offset_commits(records)
    behind = kgctl.spark.lag(commits, tables["samples"])

    expected = tables["offset_commits"].where("log_partition IN (0, 1)")
    assert (commits.dtypes, behind.dtypes) == (expected.dtypes, tables["lag"].dtypes)
    assert commits.count() > 20
    assert commits.exceptAll(expected).union(expected.exceptAll(commits)).collect() == []
    groups = [row["group"] for row in commits.select("group").distinct().collect()]
    of_groups = kgctl.spark.read(spark, tmp_path / "w", "lag", where={"group": groups})
    assert behind.exceptAll(of_groups).union(of_groups.exceptAll(behind)).collect() == []
    decoded = kgctl.spark.decode(records)
    names = [name for name in expected.columns if name not in ("effect_offset", "transactional", "date")]
    assert decoded.columns == [*names, "producer_id"]
    assert decoded.count() >= commits.count()
    with pytest.raises(UsageError, match="samples without topic, partition, time: wanted are topic, "):
        kgctl.spark.lag(commits, spark.range(1).toDF("id"))


def test_records_without_a_cluster_are_of_the_one_that_is_named(tmp_path: Path, spark: SparkSession) -> None:
    example_segments(tmp_path / "logs")
    kgctl.spark.register(spark)
    raw = spark.read.format("kgctl-consumer-offsets").option("segments", str(tmp_path / "logs")).load()

    found = [frame.select("cluster").distinct().collect() for frame in (kgctl.spark.offset_commits(raw, cluster="east"),)]

    assert found == [[("east",)]]
    assert {row["cluster"] for row in kgctl.spark.decode(raw).collect()} == {"default"}


def test_a_tables_rows_are_chosen_by_its_log(tmp_path: Path, spark: SparkSession) -> None:
    """Files that have none of them are not read: they are not even there any more."""
    warehouse = built_whole(tmp_path / "w")
    add(warehouse, "c2", LOG[0].slice(0, 1).set_column(2, LOG[0].schema.field(2), pa.array([86_400_000 * 3])))
    gone = [path for path in data_files(warehouse, "records") if "date=1970-01-04" in str(path)]
    whole = kgctl.spark.read(spark, tmp_path / "w", "records")
    assert (len(gone), whole.columns[-1], dict(whole.dtypes)["date"]) == (1, "date", "date")
    assert whole.where("date = DATE'1970-01-04'").count() == 1
    gone[0].unlink()
    expected = [
        row for file in warehouse.table("records").files("c1") for row in warehouse.table("records").rows([file]).to_pylist()
    ]

    where: list[dict[str, object]] = [{"cluster": "c1"}, {"date": "1970-01-01"}, {"time": (None, "1970-01-02T00:00Z")}]
    where.append({"cluster": ["c1", "c0"], "log_partition": (0, 9), "date": (date(1970, 1, 1), None), "producer_id": None})
    counts = [kgctl.spark.read(spark, tmp_path / "w", "records", where=each).count() for each in where]
    assert counts == [len(expected)] * 3 + [sum(row["producer_id"] is None for row in expected)]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[str]:
    """A server of Spark Connect, of pyspark's own jars; its URL."""
    (port,) = free_ports(1)
    own = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
    own |= {"PYSPARK_PYTHON": sys.executable, "SPARK_CONNECT_MODE": "0"}
    settings = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    settings |= {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": f"{tmp_path}/spark-warehouse"}
    line = [str(SPARK_HOME / "bin/spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    line += ["--master", "local[2]", "--driver-memory", "1g"]
    line += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    told = tmp_path / "connect.log"
    with told.open("w") as log:
        server = subprocess.Popen(line, env={**os.environ, **own}, stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path)
    try:
        wait_until(lambda: "Spark Connect server started" in told.read_text(), "the server listens")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


FRAMES_OF_CONNECT = """\
import sys
import kgctl.spark
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
kgctl.spark.register(spark)
raw = spark.read.format("kgctl-consumer-offsets").option("segments", sys.argv[2]).load()
built = kgctl.spark.build(spark, sys.argv[3], is_rebuild=True)
commits = kgctl.spark.offset_commits(raw)
lag = kgctl.spark.lag(commits, kgctl.spark.read(spark, sys.argv[3], "samples").selectExpr(
    "topic", "partition", "time", "log_start_offset", "log_end_offset"), cluster="default")
print(raw.count(), built.built, [str(error) for error in built.failed])
print(kgctl.spark.decode(raw).count() >= commits.count() == kgctl.spark.read(spark, sys.argv[3], "offset_commits").count())
print(lag.count() == kgctl.spark.read(spark, sys.argv[3], "lag").count())
"""


COLLECT_OF_CONNECT = """\
import sys
import kgctl.spark
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
kgctl.spark.collect(spark, sys.argv[2], "c1", {"bootstrap.servers": sys.argv[3]}, is_once=True).awaitTermination()
"""


@pytest.mark.deep
def test_spark_connect_collects_a_live_cluster(tmp_path: Path, connect: str, kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS)
    commits(server.bootstrap, 20, 5)
    line = [sys.executable, "-c", COLLECT_OF_CONNECT, connect, str(tmp_path / "w"), server.bootstrap]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(line, env=own, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr

    collect_here(tmp_path / "expected", server.bootstrap)
    assert kept(tmp_path / "w") == kept(tmp_path / "expected")
    assert {row["topic"] for row in rows_of(Warehouse.open(tmp_path / "w"), "samples")} == {"__consumer_offsets", "orders"}


@pytest.mark.deep
def test_spark_connect_collects_builds_and_has_the_functions(tmp_path: Path, connect: str) -> None:
    example_segments(tmp_path / "logs")
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def ran(*words: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, *map(str, words)], env=own, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    history = ("-m", "kgctl", "history")
    watch = ("watch", "--no-collect", "--once", "--allow-unknown")
    for place, how, build in (("here", ["--engine", "local"], ["build"]), ("there", ["--remote", connect], watch)):
        ran(*history, "collect", "--segments", tmp_path / "logs", "--warehouse", tmp_path / place, "--cluster", "c1", *how)
        ran(*history, *build, "--warehouse", tmp_path / place, *how)
    assert tables_of(Warehouse.open(tmp_path / "there")) == tables_of(Warehouse.open(tmp_path / "here"))
    ran(*history, "build", "--rebuild", "--warehouse", tmp_path / "there", "--remote", connect)
    found, expected = (Warehouse.open(tmp_path / place) for place in ("there", "here"))

    assert len(rows_of(found, "records")) == 52
    assert tables_of(found) == tables_of(expected)
    frames = ran("-c", FRAMES_OF_CONNECT, connect, tmp_path / "logs", tmp_path / "there")
    assert frames.splitlines() == ["52 1 []", "True", "True"]
    sweep = ("-m", "kgctl", "simulate", "sweep", "crash-detection", "--runs", "3", "--verify", "0", "--rows", "-o", "csv")
    assert ran(*sweep, "--remote", connect) == ran(*sweep, "--jobs", "1")
