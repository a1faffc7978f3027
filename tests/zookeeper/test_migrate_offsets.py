"""``kgctl migrate-offsets``: from a real ZooKeeper into a cluster in memory; onto Apache Kafka in test_old_kafka."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kgctl.model.groups import MemberDescription, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog
from tests.zookeeper.conftest import ZooKeeperCli, commits, rows, topic

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin.connect import ConnectionSettings

pytestmark = pytest.mark.zookeeper


class MigrationCli(ZooKeeperCli):
    """ZooKeeper is real, the brokers are not."""

    def __init__(self, folder: Path, zookeeper: str, brokers: FakeGroupAdmin) -> None:
        super().__init__(folder, zookeeper)
        self.variables["KGCTL_BOOTSTRAP_SERVER"] = "fake:9092"
        self.brokers = brokers

    def _connect(self, settings: ConnectionSettings) -> GroupAdmin:
        return super()._connect(settings) if settings.zookeeper else self.brokers


@pytest.fixture
def brokers() -> FakeGroupAdmin:
    made = FakeGroupAdmin()
    made.own_cluster_id = "k1"
    made.topic("orders", *(FakeLog(10, 100) for _ in range(3)))
    return made


@pytest.fixture
def cli(tmp_path: Path, zookeeper: str, kazoo: KazooClient, brokers: FakeGroupAdmin) -> MigrationCli:
    topic(kazoo, "orders", 3)
    commits(kazoo, "old", {("orders", 0): 40, ("orders", 1): 50})
    return MigrationCli(tmp_path, zookeeper, brokers)


def test_a_dry_run_then_copied_read_back_and_undone(cli: MigrationCli, brokers: FakeGroupAdmin) -> None:
    line = "migrate-offsets --group old --to-group new"
    dry = cli(f"{line} -o json")
    assert dry.code == 0
    assert rows(dry, "group", "partition", "old_offset", "new_offset", "result") == [
        ("new", 0, None, 40, "planned"),
        ("new", 1, None, 50, "planned"),
    ]
    assert "new" not in brokers.groups
    done = cli(f"{line} --execute -o json")
    assert (done.code, rows(done, "result")) == (0, [("reset",), ("reset",)])
    assert "Read back: 2 partitions of 1 group as copied." in done.err
    assert brokers.commits("new") == {("orders", 0): 40, ("orders", 1): 50}
    file = cli("--bootstrap-server fake:9092 undo -o json").data[0]["id"]
    assert cli(f"--bootstrap-server fake:9092 undo {file} --execute").code == 0
    assert brokers.commits("new") == {}


def test_offsets_outside_of_the_new_log_are_brought_into_it(cli: MigrationCli, kazoo: KazooClient) -> None:
    commits(kazoo, "old", {("orders", 2): 500})
    assert rows(cli("migrate-offsets old -o json"), "partition", "new_offset") == [(0, 40), (1, 50), (2, 100)]
    assert cli("migrate-offsets old --no-clamp --execute").code == 1


def test_it_is_refused_while_the_old_group_runs(cli: MigrationCli, kazoo: KazooClient, brokers: FakeGroupAdmin) -> None:
    kazoo.create("/consumers/old/ids/x", b'{"subscription":{"orders":1}}', ephemeral=True, makepath=True)
    dry = cli("migrate-offsets old")
    assert (dry.code, "is active in ZooKeeper (1 instance)" in dry.err) == (0, True)
    assert cli("migrate-offsets old --execute").code == 5
    assert "old" not in brokers.groups


def test_it_is_refused_while_the_new_group_is_active(cli: MigrationCli, brokers: FakeGroupAdmin) -> None:
    brokers.group("new", {}, [MemberDescription("m", assignment={"orders": (0,)})])
    assert cli("migrate-offsets old --to-group new --execute").code == 5
    assert brokers.commits("new") == {}


def test_an_old_consumer_that_begins_meanwhile_is_told(cli: MigrationCli, kazoo: KazooClient, brokers: FakeGroupAdmin) -> None:
    def begin() -> None:
        kazoo.create("/consumers/old/ids/x", b'{"subscription":{"orders":1}}', ephemeral=True, makepath=True)
        kazoo.set("/consumers/old/offsets/orders/0", b"41")

    brokers.before_alter = begin
    ran = cli("migrate-offsets old --execute -o json")
    assert ran.code == 3
    assert [(error["code"], error["message"]) for error in ran.json["errors"]] == [
        ("NON_EMPTY_GROUP", "group 'old' is active: 1 instance is running; stop its consumers first"),
        ("NOT_VERIFIED", "group 'old', orders-0: 40 was copied, 41 is committed now"),
    ]


def test_what_cannot_be_read_is_named_and_the_rest_copied(cli: MigrationCli, kazoo: KazooClient, brokers: FakeGroupAdmin) -> None:
    kazoo.set("/consumers/old/offsets/orders/1", b"x")
    ran = cli("migrate-offsets old nope --execute -o json")
    assert ran.code == 3
    assert sorted(error["code"] for error in ran.json["errors"]) == ["GROUP_ID_NOT_FOUND", "MALFORMED_NODE"]
    assert brokers.commits("old") == {("orders", 0): 40}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("migrate-offsets old --bootstrap-server b:1", "kgctl migrate-offsets needs --zookeeper: where the groups are"),
        ("migrate-offsets old --zookeeper z:1", "kgctl migrate-offsets needs --bootstrap-server: where they go"),
        ("migrate-offsets a b --to-group c", "--to-group 'c' is one group for several: write {group} where the old name belongs"),
        ("migrate-offsets old --execute --dry-run", "--execute and --dry-run exclude each other"),
        ("migrate-offsets", "no group is named: give group ids, --match REGEX or --all-groups"),
    ],
)
def test_usage(cli: MigrationCli, line: str, message: str) -> None:
    ran = cli(line)
    assert (ran.code, ran.err) == (2, f"kgctl: {message}\n")


def test_many_groups_are_asked_for(cli: MigrationCli, kazoo: KazooClient, brokers: FakeGroupAdmin) -> None:
    commits(kazoo, "older", {("orders", 0): 11})
    assert cli("migrate-offsets --match ^old --execute").code == 1
    assert brokers.groups == {}
    assert cli("migrate-offsets --all-groups --to-group k-{group} --execute --yes").code == 0
    assert {name: brokers.commits(name)["orders", 0] for name in brokers.groups} == {"k-old": 40, "k-older": 11}
    assert TopicPartition("orders", 0) in brokers.groups["k-old"].offsets
