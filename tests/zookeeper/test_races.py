"""What others do between two steps of kgctl: instances that come and go, offsets that change, sessions and servers that end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kgctl.admin.zookeeper import ChangedMeanwhileError, RunningInstancesError
from kgctl.admin.zookeeper.admin import ZooKeeperGroupAdmin, open_zookeeper
from kgctl.admin.zookeeper.connection import Answers, Operation, ZooKeeperSession
from kgctl.admin.zookeeper.registry import Registry
from kgctl.errors import UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, OffsetAndMetadata, TopicPartition
from tests.support.patience import PATIENCE_MS, PATIENCE_S
from tests.support.zookeeper import ZooKeeperServer
from tests.zookeeper.conftest import ZooKeeperCli, commits, offsets_of, topic

pytestmark = pytest.mark.zookeeper

REGISTRATION = b'{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":1}'
ORDERS = [TopicPartition("orders", number) for number in range(3)]


@pytest.fixture
def admin(zookeeper: str, kazoo: KazooClient) -> Iterator[ZooKeeperGroupAdmin]:
    topic(kazoo, "orders", 3)
    commits(kazoo, "payments", {("orders", number): 10 for number in range(3)})
    with open_zookeeper(zookeeper, {}, PATIENCE_MS) as made:
        yield made


def before_transaction(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> list[int]:
    """Call ``act`` with the number of each attempt just before it is sent; returns the attempts made."""
    attempts: list[int] = []
    real = ZooKeeperSession.transact

    def transact(self: ZooKeeperSession, operations: Sequence[Operation]) -> None:
        attempts.append(len(attempts))
        act(attempts[-1])
        real(self, operations)

    monkeypatch.setattr(ZooKeeperSession, "transact", transact)
    return attempts


def after_listing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call ``act`` once, after the first listing of names, before what they name is read."""
    real = ZooKeeperSession.children_many
    done: list[bool] = []

    def children_many(self: ZooKeeperSession, paths: Sequence[str]) -> Answers[list[str]]:
        found = real(self, paths)
        if not done and any(path.endswith("/ids") for path in paths):
            done.append(True)
            act()
        return found

    monkeypatch.setattr(ZooKeeperSession, "children_many", children_many)


def to(offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return dict.fromkeys(ORDERS, OffsetAndMetadata(offset))


def test_an_instance_that_goes_between_two_reads_is_left_out(
    admin: ZooKeeperGroupAdmin, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    kazoo.create("/consumers/payments/ids/x", REGISTRATION, ephemeral=True, makepath=True)
    kazoo.create("/consumers/payments/owners/orders/0", b"x", ephemeral=True, makepath=True)

    def die() -> None:
        kazoo.delete("/consumers/payments/ids/x")
        kazoo.delete("/consumers/payments/owners/orders/0")

    after_listing(monkeypatch, die)
    found = admin.describe_groups(["payments"])
    assert (found.status, found.values["payments"].state, found.values["payments"].members) == ("ok", GroupState.EMPTY, ())


def test_a_group_that_goes_between_two_reads_is_no_error_of_the_others(
    admin: ZooKeeperGroupAdmin, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits(kazoo, "other", {("orders", 0): 1})
    after_listing(monkeypatch, lambda: kazoo.delete("/consumers/other", recursive=True))
    assert [group for group in admin.list_groups().values if group == "payments"] == ["payments"]


@pytest.mark.parametrize("there", [False, True])
def test_an_instance_that_begins_before_the_write_has_it_refused(
    admin: ZooKeeperGroupAdmin, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        kazoo.ensure_path("/consumers/payments/ids")

    def begin(attempt: int) -> None:
        if not attempt:
            kazoo.create("/consumers/payments/ids/x", REGISTRATION, ephemeral=True, makepath=True)

    before_transaction(monkeypatch, begin)
    results = admin.alter_offsets("payments", to(5))
    assert {error.code for error in results.errors.values()} == {ErrorCode.NON_EMPTY_GROUP}
    assert set(offsets_of(kazoo, "payments").values()) == {10}


def test_an_instance_that_begins_before_the_deletion_has_it_refused(
    admin: ZooKeeperGroupAdmin, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    kazoo.ensure_path("/consumers/payments/ids")
    before_transaction(
        monkeypatch, lambda _: kazoo.create("/consumers/payments/ids/x", REGISTRATION, ephemeral=True, makepath=True)
    )
    assert admin.delete_groups(["payments"]).errors["payments"].code is ErrorCode.NON_EMPTY_GROUP
    assert set(offsets_of(kazoo, "payments").values()) == {10}


def test_an_offset_that_changes_before_the_write_is_read_again(
    admin: ZooKeeperGroupAdmin, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(attempt: int) -> None:
        if attempt < 3:
            kazoo.set("/consumers/payments/offsets/orders/1", str(attempt).encode())

    attempts = before_transaction(monkeypatch, change)
    assert admin.alter_offsets("payments", to(5)).status == "ok"
    assert len(attempts) == 4
    assert set(offsets_of(kazoo, "payments").values()) == {5}


def test_an_offset_that_changes_all_the_time_is_a_clear_error_and_nothing_is_half_written(
    zookeeper: str, admin: ZooKeeperGroupAdmin, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_transaction(monkeypatch, lambda number: kazoo.set("/consumers/payments/offsets/orders/1", b"%d" % (100 + number)))
    errors = admin.alter_offsets("payments", to(5)).errors
    assert {error.message for error in errors.values()} == {
        "group 'payments' was changed by others at each of 10 attempts to write"
    }
    assert offsets_of(kazoo, "payments") == {("orders", 0): 10, ("orders", 1): 109, ("orders", 2): 10}
    with Registry.connect(zookeeper, timeout_ms=PATIENCE_MS) as registry, pytest.raises(ChangedMeanwhileError):
        registry.group("payments").commit("orders", 1, 77)


def test_an_offset_that_is_deleted_before_the_deletion_is_none(
    admin: ZooKeeperGroupAdmin, kazoo: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete(attempt: int) -> None:
        if not attempt:
            kazoo.delete("/consumers/payments/offsets/orders/1")

    before_transaction(monkeypatch, delete)
    assert admin.delete_offsets("payments", ORDERS).status == "ok"
    assert offsets_of(kazoo, "payments") == {}


def test_two_resets_at_once_leave_the_offsets_of_one(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 50)
    commits(kazoo, "payments", {("orders", number): 0 for number in range(50)})

    def reset(offset: int) -> None:
        with Registry.connect(zookeeper, timeout_ms=PATIENCE_MS) as registry:
            registry.group("payments").reset({TopicPartition("orders", number): offset for number in range(50)})

    threads = [threading.Thread(target=reset, args=(offset,)) for offset in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert set(offsets_of(kazoo, "payments").values()) in ({1}, {2})


@pytest.fixture
def own(own_zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    client = KazooClient(own_zookeeper.hosts)
    client.start()
    topic(client, "orders", 3)
    commits(client, "payments", {("orders", number): 10 for number in range(3)})
    yield client
    client.stop()
    client.close()


def test_reads_go_on_after_a_server_that_was_away(own_zookeeper: ZooKeeperServer, own: KazooClient) -> None:
    with open_zookeeper(own_zookeeper.hosts, {}, PATIENCE_MS) as admin:
        assert list(admin.list_groups().values) == ["payments"]
        own_zookeeper.stop(kill=True)
        own_zookeeper.start()
        assert len(admin.list_committed_offsets(["payments"]).values["payments"]) == 3


def test_a_lost_session_is_followed_by_another(own_zookeeper: ZooKeeperServer, own: KazooClient) -> None:
    with open_zookeeper(own_zookeeper.hosts, {}, PATIENCE_MS) as admin:
        assert list(admin.list_groups().values) == ["payments"]
        thief = KazooClient(own_zookeeper.hosts, client_id=admin._connection._client.client_id)
        thief.start()
        thief.stop()
        thief.close()
        assert admin.alter_offsets("payments", to(5)).status == "ok"
        assert set(offsets_of(own, "payments").values()) == {5}


def test_a_server_that_hangs_before_the_write_is_exit_code_7_and_nothing_is_written(
    tmp_path: Path, own_zookeeper: ZooKeeperServer, own: KazooClient
) -> None:
    cli = ZooKeeperCli(tmp_path, own_zookeeper.hosts)
    own_zookeeper.freeze()
    try:
        ran = cli("reset-offsets payments --all-topics --to-offset 5 --execute --timeout 1s")
    finally:
        own_zookeeper.thaw()
    assert ran.code == 7
    assert set(offsets_of(own, "payments").values()) == {10}


def test_a_server_that_hangs_in_the_middle_of_the_write_leaves_it_whole_and_unknown(
    tmp_path: Path, own_zookeeper: ZooKeeperServer, own: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_transaction(monkeypatch, lambda _: own_zookeeper.freeze())
    cli = ZooKeeperCli(tmp_path, own_zookeeper.hosts)
    try:
        ran = cli("reset-offsets payments --all-topics --to-offset 5 --execute --timeout 2s -o json")
    finally:
        own_zookeeper.thaw()
    assert ran.code == 3
    assert {row["result"] for row in ran.data} == {"unknown"}
    assert len(set(offsets_of(own, "payments").values())) == 1


def test_a_write_whose_answer_is_lost_is_read_back(
    own_zookeeper: ZooKeeperServer, own: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ZooKeeperSession.transact
    lost: list[bool] = []

    def transact(self: ZooKeeperSession, operations: Sequence[Operation]) -> None:
        from kgctl.admin.zookeeper.connection import Unanswered

        real(self, operations)
        if not lost:
            lost.append(True)
            raise Unanswered("the answer was lost")

    monkeypatch.setattr(ZooKeeperSession, "transact", transact)
    with open_zookeeper(own_zookeeper.hosts, {}, PATIENCE_MS) as admin:
        assert admin.alter_offsets("payments", to(5)).status == "ok"
    versions = {own.get(f"/consumers/payments/offsets/orders/{number}")[1].version for number in range(3)}
    assert (lost, versions) == ([True], {1})


def test_ten_thousand_nodes_are_read_whole(zookeeper: str, kazoo: KazooClient) -> None:
    commits(kazoo, "seed", {("orders", 0): 1})
    for group in range(10):
        kazoo.ensure_path(f"/consumers/g{group}/offsets/wide")
        changes = kazoo.transaction()
        for number in range(1_000):
            changes.create(f"/consumers/g{group}/offsets/wide/{number}", str(group * number).encode())
        changes.commit()
    with open_zookeeper(zookeeper, {}, PATIENCE_MS) as admin:
        found = admin.list_committed_offsets([f"g{group}" for group in range(10)])
    assert {name: len(offsets) for name, offsets in found.values.items()} == {f"g{group}": 1_000 for group in range(10)}
    assert found.values["g7"][TopicPartition("wide", 999)] == OffsetAndMetadata(6_993)


def test_running_instances_are_told_in_the_exception(zookeeper: str, kazoo: KazooClient) -> None:
    for name in ("x", "y"):
        kazoo.create(f"/consumers/payments/ids/{name}", REGISTRATION, ephemeral=True, makepath=True)
    with (
        Registry.connect(zookeeper, timeout_ms=PATIENCE_MS) as registry,
        pytest.raises(RunningInstancesError, match="2 instances are running"),
    ):
        registry.group("payments").delete()


def test_closing_does_not_wait_for_a_server_that_hangs(own_zookeeper: ZooKeeperServer, own: KazooClient) -> None:
    admin = open_zookeeper(own_zookeeper.hosts, {}, 1_000)
    assert admin.list_groups().status == "ok"
    own_zookeeper.freeze()
    try:
        with pytest.raises(UnreachableError):
            admin.list_groups()
        admin.close()
        admin.close()
    finally:
        own_zookeeper.thaw()
