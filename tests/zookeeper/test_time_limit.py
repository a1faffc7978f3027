"""``--timeout`` is for all that a command asks of ZooKeeper: a slow server costs rows, and no more time than that."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kgctl.admin.zookeeper.connection import Operation, ZooKeeperSession
from tests.cli.harness import Ran
from tests.support.wire.lossy import LossyProxy
from tests.zookeeper.conftest import ZooKeeperCli, commits, offsets_of, topic

pytestmark = pytest.mark.zookeeper

GROUPS = [f"g{number:02}" for number in range(24)]
LIMIT_S, SLACK_S = 2, 1


@pytest.fixture
def slow(zookeeper: str, kazoo: KazooClient) -> Iterator[LossyProxy]:
    """Groups, behind a proxy that passes all on (ZooKeeper's frames are cut as Kafka's)."""
    topic(kazoo, "orders", 1)
    for group in GROUPS:
        commits(kazoo, group, {("orders", 0): 10})
    host, _, port = zookeeper.partition("/")[0].rpartition(":")
    with LossyProxy(lambda: (host, int(port))) as proxy:
        yield proxy


@pytest.fixture
def behind(tmp_path: Path, zookeeper: str, slow: LossyProxy) -> ZooKeeperCli:
    return ZooKeeperCli(tmp_path, f"{slow.address}/{zookeeper.partition('/')[2]}")


def in_time(cli: ZooKeeperCli, line: str) -> Ran:
    begun_s = time.monotonic()
    ran = cli(f"--timeout {LIMIT_S}s {line} -o json")
    assert time.monotonic() - begun_s < LIMIT_S + SLACK_S
    return ran


def test_a_look_at_a_slow_server_ends_in_its_time(behind: ZooKeeperCli, slow: LossyProxy) -> None:
    slow.delay_s = 0.25
    ran = in_time(behind, "describe group g01 g02 g03")
    assert (ran.code, ran.data) == (7, []), ran.err
    assert f"(--timeout: {LIMIT_S} s)" in ran.err or "in time" in ran.err


def test_a_change_that_goes_well_takes_nothing_of_the_time(behind: ZooKeeperCli, slow: LossyProxy, kazoo: KazooClient) -> None:
    slow.delay_s = 0.01
    begun_s = time.monotonic()
    ran = behind(f"--timeout {LIMIT_S}s reset-offsets --match ^g --all-topics --to-offset 5 --execute --yes --no-backup -o json")
    assert (ran.code, {row["result"] for row in ran.data}) == (0, {"reset"}), ran.err
    assert {offsets_of(kazoo, group)["orders", 0] for group in GROUPS} == {5}
    ran = behind(f"--timeout {LIMIT_S}s delete-groups --match ^g --yes --no-backup -o json")
    assert (ran.code, len(ran.data), kazoo.get_children("/consumers")) == (0, len(GROUPS), []), ran.err
    assert time.monotonic() - begun_s > LIMIT_S, "the machine is too quick for this test"


@pytest.mark.parametrize("line", ["reset-offsets --match ^g --all-topics --to-offset 5 --execute", "delete-groups --match ^g"])
def test_a_server_that_slows_down_ends_a_change_in_its_time_with_what_is(
    behind: ZooKeeperCli, slow: LossyProxy, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    seen: list[int] = []
    real = ZooKeeperSession.transact

    def transact(self: ZooKeeperSession, operations: Sequence[Operation]) -> None:
        seen.append(len(operations))
        slow.delay_s = 0.2 if len(seen) > 3 else 0.0
        real(self, operations)

    monkeypatch.setattr(ZooKeeperSession, "transact", transact)
    ran = in_time(behind, f"{line} --yes --no-backup")
    slow.delay_s = 0.0
    told: dict[str, set[str]] = {}
    for row in ran.data:
        told.setdefault(row["result"], set()).add(row["group"])
    now = {group: next(iter(offsets_of(kazoo, group).values()), None) for group in GROUPS}
    assert len(told.get("reset", told.get("deleted", ()))) >= 3
    assert {now[group] for group in told.get("reset", ())} <= {5}
    assert {now[group] for group in told.get("deleted", ())} <= {None}
    assert {now[group] for group in (*told.get("failed", ()), *told["not-tried"])} == {10}
    assert ran.code == 3, ran.err
