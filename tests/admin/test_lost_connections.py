"""Connections that are lost cost time and nothing else: by chance at every frame, all at once, while brokers are restarted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.harness import Cli
from tests.support.kafka import create_topic, produce, unique
from tests.support.kafka.lossy import LossyCluster
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

GROUPS = 60
LEARNT_S = 1.0
"""By then followers know what is committed (``replica.fetch.wait.max.ms`` is 500): one that becomes coordinator before knows a
group as it was until then, or not at all."""


class Fleet:
    """Groups with the same two commits each, of whose topic each partition has ten records; ``cli`` comes by the proxies."""

    def __init__(self, cluster: LossyCluster, folder: Path) -> None:
        self.cluster = cluster
        self.prefix = unique("fleet")
        self.topic = create_topic(cluster.bootstrap, unique("fleet"), 2, replication=3)
        produce(cluster.bootstrap, self.topic, {0: 10, 1: 10})
        self.places = [TopicPartition(self.topic, number) for number in (0, 1)]
        self.groups = [f"{self.prefix}-{number:02}" for number in range(GROUPS)]
        self.commit(4)
        time.sleep(LEARNT_S)
        self.cli = Cli(folder)
        self.cli.connect = connect
        self.cli.variables["KGCTL_BOOTSTRAP_SERVER"] = cluster.lossy_bootstrap

    def commit(self, offset: int) -> None:
        with connect(ConnectionSettings(self.cluster.bootstrap)) as admin:
            for group in self.groups:
                assert not admin.alter_offsets(group, dict.fromkeys(self.places, OffsetAndMetadata(offset))).errors

    def offsets(self) -> set[int]:
        with connect(ConnectionSettings(self.cluster.bootstrap)) as admin:
            found = admin.list_committed_offsets(self.groups)
        assert not found.errors
        return {commit.offset for offsets in found.values.values() for commit in offsets.values()}

    def lags(self, line: str, each: int) -> set[int]:
        """A row for each of so many; of commits that are a moment old the one before may be shown, and never nothing."""
        ran = self.cli(f"{line} -o json")
        found = {row["lag"] for row in ran.data}
        assert (ran.code, len(ran.data), found <= {each, each // 2}) == (0, 2 if each == 6 else GROUPS, True), (ran.data, ran.err)
        return found

    @staticmethod
    def eventually(is_so: Callable[[], bool]) -> None:
        """A coordinator that has just been handed groups knows the last of them some 100 ms later; the one before, what was."""
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s

    def check(self) -> None:
        """Each of the three things that operators do."""
        self.eventually(lambda: self.lags(f"describe group {self.groups[7]}", 6) == {6})
        self.eventually(lambda: self.lags(f"list groups --match {self.prefix} --lag", 12) == {12})
        ran = self.cli(f"reset-offsets --match {self.prefix} --all-topics --to-offset 7 --execute --yes --no-backup -o json")
        assert (ran.code, {row["result"] for row in ran.data}) == (0, {"reset"}), ran.err
        self.eventually(lambda: self.offsets() == {7})
        self.commit(4)


@pytest.fixture
def fleet(lossy_kafka_brokers: LossyCluster, tmp_path: Path) -> Iterator[Fleet]:
    yield Fleet(lossy_kafka_brokers, tmp_path)
    lossy_kafka_brokers.lose(0.0)


@pytest.mark.parametrize(
    ("chance", "times"),
    [(0.02, 3), pytest.param(0.02, 30, marks=pytest.mark.deep), pytest.param(0.1, 5, marks=pytest.mark.deep)],
)
def test_frames_that_close_their_connection_by_chance(fleet: Fleet, chance: float, times: int) -> None:
    fleet.cluster.lose(chance)
    for _ in range(times):
        fleet.check()
    assert sum(proxy.lost for proxy in fleet.cluster.proxies) >= times


@pytest.mark.deep
def test_in_the_worst_of_networks_a_command_ends_in_its_time_and_tells_what_is(fleet: Fleet) -> None:
    """At 15 % a command is over within ``--timeout``, and what a change says of each group is so."""
    fleet.cluster.lose(0.15)
    limit_s, slack_s = 6, 1
    for line in (f"describe group {fleet.groups[7]}", f"list groups --match {fleet.prefix} --lag"):
        for _ in range(5):
            begun_s = time.monotonic()
            ran = fleet.cli(f"--timeout {limit_s} {line} -o json")
            assert (time.monotonic() - begun_s < limit_s + slack_s, ran.code in (0, 1, 3, 7)) == (True, True), ran.err
            assert {row["lag"] for row in ran.data} <= {None, 6, 12}
    for _ in range(5):
        begun_s = time.monotonic()
        line = f"reset-offsets --match {fleet.prefix} --all-topics --to-offset 7 --execute --yes --no-backup -o json"
        ran = fleet.cli(f"--timeout {limit_s} {line}")
        print(f"reset: {time.monotonic() - begun_s:.1f} s, exit code {ran.code}")
        assert time.monotonic() - begun_s < limit_s + slack_s
        told = {(row["group"], row["partition"]): row["result"] for row in ran.data}
        fleet.cluster.lose(0.0)
        with connect(ConnectionSettings(fleet.cluster.bootstrap)) as admin:
            found = admin.list_committed_offsets(fleet.groups).values
        now = {(group, place.partition): commit.offset for group, offsets in found.items() for place, commit in offsets.items()}
        assert {key: now[key] for key, result in told.items() if result == "reset"} == dict.fromkeys(
            (key for key, result in told.items() if result == "reset"), 7
        )
        assert all(now[key] == 4 for key, result in told.items() if result in ("failed", "not-tried"))
        fleet.commit(4)
        fleet.cluster.lose(0.15)


def test_a_command_that_looks_again_and_again_notices_nothing(fleet: Fleet) -> None:
    """All connections are closed between two looks, as a NAT closes idle ones."""
    with broken_all_the_time(fleet.cluster):
        ran = fleet.cli(f"top --match {fleet.prefix} --iterations 8 --interval 200ms -o json")
    assert (ran.code, [row["lag"] for row in ran.data]) == (0, [12] * GROUPS), ran.err


@contextmanager
def broken_all_the_time(cluster: LossyCluster) -> Iterator[None]:
    over = threading.Event()

    def run() -> None:
        while not over.wait(0.15):
            for proxy in cluster.proxies:
                proxy.break_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.deep
def test_a_rolling_restart(fleet: Fleet) -> None:
    """Brokers are started by the thread of the test alone; commands run beside it."""
    over, failed, done = threading.Event(), [], 0

    def work() -> None:
        nonlocal done
        try:
            while not over.is_set():
                fleet.check()
                done += 1
        except BaseException as error:  # noqa: BLE001 - told in the thread of the test
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for broker in fleet.cluster.brokers[::-1]:
            broker.stop()
            broker.start()
            fleet.cluster.recover()
    finally:
        over.set()
        thread.join()
    assert (failed, done > 0) == ([], True)
