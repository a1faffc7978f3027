"""``kgctl serve --brokers 3`` with one broker stopped: kgctl's own commands find the right broker, and say what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kgctl.model.values import partition_for
from kgctl.server.background import BackgroundServer
from tests.support.kafka import commit, produce
from tests.support.kafka.kgctl import KgctlRun, run_kgctl

pytestmark = pytest.mark.interop

GROUPS = [f"group-{number}" for number in range(9)]
STOPPED = 2
COMMITTED, RECORDS = 1, 4


def coordinator(group: str) -> int:
    return partition_for(group, 50) % 3 + 1


GONE = [group for group in GROUPS if coordinator(group) == STOPPED]
LEFT = [group for group in GROUPS if coordinator(group) != STOPPED]


@dataclass(frozen=True)
class Cluster:
    """Three brokers, and commits of every group on a partition of each broker."""

    server: BackgroundServer

    def kgctl(self, *arguments: str, code: int) -> KgctlRun:
        """kgctl, told only of the first broker; it looks for a coordinator that is gone for half of its time."""
        return run_kgctl(self.server.bootstrap.split(",")[0], "--timeout", "8", *arguments, code=code)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with BackgroundServer(topics={"orders": 3}, config={"group.initial.rebalance.delay.ms": "0"}, brokers=3) as server:
        produce(server.bootstrap, "orders", dict.fromkeys(range(3), RECORDS))
        for group in GROUPS:
            commit(server.bootstrap, group, {("orders", number): COMMITTED for number in range(3)})
        yield Cluster(server)


@pytest.fixture
def crippled(cluster: Cluster) -> Cluster:
    cluster.server.run(cluster.server.server.stop_broker(STOPPED))
    return cluster


def test_groups_are_found_at_their_brokers(cluster: Cluster) -> None:
    rows = cluster.kgctl("list", "groups", code=0).data

    assert {row["group"]: row["coordinator_id"] for row in rows} == {group: coordinator(group) for group in GROUPS}
    assert len({row["coordinator"] for row in rows}) == 3


def test_a_list_without_a_broker_is_partial_and_names_it(crippled: Cluster) -> None:
    run = crippled.kgctl("list", "groups", code=3)
    answer = json.loads(run.out)

    assert [row["group"] for row in answer["data"]] == LEFT
    assert answer["status"] == "partial"
    assert [error["code"] for error in answer["errors"]] == ["COORDINATOR_NOT_AVAILABLE"]
    assert "broker 2 down: groups on 17 of 50 partitions of __consumer_offsets" in run.err


def test_groups_without_a_coordinator_are_named_and_the_others_described(crippled: Cluster) -> None:
    run = crippled.kgctl("describe", "group", *GROUPS, "--state", code=3)
    answer = json.loads(run.out)

    assert [row["group"] for row in answer["data"]] == LEFT
    assert [(error["group"], error["code"]) for error in answer["errors"]] == [
        (group, "COORDINATOR_NOT_AVAILABLE") for group in GONE
    ]


def test_lag_of_partitions_without_a_leader_is_unknown_and_said(crippled: Cluster) -> None:
    run = crippled.kgctl("describe", "group", LEFT[0], code=3)
    rows = {row["partition"]: row["lag"] for row in run.data}
    missing = [number for number, lag in rows.items() if lag is None]

    assert sorted(lag for lag in rows.values() if lag is not None) == [RECORDS - COMMITTED] * 2
    assert [f"orders-{number} has no leader" in run.err for number in missing] == [True]


def test_changes_reach_the_groups_that_have_a_coordinator(crippled: Cluster) -> None:
    run = crippled.kgctl("delete-groups", GONE[0], LEFT[0], "--yes", code=3)

    assert GONE[0] in run.err
    assert [row["group"] for row in crippled.kgctl("list", "groups", code=3).data] == LEFT[1:]


def test_a_broker_that_is_back_has_its_groups(crippled: Cluster) -> None:
    crippled.server.run(crippled.server.server.start_broker(STOPPED))

    assert [row["group"] for row in crippled.kgctl("list", "groups", code=0).data] == GROUPS
    assert {row["lag"] for row in crippled.kgctl("describe", "group", GONE[0], code=0).data} == {RECORDS - COMMITTED}
