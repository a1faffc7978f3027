"""The commands on groups in ZooKeeper, which plain kazoo wrote."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from kgctl.admin import GroupResults
from kgctl.admin.zookeeper.admin import ZooKeeperGroupAdmin
from kgctl.extras import install_line
from kgctl.model.groups import GroupDescription
from tests.support.patience import PATIENCE_S
from tests.zookeeper.conftest import ZooKeeperCli, commits, offsets_of, rows, topic

pytestmark = pytest.mark.zookeeper

STATIC = b'{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":1500000000}'
HOST = "worker-1:0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.fixture(autouse=True)
def groups(kazoo: KazooClient) -> None:
    """``payments`` is empty, with 100 and 50 on orders; ``audit`` runs with one instance that has orders-0."""
    topic(kazoo, "orders", 3)
    commits(kazoo, "payments", {("orders", 0): 100, ("orders", 1): 50})
    commits(kazoo, "audit", {("orders", 0): 7})
    kazoo.create(f"/consumers/audit/ids/{HOST}", STATIC, ephemeral=True, makepath=True)
    kazoo.create("/consumers/audit/owners/orders/0", HOST.encode(), ephemeral=True, makepath=True)


def test_groups_are_listed_with_the_state_that_running_instances_give(cli: ZooKeeperCli) -> None:
    assert rows(cli("list groups -o json"), "group", "state", "type") == [
        ("audit", "Stable", "zookeeper"),
        ("payments", "Empty", "zookeeper"),
    ]
    assert rows(cli("list groups --state empty -o json"), "group") == [("payments",)]
    assert rows(cli("list groups --type consumer -o json"), "group") == []
    assert rows(cli("list groups --lag -o json"), "group", "partitions", "lag") == [("audit", 1, None), ("payments", 2, None)]


def test_describe_shows_offsets_owners_and_no_lag_without_brokers(cli: ZooKeeperCli) -> None:
    ran = cli("describe group audit payments -o json")
    assert ran.code == 0
    assert rows(ran, "group", "partition", "current_offset", "lag", "consumer_id", "host") == [
        ("audit", 0, 7, None, HOST, "worker-1"),
        ("audit", 1, None, None, None, None),
        ("audit", 2, None, None, None, None),
        ("payments", 0, 100, None, None, None),
        ("payments", 1, 50, None, None, None),
        ("payments", 2, None, None, None, None),
    ]


def test_describe_shows_members_with_their_subscription(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    topic(kazoo, "offers", 1)
    topic(kazoo, "users", 1)
    kazoo.create("/consumers/audit/ids/w", b'{"version":1,"subscription":{"o.*":2},"pattern":"white_list","timestamp":"1"}')
    ran = cli("describe group audit --members -o json")
    assert rows(ran, "consumer_id", "partitions", "assignment", "subscribed_topics") == [
        ("w", 0, None, ["offers", "orders"]),
        (HOST, 1, "orders:0", ["orders"]),
    ]
    assert rows(cli("describe group audit --state -o json"), "state", "type", "members") == [("Stable", "zookeeper", 2)]


def test_unknown_group_is_not_found_beside_the_others(cli: ZooKeeperCli) -> None:
    assert cli("describe group nope").code == 4
    ran = cli("describe group nope payments -o json")
    assert ran.code == 3
    assert {row["group"] for row in ran.data} == {"payments"}


def test_malformed_nodes_are_named_and_the_rest_is_shown(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    kazoo.set("/consumers/payments/offsets/orders/1", b"seven")
    kazoo.create("/consumers/payments/ids/x", b"{", ephemeral=True, makepath=True)
    ran = cli("describe group payments -o json")
    assert ran.code == 3
    assert rows(ran, "partition", "current_offset") == [(0, 100), (1, None), (2, None)]
    assert [(error["code"], error["group"], error["partition"], error["message"]) for error in ran.json["errors"]] == [
        ("MALFORMED_NODE", "payments", None, "/consumers/payments/ids/x: '{' is not JSON"),
        ("MALFORMED_NODE", "payments", 1, "/consumers/payments/offsets/orders/1: 'seven' is not an offset"),
    ]


def test_a_partition_whose_offset_cannot_be_read_is_not_reset(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    kazoo.set("/consumers/payments/offsets/orders/1", b"seven")
    ran = cli("reset-offsets payments --topic orders --to-offset 3 --execute -o json")
    assert ran.code == 3
    assert rows(ran, "partition", "result") == [(0, "reset"), (1, "failed"), (2, "reset")]
    assert kazoo.get("/consumers/payments/offsets/orders/1")[0] == b"seven"


def test_reset_is_a_dry_run_then_done_and_undone(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    before = offsets_of(kazoo, "payments")
    dry = cli("reset-offsets payments --topic orders --to-offset 5 -o json")
    assert rows(dry, "partition", "old_offset", "new_offset", "result") == [
        (0, 100, 5, "planned"),
        (1, 50, 5, "planned"),
        (2, None, 5, "planned"),
    ]
    assert offsets_of(kazoo, "payments") == before
    done = cli(f"reset-offsets payments --topic orders --to-offset 5 --execute --backup {cli.folder}/b.csv -o json")
    assert (done.code, rows(done, "result")) == (0, [("reset",)] * 3)
    assert offsets_of(kazoo, "payments") == {("orders", 0): 5, ("orders", 1): 5, ("orders", 2): 5}
    undone = cli(f"reset-offsets --from-file {cli.folder}/b.csv --execute -o json")
    assert (undone.code, rows(undone, "result")) == (0, [("reset",), ("reset",), ("deleted",)])
    assert offsets_of(kazoo, "payments") == before


def test_five_hundred_partitions_are_reset_and_undone(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    topic(kazoo, "wide", 500)
    before = {("wide", number): 1_000 + number for number in range(500)}
    commits(kazoo, "big", before)
    done = cli(f"reset-offsets big --all-topics --shift-by -10 --execute --backup {cli.folder}/b.csv -o json")
    assert (done.code, {row["result"] for row in done.data}) == (0, {"reset"})
    assert offsets_of(kazoo, "big") == {key: offset - 10 for key, offset in before.items()}
    assert cli(f"reset-offsets --from-file {cli.folder}/b.csv --execute").code == 0
    assert offsets_of(kazoo, "big") == before


def test_kgctl_undo_brings_back_what_a_reset_and_a_deletion_took_away(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    before = offsets_of(kazoo, "payments")
    for line in ("reset-offsets payments --all-topics --to-offset 5 --execute", "delete-offsets payments --topic orders --yes"):
        assert cli(line).code == 0
        assert offsets_of(kazoo, "payments") != before
        file = next(row["id"] for row in cli("undo -o json").data if row["id"].endswith(line.split()[0]))
        assert cli(f"undo {file} --execute").code == 0
        assert offsets_of(kazoo, "payments") == before


def test_an_undo_file_of_the_kafka_cluster_is_not_for_its_zookeeper(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    assert cli("reset-offsets payments --all-topics --to-offset 5 --execute").code == 0
    file = cli("undo -o json").data[0]["id"]
    kazoo.create("/cluster/id", b'{"version":"1","id":"abc"}', makepath=True)
    assert cli(f"undo {file} --execute").code == 5
    assert set(offsets_of(kazoo, "payments").values()) == {5}


@pytest.mark.parametrize("target", ["--to-earliest", "--to-latest", "--by-duration PT1H", "--to-offset 5 --no-clamp"])
def test_targets_that_need_the_log_fail_without_brokers(cli: ZooKeeperCli, kazoo: KazooClient, target: str) -> None:
    ran = cli(f"reset-offsets payments --topic orders:0 {target} --execute -o json")
    assert (ran.code, rows(ran, "result")) == (1, [("failed",)])
    assert offsets_of(kazoo, "payments")["orders", 0] == 100


def test_reset_and_deletion_are_refused_while_an_instance_runs(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    for line in ("reset-offsets audit --all-topics --to-offset 1 --execute", "delete-groups audit --yes"):
        assert cli(line).code == 5
    ran = cli("delete-offsets audit --topic orders --yes -o json")
    assert (ran.code, ran.json["errors"][0]["code"]) == (5, "GROUP_SUBSCRIBED_TO_TOPIC")
    assert offsets_of(kazoo, "audit") == {("orders", 0): 7}


def test_groups_and_offsets_are_deleted(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    assert cli("delete-offsets payments --topic orders:1 --yes").code == 0
    assert offsets_of(kazoo, "payments") == {("orders", 0): 100}
    ran = cli("delete-groups payments audit nope --yes -o json")
    assert ran.code == 3
    assert rows(ran, "group", "result", "error") == [
        ("payments", "deleted", None),
        ("audit", "failed", "NON_EMPTY_GROUP"),
        ("nope", "failed", "GROUP_ID_NOT_FOUND"),
    ]
    assert kazoo.get_children("/consumers") == ["audit"]


def test_offsets_of_a_topic_that_no_instance_reads_are_deleted_while_it_runs(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    topic(kazoo, "users", 1)
    commits(kazoo, "audit", {("users", 0): 3})
    assert cli("delete-offsets audit --topic users --yes").code == 0
    assert offsets_of(kazoo, "audit") == {("orders", 0): 7}
    assert kazoo.get_children("/consumers/audit/offsets") == ["orders"]


def test_what_may_not_be_read_or_changed_is_exit_code_8(cli: ZooKeeperCli, kazoo: KazooClient) -> None:
    read_only = [make_acl("world", "anyone", read=True)]
    kazoo.set_acls("/consumers/payments/offsets/orders/0", read_only)
    ran = cli("reset-offsets payments --topic orders:0,1 --to-offset 1 --execute -o json")
    assert rows(ran, "partition", "result") == [(0, "failed"), (1, "reset")]
    assert cli("reset-offsets payments --topic orders:0 --to-offset 1 --execute").code == 8
    kazoo.set_acls("/consumers/payments/offsets", [make_acl("world", "anyone", write=True)])
    assert cli("describe group payments").code == 8


def test_members_cannot_be_removed(cli: ZooKeeperCli) -> None:
    ran = cli(f"remove-members audit --member {HOST} --yes")
    assert ran.code == 1
    assert "leaves when its consumer is stopped" in ran.err


def test_no_connection_within_the_time_limit_is_exit_code_7(cli: ZooKeeperCli) -> None:
    ran = cli("--zookeeper 127.0.0.1:9 --timeout 300ms list groups")
    within = r"0\.\d+ s \(--timeout: 0\.3 s\)"  # a part of what is left by then
    told = rf"kgctl: ZooKeeper at 127\.0\.0\.1:9 cannot be reached within {within}: Connection refused\n"
    assert (ran.code, bool(re.fullmatch(told, ran.err))) == (7, True), ran.err


@pytest.mark.parametrize(
    "address", ["", "h:x", "h:0", "h:99999", ":2181", "h:2181,", "h1/a,h2/a", "h/a//b", "h/../b", "zk://h:2181"]
)
def test_addresses_that_cannot_be_are_exit_code_2(cli: ZooKeeperCli, address: str) -> None:
    ran = cli.run(["--zookeeper", address, "list", "groups"])
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_the_chroot_that_is_not_there_is_named(cli: ZooKeeperCli, zookeeper: str) -> None:
    ran = cli(f"--zookeeper {zookeeper}/nowhere list groups")
    assert ran.code == 4
    assert "/nowhere" in ran.err


def test_without_kazoo_one_line_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['kazoo'] = None; from kgctl.cli.app import run_process; sys.exit(run_process(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "--zookeeper", "127.0.0.1:9", "list", "groups"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (2, f"kgctl: a connection to ZooKeeper needs kazoo: {install_line('zookeeper')}\n")


def after_first_look(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call ``act`` once the groups have been described for the first time."""
    real = ZooKeeperGroupAdmin.describe_groups
    acts = [act]

    def describe_groups(self: ZooKeeperGroupAdmin, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        found = real(self, group_ids)
        while acts:
            acts.pop()()
        return found

    monkeypatch.setattr(ZooKeeperGroupAdmin, "describe_groups", describe_groups)


@pytest.mark.parametrize("group", ["payments", "audit"])
def test_an_instance_that_registers_while_a_group_is_watched_is_shown_at_once(
    cli: ZooKeeperCli, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    def register() -> None:
        kazoo.create(f"/consumers/{group}/ids/late", STATIC, ephemeral=True, makepath=True)

    after_first_look(monkeypatch, register)
    began = time.monotonic()
    ran = cli(f"describe group {group} --members --watch --interval {PATIENCE_S:g}s --iterations 2")
    assert time.monotonic() - began < PATIENCE_S
    first, second = ran.out.split("\n\n")
    assert (ran.code, "late" in first, "late" in second) == (0, False, True)


@pytest.mark.parametrize("partition", [0, 1])
def test_a_claim_that_changes_while_a_group_is_watched_is_shown_at_once(
    cli: ZooKeeperCli, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch, partition: int
) -> None:
    path = f"/consumers/audit/owners/orders/{partition}"
    claims = (lambda: kazoo.delete(path)) if partition == 0 else (lambda: kazoo.create(path, HOST.encode(), ephemeral=True))
    after_first_look(monkeypatch, claims)
    began = time.monotonic()
    ran = cli(f"describe group audit --members --watch --interval {PATIENCE_S:g}s --iterations 2 -o json")
    assert time.monotonic() - began < PATIENCE_S
    assert rows(ran, "partitions", "assignment") == [(2 * partition, "orders:0,1" if partition else None)]


@pytest.mark.parametrize("line", ["delete-groups payments --dry-run", "delete-offsets payments --topic orders --dry-run"])
def test_deleting_names_the_nodes_that_hold_no_offset(cli: ZooKeeperCli, kazoo: KazooClient, line: str) -> None:
    kazoo.set("/consumers/payments/offsets/orders/1", b"many")
    ran = cli(f"{line} -o json")
    assert ran.code == 3, ran.err
    assert [error["partition"] for error in ran.json["errors"]] == [1]
    assert [row["result"] for row in ran.data] == ["deletable"] * len(ran.data)


def test_there_is_no_history_of_such_groups(cli: ZooKeeperCli) -> None:
    ran = cli("reset-offsets payments --to-history 2024-01-01")
    assert ran.code != 0
    assert "there is no history of groups in ZooKeeper" in ran.err
