"""Groups that real clients drove on Apache Kafka: their rebalances, members and assignments are those that were driven."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from kgctl.pipeline.builds.run import build
from kgctl.pipeline.engines import LocalEngine
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.consumers import consumer, poll_until
from tests.support.kafka.data import create_topic, delete_topic, produce, unique
from tests.support.kafka.kgctl import run_kgctl
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS, PATIENCE_S, SESSION_MS
from tests.support.pipeline.commands import run_history
from tests.support.pipeline.warehouses import rows_of as stored_rows

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

PARTITIONS = 4
CLOCKS_APART_S = 0.25
"""A broker's clock may be so far from this process's."""
CLUSTER = "kafka"
CLASSIC = {"group_protocol": "classic", "session_timeout_ms": SESSION_MS}
CONSUMER = {"group_protocol": "consumer"}
COOPERATIVE = {**CLASSIC, "partition_assignment_strategy": "cooperative-sticky"}
Row = dict[str, Any]


@dataclass
class Driver:
    """A group that is driven step by step; after each it has settled, and what its clients then had is written down."""

    bootstrap: str
    group: str
    topic: str
    properties: dict[str, Any]
    members: dict[str, Consumer] = field(default_factory=dict)
    seen: list[tuple[int, dict[str, frozenset[int]]]] = field(default_factory=list)

    def join(self, name: str) -> None:
        """One more."""
        self.members[name] = consumer(self.bootstrap, self.group, name, **self.properties)
        self.members[name].subscribe([self.topic])
        self._settle()

    def leave(self, name: str) -> None:
        """One less."""
        self.members.pop(name).close()
        self._settle()

    def _settle(self) -> None:
        """Everybody has an even share; and it stays so for a while, so that the clocks need not agree to the millisecond."""
        shares = [PARTITIONS // max(len(self.members), 1)] * len(self.members)
        everybody = list(self.members.values())
        poll_until(everybody, lambda: [len(member.assignment()) for member in everybody] == shares)
        until = time.monotonic() + 2 * CLOCKS_APART_S
        poll_until(everybody, lambda: time.monotonic() > until)
        had = {name: frozenset(at.partition for at in member.assignment()) for name, member in self.members.items()}
        self.seen.append((time.time_ns() // 1_000_000 - round(1000 * CLOCKS_APART_S), had))


def drive(bootstrap: str, topic: str, properties: dict[str, Any]) -> Driver:
    """Two come, one goes, another comes, all go."""
    driver = Driver(bootstrap, unique("driven"), topic, properties)
    driver.join("one")
    driver.join("two")
    driver.leave("one")
    driver.join("three")
    driver.leave("three")
    driver.leave("two")
    return driver


@pytest.fixture(scope="module")
def told(kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, dict[str, Driver]]:
    """Three groups with a past, driven at the same time, collected and built."""
    bootstrap = kafka_broker.bootstrap
    topic = unique("driven")
    create_topic(bootstrap, topic, PARTITIONS)
    kinds: dict[str, dict[str, Any]] = {"classic": CLASSIC, "cooperative": COOPERATIVE, "consumer": CONSUMER}
    with ThreadPoolExecutor(len(kinds)) as pool:
        driven = pool.map(lambda properties: drive(bootstrap, topic, properties), kinds.values())
        drivers = dict(zip(kinds, driven, strict=True))
    run_kgctl(bootstrap, "delete-groups", drivers["classic"].group, "--yes")
    folder = tmp_path_factory.mktemp("driven") / "warehouse"
    run_history("collect", folder, "--cluster", CLUSTER, "--bootstrap-server", bootstrap, "--once")
    delete_topic(bootstrap, topic)
    warehouse = Warehouse.open(folder)
    assert build(warehouse, [CLUSTER], lambda _: LocalEngine()).failed == []
    return warehouse, drivers


def rows_of(warehouse: Warehouse, table: str, group: str) -> list[Row]:
    found = [row for row in stored_rows(warehouse, table, CLUSTER) if row["group"] == group]
    return sorted(found, key=lambda row: row["log_offset"])


def at(rows: Sequence[Row], time_ms: int, *key: str) -> list[Row]:
    """Of the changes of each key the last one up to a time, where it is not an end."""
    last = {tuple(row[name] for name in key): row for row in rows if row["time_ms"] <= time_ms}
    return [row for row in last.values() if row["change"] not in ("left", "revoked")]


DRIVEN = ["member_joined", "member_joined", "member_left", "member_joined", "member_left", "group_emptied"]


@pytest.mark.parametrize(
    ("kind", "causes"), [("classic", [*DRIVEN, "group_deleted"]), ("cooperative", DRIVEN), ("consumer", DRIVEN)]
)
def test_rebalances_are_those_that_were_driven(told: tuple[Warehouse, dict[str, Driver]], kind: str, causes: list[str]) -> None:
    warehouse, drivers = told
    rows = rows_of(warehouse, "generations", drivers[kind].group)
    handed_over = [row for row in rows if row["cause"] == "partitions_handed_over"]
    # A coordinator may hear of a new topic's partitions when the first member is there already.
    driven = [row for row in rows if row["cause"] not in ("partitions_handed_over", "partitions_changed")]

    assert [row["cause"] for row in driven] == causes
    assert [row["members"] for row in driven] == [1, 2, 1, 2, 1, 0, 0][: len(causes)]
    assert {row["type"] for row in rows} == {"consumer" if kind == "consumer" else "classic"}
    assert bool(handed_over) == (kind == "cooperative"), "cooperative members hand over in a rebalance of its own"
    stable = [row for row in driven if row["cause"] != "group_deleted"]
    assert all(0 <= row["duration_ms"] < PATIENCE_MS for row in stable)
    begins = [before for before, _ in drivers[kind].seen]
    assert all(row["stable_ms"] <= time_ms for row, time_ms in zip(stable, begins, strict=True))


@pytest.mark.parametrize("kind", ["classic", "cooperative", "consumer"])
def test_members_and_assignments_are_those_that_the_clients_had(told: tuple[Warehouse, dict[str, Driver]], kind: str) -> None:
    warehouse, drivers = told
    driver = drivers[kind]
    members, owned = (rows_of(warehouse, table, driver.group) for table in ("member_changes", "assignment_changes"))

    assert {row["topic"] for row in owned} == {driver.topic}, "also where the log only has ids"
    for time_ms, had in driver.seen:
        names = {row["member_id"]: row["client_id"] for row in at(members, time_ms, "member_id")}
        assert sorted(names.values()) == sorted(had)
        found = {name: frozenset[int]() for name in had}
        for row in at(owned, time_ms, "member_id", "topic", "partition"):
            found[names[row["member_id"]]] |= {row["partition"]}
        assert found == had


def reads_and_closes(member: Consumer, committed_s: list[float]) -> None:
    """Read until the last commits came as regularly as their interval says; end soon after one, with something read since.

    How regular they are is up to the machine: a member whose rhythm is broken is told as unknown, and rightly so.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < deadline, committed_s
        member.poll(0.05)
        gaps = [later - earlier for earlier, later in pairwise(committed_s[-RHYTHM - 1 :])]
        is_regular = len(gaps) == RHYTHM and max(gaps) < 1.15 * min(gaps)
        if is_regular and 0.2 * INTERVAL_S < time.monotonic() - committed_s[-1] < 0.4 * INTERVAL_S:
            break
    member.close()


RHYTHM, INTERVAL_S = 5, 1.0


def test_static_members_that_close_have_left(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    """They say nothing: the broker lets them go when their sessions end, as if they had crashed."""
    bootstrap, group, topic = kafka_broker.bootstrap, unique("static"), unique("read")
    create_topic(bootstrap, topic, 2)
    own = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500, "auto.commit.interval.ms": int(INTERVAL_S * 1000)}
    times: dict[str, list[float]] = {name: [] for name in ("one", "two")}
    members = [
        Consumer({
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "group.instance.id": name,
            "on_commit": lambda error, _, told=told: None if error else told.append(time.monotonic()),
            **own,
        })
        for name, told in times.items()
    ]  # fmt: skip
    for member in members:
        member.subscribe([topic])
    poll_until(members, lambda: all(len(member.assignment()) == 1 for member in members))
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(reads_and_closes, *each) for each in zip(members, times.values(), strict=True)]
        while not all(end.done() for end in ends):
            produce(bootstrap, topic, {0: 1, 1: 1})
            time.sleep(0.05)
        assert [end.result() for end in ends] == [None, None]
    wait_until(lambda: run_kgctl(bootstrap, "describe", "group", group, "--members").data == [], "their sessions have ended")

    run_history("collect", tmp_path / "w", "--cluster", CLUSTER, "--bootstrap-server", bootstrap, "--once")
    run_history("build", tmp_path / "w", "--engine", "local")

    *_, last = run_history("rebalances", tmp_path / "w", "--group", group)
    assert (last["cause"], last["inferred"]) == ("group_emptied", ["left", "left"])
