"""The registry, function by function, on a real ZooKeeper; what other clients write there is written with plain kazoo."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from kgctl.admin.zookeeper import (
    GroupNotFoundError,
    InstanceNotRegisteredError,
    InstanceRegisteredError,
    MalformedNodeError,
    PartitionClaimedError,
    PartitionNotClaimedError,
    Pattern,
    Registration,
    RunningInstancesError,
)
from kgctl.admin.zookeeper.registry import Group, Instance, Registry
from kgctl.errors import AuthError, ClosedError, NotFoundError, UnreachableError, UsageError, UserCodeError
from kgctl.model.groups import Node, TopicPartition
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS, PATIENCE_S

pytestmark = pytest.mark.zookeeper

READ_ONLY = [make_acl("world", "anyone", read=True)]


@pytest.fixture
def registry(zookeeper: str) -> Iterator[Registry]:
    with Registry.connect(zookeeper, timeout_ms=PATIENCE_MS) as made:
        yield made


@pytest.fixture
def other(zookeeper: str) -> Iterator[Registry]:
    """A second session."""
    with Registry.connect(zookeeper, timeout_ms=PATIENCE_MS) as made:
        yield made


@pytest.fixture
def group(registry: Registry) -> Group:
    made = registry.group("payments")
    made.create()
    return made


def running(group: Group, *topics: str) -> Instance:
    instance = group.new_instance()
    instance.register(topics)
    return instance


def test_groups_are_listed_sorted_and_found_by_name(registry: Registry) -> None:
    for name in ("b", "a", "c"):
        registry.group(name).create()
    groups = registry.groups()
    assert [group.name for group in groups] == ["a", "b", "c"]
    found = groups.find("b")
    assert found is not None
    assert found.name == "b"
    assert groups.find("d") is None


def test_an_empty_tree_has_no_groups_instances_topics_or_offsets(registry: Registry) -> None:
    group = registry.group("payments")
    assert (registry.groups(), group.instances(), group.topics(), group.offsets(), group.owners()) == ((), (), (), {}, {})
    assert not group.exists()


def test_created_group_exists_and_creating_it_again_changes_nothing(registry: Registry, kazoo: KazooClient) -> None:
    group = registry.group("payments")
    group.create()
    group.commit("orders", 0, 7)
    group.create()
    assert group.exists()
    assert group.fetch("orders", 0) == 7
    assert sorted(kazoo.get_children("/consumers/payments")) == ["ids", "offsets", "owners"]


def test_deleted_group_is_gone_with_all_below_it(group: Group, kazoo: KazooClient) -> None:
    group.commit("orders", 0, 7)
    kazoo.create("/consumers/payments/of-another-tool/deeper", b"x", makepath=True)
    group.delete()
    assert not group.exists()
    with pytest.raises(GroupNotFoundError):
        group.delete()


def test_group_with_running_instances_is_not_deleted(group: Group) -> None:
    group.commit("orders", 0, 7)
    instance = running(group, "orders")
    with pytest.raises(RunningInstancesError, match="1 instance is running"):
        group.delete()
    assert group.fetch("orders", 0) == 7
    instance.deregister()
    group.delete()
    assert not group.exists()


def test_a_group_of_more_nodes_than_a_transaction_takes_is_deleted(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.admin.zookeeper.admin.NODES_A_TRANSACTION", 7)
    group.reset({TopicPartition("orders", number): number for number in range(30)})
    group.delete()
    assert not group.exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "\ud800"])
def test_names_that_no_node_can_have_are_refused(registry: Registry, name: str) -> None:
    with pytest.raises(UsageError):
        registry.group(name)


def test_instance_registers_as_other_clients_do(group: Group, kazoo: KazooClient) -> None:
    instance = group.new_instance("host:1")
    assert not instance.registered()
    instance.register(["orders", "users"], timestamp=1_500_000_000)
    assert instance.registered()
    data, stat = kazoo.get("/consumers/payments/ids/host:1")
    assert json.loads(data) == {
        "pattern": "static",
        "subscription": {"orders": 1, "users": 1},
        "timestamp": 1_500_000_000,
        "version": 1,
    }
    assert stat.ephemeralOwner != 0
    assert instance.registration() == Registration({"orders": 1, "users": 1}, Pattern.STATIC, 1_500_000_000)
    assert instance.registration().timestamp_ms == 1_500_000_000_000


def test_new_instances_are_called_by_host_and_a_new_uuid(group: Group) -> None:
    first, second = group.new_instance(), group.new_instance()
    host, _, number = first.name.rpartition(":")
    assert host
    assert len(number) == 36
    assert first.name != second.name


def test_registering_twice_and_deregistering_twice_are_errors_of_their_own(group: Group, other: Registry) -> None:
    instance = running(group, "orders")
    with pytest.raises(InstanceRegisteredError):
        instance.register(["orders"])
    with pytest.raises(InstanceRegisteredError):
        other.group("payments").instance(instance.name).register(["orders"])
    instance.deregister()
    with pytest.raises(InstanceNotRegisteredError):
        instance.deregister()
    with pytest.raises(InstanceNotRegisteredError):
        instance.registration()


def test_registrations_end_with_their_session(group: Group, other: Registry) -> None:
    running(other.group("payments"), "orders")
    assert len(group.instances()) == 1
    other.close()
    assert group.instances() == ()


@pytest.mark.parametrize("pattern", [Pattern.WHITE_LIST, Pattern.BLACK_LIST])
def test_a_list_is_registered_with_its_pattern(group: Group, pattern: Pattern) -> None:
    instance = group.new_instance()
    instance.register(Registration({"orders.*": 2}, pattern, 5))
    assert instance.registration() == Registration({"orders.*": 2}, pattern, 5)


def test_registration_written_by_kafka_is_read_in_milliseconds(group: Group, kazoo: KazooClient) -> None:
    kazoo.create(
        "/consumers/payments/ids/c",
        b'{"version":1,"subscription":{"orders":2},"pattern":"white_list","timestamp":"1500000000123"}',
    )
    found = group.instance("c").registration()
    assert (found.subscription, found.pattern, found.timestamp_ms) == ({"orders": 2}, Pattern.WHITE_LIST, 1_500_000_000_123)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"version":2,"subscription":{}}',
        b'{"subscription":{"t":0}}',
        b'{"subscription":{},"pattern":"x"}',
    ],
)
def test_malformed_registration_is_named(group: Group, kazoo: KazooClient, data: bytes) -> None:
    kazoo.create("/consumers/payments/ids/c", data)
    with pytest.raises(MalformedNodeError, match="/consumers/payments/ids/c: "):
        group.instance("c").registration()


def test_claim_is_seen_by_all_and_may_be_repeated(group: Group, kazoo: KazooClient) -> None:
    instance = running(group, "orders")
    instance.claim("orders", 0)
    instance.claim("orders", 0)
    assert group.owner("orders", 0) == instance
    assert group.owner("orders", 1) is None
    assert group.owners() == {TopicPartition("orders", 0): instance}
    assert kazoo.get("/consumers/payments/owners/orders/0")[0] == instance.name.encode()


def test_claim_of_another_is_an_error_that_names_it(group: Group) -> None:
    first, second = running(group, "orders"), running(group, "orders")
    first.claim("orders", 0)
    with pytest.raises(PartitionClaimedError) as refused:
        second.claim("orders", 0)
    assert refused.value.owner == first.name
    first.release("orders", 0)
    second.claim("orders", 0)
    assert group.owner("orders", 0) == second


def test_only_the_owner_releases(group: Group) -> None:
    first, second = running(group, "orders"), running(group, "orders")
    with pytest.raises(PartitionNotClaimedError):
        first.release("orders", 0)
    first.claim("orders", 0)
    with pytest.raises(PartitionNotClaimedError):
        second.release("orders", 0)
    assert group.owner("orders", 0) == first


def test_topics_are_those_ever_claimed(group: Group) -> None:
    instance = running(group, "orders", "users")
    instance.claim("users", 0)
    instance.release("users", 0)
    assert group.topics() == ("users",)


def test_no_commit_is_told_apart_from_offset_0(group: Group, kazoo: KazooClient) -> None:
    assert group.fetch("orders", 0) is None
    group.commit("orders", 0, 0)
    assert group.fetch("orders", 0) == 0
    group.commit("orders", 0, 43)
    assert group.fetch("orders", 0) == 43
    assert kazoo.get("/consumers/payments/offsets/orders/0")[0] == b"43"
    assert group.offsets() == {TopicPartition("orders", 0): 43}


@pytest.mark.parametrize("offset", [-1, 2**63])
def test_what_is_no_offset_is_not_committed(group: Group, offset: int) -> None:
    with pytest.raises(UsageError):
        group.commit("orders", 0, offset)


@pytest.mark.parametrize("data", [b"", b"-1", b"1.5", b"seven", b"9223372036854775808", "٣".encode()])
def test_malformed_offset_is_named(group: Group, kazoo: KazooClient, data: bytes) -> None:
    kazoo.create("/consumers/payments/offsets/orders/0", data, makepath=True)
    with pytest.raises(MalformedNodeError, match="/consumers/payments/offsets/orders/0: "):
        group.fetch("orders", 0)
    with pytest.raises(MalformedNodeError) as error:
        group.offsets()
    assert (error.value.group, error.value.topic, error.value.partition) == ("payments", "orders", 0)


def test_reset_sets_offsets_or_takes_all_away(group: Group, kazoo: KazooClient) -> None:
    wanted = {TopicPartition("orders", number): number for number in range(3)}
    group.reset(wanted)
    assert group.offsets() == wanted
    group.reset()
    assert group.offsets() == {}
    assert kazoo.get_children("/consumers/payments/offsets") == []


def test_reset_is_refused_while_an_instance_runs(group: Group) -> None:
    group.commit("orders", 0, 7)
    running(group, "orders")
    for offsets in ({TopicPartition("orders", 0): 1}, None):
        with pytest.raises(RunningInstancesError):
            group.reset(offsets)
    assert group.fetch("orders", 0) == 7


def test_reset_leaves_the_node_of_the_instances_as_it_was(group: Group, kazoo: KazooClient) -> None:
    kazoo.set("/consumers/payments/ids", b"kept")
    kazoo.set_acls("/consumers/payments/ids", [make_acl("world", "anyone", all=True), make_acl("ip", "127.0.0.1", read=True)])
    before = kazoo.get_acls("/consumers/payments/ids")[0]
    group.reset({TopicPartition("orders", 0): 1})
    assert kazoo.get("/consumers/payments/ids")[0] == b"kept"
    assert sorted(kazoo.get_acls("/consumers/payments/ids")[0]) == sorted(before)


def test_instances_are_watched_by_callback(group: Group, other: Registry) -> None:
    told: list[list[str]] = []
    seen = threading.Condition()

    def changed(instances: tuple[Instance, ...]) -> None:
        with seen:
            told.append([instance.name for instance in instances])
            seen.notify()

    group.watch_instances(changed)
    there = running(other.group("payments"), "orders")
    with seen:
        assert seen.wait_for(lambda: told[-1:] == [[there.name]], PATIENCE_S)
    there.deregister()
    with seen:
        assert seen.wait_for(lambda: told[-1:] == [[]], PATIENCE_S)


def test_instances_are_watched_by_iterator_of_a_group_that_is_not_there_yet(registry: Registry, other: Registry) -> None:
    changes = registry.group("new").instance_changes(PATIENCE_S)
    assert next(changes) == ()
    there = running(other.group("new"), "orders")
    assert next(changes) == (there,)
    other.close()
    assert next(changes) == ()
    changes.close()


def test_owner_is_watched(group: Group, other: Registry) -> None:
    told: list[Instance | None] = []
    seen = threading.Condition()

    def changed(owner: Instance | None) -> None:
        with seen:
            told.append(owner)
            seen.notify()

    group.watch_owner("orders", 0, changed)
    there = running(other.group("payments"), "orders")
    there.claim("orders", 0)
    with seen:
        assert seen.wait_for(lambda: told[-1:] == [there], PATIENCE_S)
    there.release("orders", 0)
    with seen:
        assert seen.wait_for(lambda: told[-1] is None and len(told) > 1, PATIENCE_S)


def test_brokers_topics_and_cluster_id_are_what_kafka_keeps_there(registry: Registry, kazoo: KazooClient) -> None:
    assert (registry.brokers(), registry.topics()) == ({}, {})
    address = registry.connection.settings
    assert registry.cluster_id() == f"zookeeper:{address.hosts[0]}{address.chroot}"
    kazoo.create("/brokers/ids/7", b'{"host":"kafka7","port":9092,"endpoints":["PLAINTEXT://kafka7:9092"]}', makepath=True)
    kazoo.create("/brokers/ids/8", b'{"host":null,"port":-1,"endpoints":["SASL_SSL://kafka8:9093"]}')
    kazoo.create("/brokers/topics/orders", b'{"version":1,"partitions":{"0":[7],"1":[8]}}', makepath=True)
    kazoo.create("/cluster/id", b'{"version":"1","id":"abc"}', makepath=True)
    assert registry.brokers() == {7: Node(7, "kafka7", 9092), 8: Node(8, "kafka8", 9093)}
    assert registry.topics() == {"orders": 2}
    assert registry.cluster_id() == "zookeeper:abc"


def test_what_may_not_be_read_or_written_is_named(group: Group, kazoo: KazooClient) -> None:
    group.commit("orders", 0, 7)
    kazoo.set_acls("/consumers/payments/offsets/orders/0", READ_ONLY)
    with pytest.raises(AuthError, match="/consumers/payments/offsets/orders/0"):
        group.commit("orders", 0, 8)
    kazoo.set_acls("/consumers/payments/ids", READ_ONLY)
    with pytest.raises(AuthError, match="/consumers/payments/ids"):
        group.new_instance("x").register(["orders"])


def test_a_chroot_that_is_not_there_is_named(zookeeper: str) -> None:
    with Registry.connect(f"{zookeeper}/nowhere") as registry, pytest.raises(NotFoundError, match=r"has no node /.*nowhere"):
        registry.groups()


def test_no_server_is_an_error_within_the_time_limit() -> None:
    with Registry.connect("127.0.0.1:9", timeout_ms=300) as registry, pytest.raises(UnreachableError) as error:
        registry.groups()
    assert error.value.message == "ZooKeeper at 127.0.0.1:9 cannot be reached within 0.3 s: Connection refused"


def test_a_closed_registry_stays_closed(zookeeper: str) -> None:
    """It opened a new session in silence."""
    registry = Registry.connect(zookeeper, timeout_ms=PATIENCE_MS)
    assert not registry.group("payments").exists()
    registry.close()
    registry.close()
    for call in (registry.groups, registry.topics, registry.group("payments").create, registry.group("payments").exists):
        with pytest.raises(ClosedError, match="connect again"):
            call()


class Wrong:
    """A function of a program's that raises at its n-th call; with what it was told before."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.told: list[Any] = []

    def __call__(self, value: Any) -> None:
        self.told.append(value)
        if len(self.told) == self.at:
            raise LookupError("boom")


@pytest.mark.parametrize("watch", ["watch_instances", "watch_owner"])
def test_a_function_that_raises_is_named_with_its_place_and_hears_of_the_next_change(
    group: Group, other: Registry, watch: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = Wrong(at=2)
    begin = group.watch_instances if watch == "watch_instances" else lambda changed: group.watch_owner("orders", 0, changed)
    begin(wrong)
    there = running(other.group("payments"), "orders")
    there.claim("orders", 0)
    wait_until(lambda: len(wrong.told) >= 2, "it is told of the change")
    there.release("orders", 0)
    there.deregister()
    wait_until(lambda: len(wrong.told) >= 3, "it is told of the next change")
    (told,) = [record for record in caplog.records if record.name == "kgctl.admin.zookeeper.registry"]
    assert re.fullmatch(rf"the function of {watch} failed \({re.escape(__file__)}:\d+\): LookupError: boom", told.getMessage())


@pytest.mark.parametrize("watch", ["watch_instances", "watch_owner"])
def test_a_function_that_raises_at_once_says_so_to_who_watches(group: Group, other: Registry, watch: str) -> None:
    wrong, right = Wrong(at=1), Wrong(at=0)
    begin = group.watch_instances if watch == "watch_instances" else lambda changed: group.watch_owner("orders", 0, changed)
    with pytest.raises(UserCodeError, match=rf"the function of {watch} failed \(.*LookupError: boom") as caught:
        begin(wrong)
    assert isinstance(caught.value.__cause__, LookupError)
    begin(right)
    running(other.group("payments"), "orders").claim("orders", 0)
    wait_until(lambda: len(right.told) >= 2, "another one is told of a change")
    assert len(wrong.told) == 1
