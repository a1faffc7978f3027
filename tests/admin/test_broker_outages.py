"""A cluster of three loses a broker: kgctl shows what the others know, says what is missing, and follows groups that move."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.kafka import KafkaBroker, KafkaCluster, commit, create_topic, produce, unique
from tests.support.kafka.kgctl import KgctlRun, run_kgctl
from tests.support.patience import PATIENCE_S

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.deep,
]  # three brokers; tests/interop/test_several_brokers.py is of every run

GROUPS = 9
TIMEOUT_S = 4
OVERHEAD_S = 15.0


@dataclass(frozen=True)
class Groups:
    """Groups spread over three coordinators, each with a lag of 6 on each of 6 partitions."""

    cluster: KafkaCluster
    prefix: str

    @property
    def names(self) -> list[str]:
        return [f"{self.prefix}-{number}" for number in range(GROUPS)]

    def list(self, *, code: int | None = 0) -> KgctlRun:
        asked = ("--timeout", str(TIMEOUT_S), "list", "groups", "--lag", "--match", f"^{self.prefix}-")
        return run_kgctl(self.cluster.bootstrap, *asked, code=code)


@pytest.fixture(scope="module")
def groups(three_kafka_brokers: KafkaCluster) -> Groups:
    bootstrap = three_kafka_brokers.bootstrap
    topic = create_topic(bootstrap, unique("orders"), 6, replication=3)
    produce(bootstrap, topic, dict.fromkeys(range(6), 10))
    spread = Groups(three_kafka_brokers, unique("spread"))
    for name in spread.names:
        commit(bootstrap, name, {(topic, partition): 4 for partition in range(6)})
    return spread


@pytest.fixture
def coordinating(groups: Groups) -> Iterator[KafkaBroker]:
    """A broker that coordinates some groups and is not the controller; whatever a test does to it, it is back afterwards."""
    described = run_kgctl(groups.cluster.bootstrap, "describe", "group", *groups.names, "--state")
    addresses = {row["coordinator"] for row in described.data}
    broker = next(each for each in groups.cluster.brokers[1:] if each.bootstrap in addresses)
    yield broker
    if not broker.running:
        broker.start()
    broker.thaw()
    groups.cluster.recover()


def lags(run: KgctlRun) -> dict[str, int | None]:
    return {row["group"]: row["lag"] for row in run.data}


def test_a_frozen_broker_costs_its_own_groups_and_only_the_time_limit(groups: Groups, coordinating: KafkaBroker) -> None:
    everything = dict.fromkeys(groups.names, 36)
    assert lags(groups.list()) == everything
    with coordinating.frozen():
        started = time.monotonic()
        run = groups.list(code=3)
        took_s = time.monotonic() - started
    shown = lags(run)
    assert shown != everything
    assert set(shown) < set(everything)
    assert set(shown.values()) <= {36, None}, "unknown where a partition's leader hangs, never a guess"
    assert len(shown) >= GROUPS // 3
    assert coordinating.bootstrap in run.err
    assert json.loads(run.out)["status"] == "partial"
    assert took_s < TIMEOUT_S + OVERHEAD_S


def test_groups_of_a_stopped_broker_are_found_at_their_new_coordinator(groups: Groups, coordinating: KafkaBroker) -> None:
    coordinating.stop()
    assert lags(groups.list()) == dict.fromkeys(groups.names, 36)
    moved = run_kgctl(groups.cluster.bootstrap, "describe", "group", *groups.names, "--state")
    assert coordinating.bootstrap not in {row["coordinator"] for row in moved.data}


def test_groups_of_a_killed_broker_are_not_mistaken_for_missing(groups: Groups, coordinating: KafkaBroker) -> None:
    coordinating.stop(kill=True)
    deadline = time.monotonic() + PATIENCE_S
    # A broker that is a partition's leader and has not heard of it yet lists none of its groups, and says nothing about it.
    while lags(run := groups.list(code=None)) != dict.fromkeys(groups.names, 36):
        assert run.code in (0, 3, 7), run
        assert "not found" not in run.err.lower()
        assert time.monotonic() < deadline, run


NO_LEADER = [
    (3, "describe group GROUP"),
    (3, "describe group GROUP --time-lag"),
    (6, "describe group GROUP --fail-if-lag-over 1000"),
    (0, "describe group GROUP --fail-if-lag-over 1000 --allow-unknown"),
    (0, "describe group GROUP --state"),
    (3, "peek GROUP"),
    (3, "reset-offsets GROUP --all-topics --to-earliest"),
    (3, "reset-offsets GROUP --all-topics --to-offset 3 --execute --no-backup"),
    (0, "diff-offsets GROUP GROUP2"),
    (0, "delete-offsets GROUP --topic TOPIC --yes --no-backup"),
    (0, "delete-groups GROUP2 --yes --no-backup"),
]
"""What each command makes of a partition that has no leader: reads and resets do without it and say so, deletions need no log."""


def test_a_partition_without_a_leader_is_told_by_every_command(groups: Groups, coordinating: KafkaBroker) -> None:
    bootstrap = groups.cluster.bootstrap
    names = {"GROUP": unique("single"), "GROUP2": unique("single"), "TOPIC": create_topic(bootstrap, unique("single"), 3)}
    produce(bootstrap, names["TOPIC"], dict.fromkeys(range(3), 10))
    for name in ("GROUP", "GROUP2"):
        commit(bootstrap, names[name], {(names["TOPIC"], partition): 7 for partition in range(3)})
    coordinating.stop()
    assert lags(groups.list()) == dict.fromkeys(groups.names, 36)  # what has replicas is led by the others by now
    for code, line in NO_LEADER:
        ran = run_kgctl(bootstrap, *(names.get(word, word) for word in line.split()), code=code)
        assert code == 0 or "has no leader" in ran.err, (line, ran.err)
