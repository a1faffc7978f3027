"""Collecting on Spark: the same rows as ``kgctl history collect`` writes, each once, whatever is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kgctl.spark
from kgctl.errors import AuthError, BrokerError, KgctlError, RefusedError, UnreachableError, UsageError
from kgctl.pipeline.collect.stream import BatchWriter
from kgctl.pipeline.engines import SparkEndedError, SparkError
from kgctl.pipeline.session import SparkOptions, spark_session
from kgctl.pipeline.sources.live import WireReader
from kgctl.pipeline.store.warehouse import Warehouse, commit_records, next_offset
from kgctl.pipeline.upkeep import forget
from tests.pipeline.test_kills import ran
from tests.support.gates import SPARK
from tests.support.kafka import KafkaBroker, create_topic
from tests.support.kafka.config import NodePorts, combined_node
from tests.support.kafka.data import wait_until_coordinating
from tests.support.kafka.kgctl import run_line
from tests.support.members import wait_until
from tests.support.pipeline.warehouses import rows_of
from tests.support.serve import ServeFactory
from tests.support.wire.raw_client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

OFFSET_COMMIT = 8
PARTITIONS = 4
FEW_PARTITIONS = {"offsets.topic.num.partitions": str(PARTITIONS)}


def commits(bootstrap: str, groups: int, offset: int, topic: str = "orders") -> None:
    with RawClient(bootstrap) as raw:
        for number in range(groups):
            entry = {"partition_index": 1, "committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": 0}
            body = {"group_id": f"g{number}", "topics": [{"name": topic, "partitions": [entry]}]}
            assert int(raw.call(OFFSET_COMMIT, 8, body).topics[0].partitions[0].error_code) == 0


def collect_on_spark(session: SparkSession, warehouse: Path, bootstrap: str, **options: Any) -> None:
    properties = {"bootstrap.servers": bootstrap}
    kgctl.spark.collect(session, warehouse, "c1", properties, is_once=True, **options).awaitTermination()


def collect_here(warehouse: Path, bootstrap: str) -> None:
    words = ["history", "collect", "--once", "--cluster", "c1", "--warehouse", str(warehouse)]
    ran([sys.executable, "-m", "kgctl", "--bootstrap-server", bootstrap, *words])


def kept(warehouse: Path) -> tuple[list[dict[str, Any]], Sequence[int | None]]:
    """The records, and from where the next collection goes on."""
    opened = Warehouse.open(warehouse)
    return rows_of(opened, "records"), [next_offset(opened, "c1", number) for number in range(PARTITIONS)]


def test_either_goes_on_where_the_other_ended(spark: SparkSession, kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    server = kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS)
    commits(server.bootstrap, 20, 5)

    collect_on_spark(spark, tmp_path / "w", server.bootstrap, most=7)
    collect_here(tmp_path / "expected", server.bootstrap)
    assert kept(tmp_path / "w") == kept(tmp_path / "expected")
    assert len(rows_of(Warehouse.open(tmp_path / "w"), "records")) == 20
    assert {row["topic"] for row in rows_of(Warehouse.open(tmp_path / "w"), "samples")} == {"orders", "__consumer_offsets"}

    commits(server.bootstrap, 3, 6)
    collect_here(tmp_path / "w", server.bootstrap)
    commits(server.bootstrap, 4, 7)
    collect_on_spark(spark, tmp_path / "w", server.bootstrap)
    collect_here(tmp_path / "expected", server.bootstrap)
    assert kept(tmp_path / "w") == kept(tmp_path / "expected")
    assert len(rows_of(Warehouse.open(tmp_path / "w"), "records")) == 27


def test_a_batch_that_fails_is_done_again_whole(
    spark: SparkSession, kgctl_serve: ServeFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS)
    commits(server.bootstrap, 20, 5)
    outcomes = iter(["before", "after", "overtaken", "fine"])

    def fails(*given: Any, **options: Any) -> Any:
        outcome = next(outcomes, "fine")
        if outcome == "before":
            raise KeyError("killed")
        if outcome == "overtaken":
            collect_here(tmp_path / "w", server.bootstrap)
        found = commit_records(*given, **options)
        if outcome == "after":
            raise KeyError("killed")
        return found

    monkeypatch.setattr("kgctl.pipeline.collect.stream.commit_records", fails)
    for is_killed in (True, True, False):
        if is_killed:
            with pytest.raises(Exception, match="killed"):
                collect_on_spark(spark, tmp_path / "w", server.bootstrap)
        else:
            commits(server.bootstrap, 20, 6)
            collect_on_spark(spark, tmp_path / "w", server.bootstrap)
    collect_here(tmp_path / "expected", server.bootstrap)
    assert kept(tmp_path / "w") == kept(tmp_path / "expected")
    assert next(outcomes, "") == "", "all of them came"


def test_what_cannot_be_is_said_before_a_stream_starts(spark: SparkSession, kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    server, other = (kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS) for _ in range(2))
    with pytest.raises(UsageError, match=r"kgctl\.spark\.collect: properties without bootstrap\.servers"):
        kgctl.spark.collect(spark, tmp_path / "w", "c1", {"client.id": "x"})
    commits(server.bootstrap, 2, 5)
    commits(other.bootstrap, 2, 5)
    collect_here(tmp_path / "w", server.bootstrap)
    with pytest.raises(RefusedError, match=r"keeps (them|the new ones) apart"):
        collect_on_spark(spark, tmp_path / "w", other.bootstrap)


@pytest.fixture
def command(kgctl_serve: ServeFactory, tmp_path: Path) -> _Command:
    return _Command(kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS).bootstrap, tmp_path / "w")


class _Command:
    """``kgctl history collect --engine spark``, as its user starts it."""

    def __init__(self, bootstrap: str, warehouse: Path) -> None:
        self.bootstrap, self.warehouse = bootstrap, warehouse

    def collect(self, *options: str, code: int = 0) -> Any:
        words = ["history", "collect", "--cluster", "c1", "--engine", "spark", "--warehouse", str(self.warehouse), *options]
        return run_line(["--bootstrap-server", self.bootstrap, *words, "-o", "json"], code)


def test_the_command_ends_with_what_is_there(spark: SparkSession, command: _Command, tmp_path: Path) -> None:
    commits(command.bootstrap, 20, 5)
    found = command.collect("--once")
    collect_here(tmp_path / "expected", command.bootstrap)
    assert kept(command.warehouse) == kept(tmp_path / "expected")
    assert {name: found.document["summary"][name] for name in ("cluster", "records", "known", "damaged")} == {
        "cluster": "c1",
        "records": 20,
        "known": 0,
        "damaged": 0,
    }
    assert [(row["log_partition"], row["records"]) for row in found.data] == [
        (number, count) for number, count in sorted(Counter(row["partition"] for row in kept(command.warehouse)[0]).items())
    ]


def test_the_command_names_partitions_that_cannot_be_had(spark: SparkSession, command: _Command) -> None:
    """Up to what is there is then not all of it."""
    commits(command.bootstrap, 20, 5)
    whole = WireReader.log_state
    missing = {3: BrokerError("__consumer_offsets-3: LEADER_NOT_AVAILABLE", partition=3)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WireReader, "log_state", lambda reader: replace(whole(reader), errors=missing))
        patch.setattr(WireReader, "log_offsets", lambda _, __: ([], [BrokerError("orders-0: no leader")]))
        found = command.collect("--once", code=3)
    assert found.err.splitlines()[:2] == ["kgctl: __consumer_offsets-3: LEADER_NOT_AVAILABLE", "kgctl: orders-0: no leader"]


@pytest.mark.deep
def test_the_command_goes_on_for_as_long_as_it_is_told(spark: SparkSession, command: _Command, tmp_path: Path) -> None:
    """Also after trouble; each trigger samples the log ends."""
    commits(command.bootstrap, 20, 5)
    done = threading.Event()
    committing = threading.Thread(target=keep_committing, args=(command.bootstrap, "orders", done))
    outcomes, trouble = iter(["fine", "trouble", "fine", "trouble"]), [UnreachableError("no news"), SparkError("no executor")]

    def take(batches: BatchWriter, *given: Any) -> None:
        if next(outcomes, "fine") == "trouble":
            raise trouble.pop()
        taken(batches, *given)

    def sample(reader: WireReader, topics: Any) -> Any:
        rows, errors = sampled(reader, topics)
        return rows, [*errors, *([BrokerError("orders-0: no leader", topic="orders", partition=0)] if trouble else [])]

    taken, sampled = BatchWriter._take, WireReader.log_offsets
    committing.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BatchWriter, "_take", take)
            patch.setattr(WireReader, "log_offsets", sample)
            patch.setattr("kgctl.cli.history.collect.AFTER_TROUBLE_S", 0.1)
            found = command.collect("--for", "30s", "--sample-every", "1s")
    finally:
        done.set()
        committing.join()
    told = [line for line in found.err.splitlines() if not line.startswith("Collected ")]
    again = [f"kgctl: {what}; trying again in 0.1 s" for what in ("no executor", "no news")]
    assert told == ["no sample: orders-0: no leader", *again], "what is over by then is no error of the collection"
    assert next(outcomes, "") == "", "all of them came"
    assert len({row["timestamp_ms"] for row in rows_of(Warehouse.open(command.warehouse), "samples")}) > 2
    command.collect("--once")
    collect_here(tmp_path / "expected", command.bootstrap)
    assert kept(command.warehouse) == kept(tmp_path / "expected")


def test_what_the_command_refuses_has_its_exit_code(spark: SparkSession, command: _Command, kgctl_serve: ServeFactory) -> None:
    commits(command.bootstrap, 2, 5)
    command.collect("--once")
    other = kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS)
    commits(other.bootstrap, 2, 5)
    assert "--cluster NAME keeps them apart" in _Command(other.bootstrap, command.warehouse).collect("--once", code=5).err

    def refused(batches: BatchWriter, *_: Any) -> None:
        batches.collection.samples += 1
        raise outcomes.pop()

    outcomes: list[KgctlError] = [SparkEndedError("Spark has ended"), AuthError("not any more"), RefusedError("not these")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchWriter, "_take", refused)
        for code, told in ((5, "not these"), (8, "not any more"), (1, "Spark has ended")):
            assert command.collect("--for", "1m", code=code).err == f"kgctl: {told}\n"


def test_the_command_up_to_what_is_there_is_interrupted_and_says_so(spark: SparkSession, command: _Command) -> None:
    """Half of what is there is not what was asked for."""

    def interrupt(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchWriter, "_take", interrupt)
        assert command.collect("--once", code=130).err == "kgctl: interrupted\n"


@pytest.mark.deep
def test_a_stream_that_is_ahead_of_its_warehouse_ends(spark: SparkSession, kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    """What was forgotten while it ran is not left out in silence."""
    server = kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS)
    commits(server.bootstrap, 20, 5)
    query = kgctl.spark.collect(spark, tmp_path / "w", "c1", {"bootstrap.servers": server.bootstrap}, every="1 second")
    try:
        wait_until(lambda: len(kept(tmp_path / "w")[0]) == 20, "the first records are there")
        forget(Warehouse.open(tmp_path / "w"), "c1")
        commits(server.bootstrap, 20, 6)
        with pytest.raises(Exception, match="were forgotten meanwhile; start the stream again"):
            query.awaitTermination(60)
    finally:
        query.stop()
    collect_on_spark(spark, tmp_path / "w", server.bootstrap)
    collect_here(tmp_path / "expected", server.bootstrap)
    assert kept(tmp_path / "w") == kept(tmp_path / "expected")


RUN = "history collect --cluster c1 --master local-cluster[2,1,1024] --sample-every 1s"


def executors_of(driver: int) -> list[int]:
    """The executors that a driver has started, by its JVM."""
    found, parents = [], {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if driver in chain(pid, parents)]


def has_executors(driver: int) -> bool:
    return bool(executors_of(driver))


def chain(pid: int, parents: Mapping[int, int]) -> list[int]:
    """A process, and all above it."""
    found = [pid]
    while found[-1] in parents:
        found.append(parents[found[-1]])
    return found


def keep_committing(bootstrap: str, topic: str, done: threading.Event) -> None:
    offset = 0
    while not done.is_set():
        offset += 1
        commits(bootstrap, 20, offset, topic)
        time.sleep(0.2)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Apache Kafka with an offsets topic of some partitions."""

    def config(folder: Path, ports: NodePorts) -> Mapping[str, str]:
        return {**combined_node(folder, ports), **FEW_PARTITIONS}

    node = KafkaBroker(tmp_path / "kafka", config=config)
    try:
        node.start()
        wait_until_coordinating(node.bootstrap, PARTITIONS)
        yield node
    finally:
        node.stop()


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.needs(*SPARK)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
def test_a_stream_whose_driver_and_executors_are_killed_keeps_each_record_once(
    broker: KafkaBroker, tmp_path: Path, seed: int
) -> None:
    choice, bootstrap = random.Random(seed), broker.bootstrap
    topic, killed = create_topic(bootstrap, "orders", 3), 0
    done = threading.Event()
    committing = threading.Thread(target=keep_committing, args=(bootstrap, topic, done))
    committing.start()
    try:
        for _ in range(3):
            driver = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "kgctl",
                    "--bootstrap-server",
                    bootstrap,
                    *RUN.split(),
                    "--warehouse",
                    str(tmp_path / "w"),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            wait_until(partial(has_executors, driver.pid), "executors are there")
            for _ in range(2):
                time.sleep(choice.uniform(3, 12))
                for pid in executors_of(driver.pid)[:1]:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            time.sleep(choice.uniform(2, 10))
            assert driver.poll() is None, "a stream outlives its executors"
            driver.kill()
            driver.wait()
    finally:
        done.set()
        committing.join()
    with spark_session(SparkOptions(master="local[1]")) as session:
        collect_on_spark(session, tmp_path / "w", bootstrap)
    collect_here(tmp_path / "expected", bootstrap)
    found, expected = kept(tmp_path / "w"), kept(tmp_path / "expected")
    assert found == expected
    assert killed >= 4
    places = [(row["partition"], row["offset"]) for row in found[0]]
    assert len(places) == len(set(places)) > 500
