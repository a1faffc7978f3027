"""The history of groups that real clients drove on Apache Kafka, held against what the clients wrote down."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.consumers import joined
from tests.support.kafka.data import unique, wait_until_coordinating
from tests.support.kafka.kgctl import run_kgctl
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.commands import run_history
from tests.support.pipeline.tables import copy_samples, copy_shuffled
from tests.support.pipeline.truth.check import certain_answers
from tests.support.pipeline.truth.ledger import Ledger
from tests.support.pipeline.truth.traffic import PARTITIONS, drive
from tests.support.pipeline.warehouses import tables_of
from tests.support.profiles import is_deep

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

CLUSTER = "c"
OFFSETS_PARTITIONS = 5
UNFENCED = {"broker.session.timeout.ms": "60000"}
"""A controller fences a broker that a busy machine keeps from telling of itself: partitions lose their leader and groups their
coordinator in mid-join. Nothing here is about that, and this broker is not killed."""
ROUNDS, TIMES = 10, 40
DEEP_ROUNDS, DEEP_TIMES = 40, 150


@dataclass(frozen=True)
class Driven:
    """A cluster whose groups have a past, and what was collected of it and built."""

    bootstrap: str
    log: Path
    ledger: Ledger
    topic: str
    warehouse: Path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(
        tmp_path_factory.mktemp("kafka-truth"), overrides={"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS), **UNFENCED}
    )
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap, OFFSETS_PARTITIONS)
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def driven(broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Driven:
    """Collected and built while it happened, and to the end."""
    warehouse = tmp_path_factory.mktemp("truth") / "live"
    with collecting(broker.bootstrap, warehouse), building(warehouse):
        ledger, topic = drive(broker.bootstrap, DEEP_ROUNDS if is_deep(pytestconfig) else ROUNDS)
    collect(broker.bootstrap, warehouse)
    run_history("build", warehouse, "--engine", "local")
    return Driven(broker.bootstrap, broker.folder / "log", ledger, topic, warehouse)


@contextmanager
def collecting(bootstrap: str, warehouse: Path) -> Iterator[None]:
    """A collection that goes on for the length of the block, and ends well when it is asked to."""
    line = ["history", "collect", "--bootstrap-server", bootstrap, "--warehouse", str(warehouse), "--cluster", CLUSTER]
    command = [sys.executable, "-m", "kgctl", *line, "--sample-every", "1s"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output


@contextmanager
def building(warehouse: Path) -> Iterator[None]:
    """Builds for the length of the block, one after the other, of what there is."""
    is_over = threading.Event()

    def builds() -> int:
        count, ends = 0, False
        while not ends:
            ends = is_over.wait(2.0)
            if (warehouse / "records").exists():
                run_history("build", warehouse, "--engine", "local")
                count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(builds)
        try:
            yield
        finally:
            is_over.set()
        assert done.result(PATIENCE_S) > 0


def collect(bootstrap: str, warehouse: Path) -> None:
    run_history("collect", warehouse, "--cluster", CLUSTER, "--bootstrap-server", bootstrap, "--once")


def test_offsets_at_random_past_times_are_those_that_were_committed(driven: Driven, pytestconfig: pytest.Config) -> None:
    history = History.open(driven.warehouse)
    times = driven.ledger.random_times(DEEP_TIMES if is_deep(pytestconfig) else TIMES)

    assert certain_answers(history, driven.ledger, times) > 0.5


def test_segments_of_the_broker_tell_the_same_history(driven: Driven, tmp_path: Path) -> None:
    copied = tmp_path / "segments"
    run_history("collect", copied, "--cluster", CLUSTER, "--segments", str(driven.log))
    copy_samples(driven.warehouse, copied, CLUSTER)
    run_history("build", copied, "--engine", "local")

    assert tables_of(Warehouse.open(copied), CLUSTER) == tables_of(Warehouse.open(driven.warehouse), CLUSTER)


@pytest.mark.deep
def test_other_files_and_another_order_tell_the_same_history(driven: Driven, tmp_path: Path) -> None:
    shuffled = tmp_path / "shuffled"
    copy_shuffled(driven.warehouse, shuffled, CLUSTER, cuts=6, seed=1)
    run_history("build", shuffled, "--engine", "local")

    assert tables_of(Warehouse.open(shuffled), CLUSTER) == tables_of(Warehouse.open(driven.warehouse), CLUSTER)


def test_reset_is_found_and_undone(driven: Driven, tmp_path: Path) -> None:
    group, warehouse = unique("undone"), tmp_path / "undo"
    with joined(driven.bootstrap, group, driven.topic, {"one": PARTITIONS}) as members:
        for offset in (100, 200, 300):
            offsets = [TopicPartition(driven.topic, partition, offset + partition, "why") for partition in range(PARTITIONS)]
            members["one"].commit(offsets=offsets, asynchronous=False)
    before = committed(driven.bootstrap, group)
    run_kgctl(
        driven.bootstrap, "reset-offsets", group, "--topic", f"{driven.topic}:0,2", "--to-earliest", "--execute", "--no-backup"
    )
    collect(driven.bootstrap, warehouse)
    run_history("build", warehouse, "--engine", "local")

    found = run_history("resets", warehouse, "--group", group)
    assert [(row["partition"], row["offset_before"], row["offset_after"], row["evidence"]) for row in found] == [
        (0, 300, 0, ["group_empty"]),
        (2, 302, 0, ["group_empty"]),
    ]
    just_before = str(milliseconds(found[0]["time"]) - 1)
    line = ["reset-offsets", group, "--to-history", just_before, "--warehouse", str(warehouse)]
    plan = run_kgctl(driven.bootstrap, *line).data
    assert [(row["partition"], row["new_offset"], row["result"]) for row in plan] == [
        (0, 300, "planned"),
        (1, 301, "unchanged"),
        (2, 302, "planned"),
        (3, 303, "unchanged"),
    ]
    run_kgctl(driven.bootstrap, *line, "--execute", "--no-backup")
    assert committed(driven.bootstrap, group) == before


def committed(bootstrap: str, group: str) -> dict[int, int]:
    return {row["partition"]: row["current_offset"] for row in run_kgctl(bootstrap, "describe", "group", group).data}


def milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
