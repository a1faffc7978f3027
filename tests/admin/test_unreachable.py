"""Clusters that do not answer: dead, frozen, or half there. Nothing hangs past its time, and nothing ends the process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kgctl.admin import GroupAdmin
from kgctl.admin.confluent import ConfluentGroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.errors import TimedOutError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.support.kafka import KafkaBroker, KafkaCluster, commit, create_topic, unique
from tests.support.kafka.data import wait_for_brokers, wait_until_coordinating
from tests.support.patience import PATIENCE_MS, SOON_S
from tests.support.serve import ServeProcess

SHORT_MS = 700
PART_MS = 2_000
SLACK_S = 15.0

CALLS = {
    "list_groups": lambda admin: admin.list_groups(),
    "describe_groups": lambda admin: admin.describe_groups(["g"]),
    "list_committed_offsets": lambda admin: admin.list_committed_offsets(["g"]),
    "list_log_offsets": lambda admin: admin.list_log_offsets([TopicPartition("t", 0)]),
    "list_topics": lambda admin: admin.list_topics(),
    "alter_offsets": lambda admin: admin.alter_offsets("g", {TopicPartition("t", 0): OffsetAndMetadata(1)}),
    "delete_groups": lambda admin: admin.delete_groups(["g"]),
}


def open_admin(backend: str, bootstrap: str, timeout_ms: int = SHORT_MS) -> GroupAdmin:
    if backend == "confluent":
        return ConfluentGroupAdmin({"bootstrap.servers": bootstrap}, timeout_ms)
    return connect(ConnectionSettings(bootstrap, timeout_ms=timeout_ms))


def dead_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("backend", ["live", "confluent"])
def test_a_dead_port_is_unreachable_before_the_time_is_up(backend: str) -> None:
    started = time.monotonic()
    with pytest.raises(UnreachableError, match="refused") as caught, open_admin(backend, dead_address(), PATIENCE_MS) as admin:
        admin.list_groups()

    assert time.monotonic() - started < SOON_S
    assert not isinstance(caught.value, TimedOutError)


@pytest.mark.interop
@pytest.mark.parametrize("backend", ["live", "confluent"])
@pytest.mark.parametrize("call", CALLS)
def test_a_frozen_server_times_out_in_time(server: ServeProcess, backend: str, call: str) -> None:
    with open_admin(backend, server.bootstrap) as admin, frozen(server):
        started = time.monotonic()
        with pytest.raises(TimedOutError, match=r"did not answer within 0\.7 s"):
            CALLS[call](admin)

        assert time.monotonic() - started < SHORT_MS / 1000 + SLACK_S


@pytest.fixture(scope="module")
def server() -> Iterator[ServeProcess]:
    """Not the one that other tests use: it is frozen now and then."""
    with ServeProcess(topics={"t": 1}) as process:
        yield process


@contextmanager
def frozen(server: ServeProcess) -> Iterator[None]:
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def freezing_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Not the one that other tests use: it is frozen now and then."""
    broker = KafkaBroker(tmp_path_factory.mktemp("kafka-freezing"))
    try:
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        create_topic(broker.bootstrap, "t")
        yield broker
    finally:
        broker.stop()


@pytest.mark.kafka
@pytest.mark.parametrize("backend", ["live", "confluent"])
@pytest.mark.parametrize("call", ["describe_groups", "list_committed_offsets", "alter_offsets", "delete_groups"])
def test_an_answer_that_comes_too_late_does_not_end_the_process(freezing_broker: KafkaBroker, backend: str, call: str) -> None:
    """librdkafka 2.16 aborts when the coordinator that it gave up on is told after all (librdkafka#4605)."""
    code = f"""
import sys, time
from kgctl.errors import TimedOutError
from tests.admin.test_unreachable import CALLS, open_admin
admin = open_admin({backend!r}, {freezing_broker.bootstrap!r})
while True:
    try:
        admin.list_topics()
        break
    except TimedOutError:
        continue
print("ready", flush=True)
sys.stdin.readline()
try:
    print(CALLS[{call!r}](admin), flush=True)
except Exception as error:
    print(type(error).__name__, flush=True)
sys.stdin.readline()
print("alive", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with freezing_broker.frozen():
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "TimedOutError\n"
        freezing_broker.wait_for_port()
        time.sleep(0.5)  # for the late answer
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.read() == "alive\n"
    assert process.returncode == 0


def target_admin(cluster: KafkaCluster) -> GroupAdmin:
    """Its two calls together must be over before the cluster takes a frozen broker for dead (9 s) and others coordinate."""
    return open_admin("live", cluster.bootstrap, PART_MS)


@pytest.mark.kafka
def test_one_broker_of_three_that_hangs_costs_only_its_part(three_kafka_brokers: KafkaCluster) -> None:
    topic = create_topic(three_kafka_brokers.bootstrap, unique("topic"), 3, replication=3)
    groups = [unique("group") for _ in range(9)]
    for group in groups:
        commit(three_kafka_brokers.bootstrap, group, {(topic, 0): 1})
    with target_admin(three_kafka_brokers) as admin:
        whole = admin.list_groups()
        by_broker = {group: whole.values[group].coordinator for group in groups}
        victim = three_kafka_brokers.brokers[2]
        with victim.frozen():
            started = time.monotonic()
            part = admin.list_groups()
            offsets = admin.list_committed_offsets(groups)
            took_s = time.monotonic() - started
        wait_for_brokers(three_kafka_brokers.bootstrap, len(three_kafka_brokers.brokers))

    lost = {group for group, node in by_broker.items() if node is not None and node.node_id == victim.node_id}
    assert 0 < len(lost) < len(groups)
    assert set(groups) - set(part.values) == lost
    assert [error.code for error in part.unreachable.values()] == [ErrorCode.REQUEST_TIMED_OUT]
    assert list(part.unreachable) == [f"{victim.bootstrap} (id {victim.node_id})"]
    assert part.status == "partial"
    assert set(offsets.errors) == lost
    assert {error.code for error in offsets.errors.values()} == {ErrorCode.REQUEST_TIMED_OUT}
    assert took_s < 2 * PART_MS / 1000 + SLACK_S


@pytest.mark.interop
def test_a_server_that_thaws_in_time_is_answered(server: ServeProcess) -> None:
    with open_admin("live", server.bootstrap, PATIENCE_MS) as admin:
        os.kill(server.process.pid, signal.SIGSTOP)
        thaw = threading.Timer(0.3, os.kill, (server.process.pid, signal.SIGCONT))
        thaw.start()

        assert admin.list_topics(["t"]) == {"t": 1}
        thaw.join()
