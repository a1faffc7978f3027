"""Running consumers of the old kind: claims by range, handed over on each change, and what a lost session means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kazoo.client import KazooClient

from kgctl.admin.zookeeper import Pattern, Registration
from kgctl.errors import UsageError, UserCodeError
from kgctl.model.groups import TopicPartition
from kgctl.zookeeper import (
    ConsumerGroup,
    InstanceRegisteredError,
    PartitionNotClaimedError,
    Registry,
    assign_range,
)
from tests.support.zookeeper.old_kafka import wait_until
from tests.zookeeper.conftest import commits, offsets_of, topic

pytestmark = pytest.mark.zookeeper

SESSION_MS = 2_000


def partitions(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("orders", number) for number in numbers)


def consumer(zookeeper: str, name: str, **options: Any) -> ConsumerGroup:
    topics = options.pop("topics", ["orders"])
    return ConsumerGroup(zookeeper, "payments", topics, instance=name, session_ms=SESSION_MS, **options)


def test_range_gives_the_first_streams_one_partition_more() -> None:
    running = {name: Registration({"t": 1}) for name in ("b", "a", "c")}
    dealt = assign_range(running, {"t": 8})
    assert {name: sorted(each.partition for each in found) for name, found in dealt.items()} == {
        "a": [0, 1, 2],
        "b": [3, 4, 5],
        "c": [6, 7],
    }


def test_range_deals_to_streams_of_those_who_read_the_topic() -> None:
    running = {
        "a": Registration({"t": 2}),
        "b": Registration({"[t-u]": 1}, Pattern.WHITE_LIST),
        "c": Registration({"t": 1}, Pattern.BLACK_LIST),
    }
    dealt = assign_range(running, {"t": 3, "u": 2, "__consumer_offsets": 1})
    assert {name: sorted(map(str, found)) for name, found in dealt.items()} == {
        "a": ["t-0", "t-1"],
        "b": ["t-2", "u-0"],
        "c": ["u-1"],
    }


def test_two_consumers_share_and_the_one_that_stays_takes_over(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 4)
    with consumer(zookeeper, "a") as first:
        wait_until("a has all", lambda: first.assignment == partitions(0, 1, 2, 3))
        with consumer(zookeeper, "b") as second:
            wait_until("they share", lambda: (first.assignment, second.assignment) == (partitions(0, 1), partitions(2, 3)))
            owners = {number: kazoo.get(f"/consumers/payments/owners/orders/{number}")[0] for number in range(4)}
            assert owners == {0: b"a", 1: b"a", 2: b"b", 3: b"b"}
        wait_until("a has all again", lambda: first.assignment == partitions(0, 1, 2, 3))
    assert kazoo.get_children("/consumers/payments/ids") == []
    assert kazoo.get_children("/consumers/payments/owners/orders") == []


def test_the_next_owner_begins_where_the_last_one_committed(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 2)
    commits(kazoo, "payments", {("orders", 0): 5})
    begun: dict[str, dict[TopicPartition, int | None]] = {"a": {}, "b": {}}

    def at(name: str) -> Any:
        def note(offsets: Mapping[TopicPartition, int | None]) -> None:
            begun[name].update(offsets)

        return note

    ended: list[frozenset[TopicPartition]] = []

    def commit_what_was_done(gone: frozenset[TopicPartition]) -> None:
        ended.append(gone)
        first.commit(dict.fromkeys(gone, 42))

    first = consumer(zookeeper, "a", on_assigned=at("a"), on_revoked=commit_what_was_done)
    with first:
        assert first.wait(1, 60)
        assert begun["a"] == {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): None}
        with consumer(zookeeper, "b", on_assigned=at("b")) as second:
            wait_until("b has its own", lambda: second.assignment == partitions(1))
            wait_until("b knows where to begin", lambda: begun["b"] == {TopicPartition("orders", 1): 42})
            assert ended == [partitions(1)]
            second.commit({TopicPartition("orders", 1): 50})
            with pytest.raises(PartitionNotClaimedError):
                second.commit({TopicPartition("orders", 0): 1})
            assert offsets_of(kazoo, "payments") == {("orders", 0): 5, ("orders", 1): 50}


def test_new_partitions_are_claimed(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 1)
    with consumer(zookeeper, "a") as only:
        wait_until("one", lambda: only.assignment == partitions(0))
        kazoo.set("/brokers/topics/orders", b'{"version":1,"partitions":{"0":[1],"1":[1]}}')
        wait_until("two", lambda: only.assignment == partitions(0, 1))


def test_new_topics_of_a_list_are_claimed(zookeeper: str, kazoo: KazooClient) -> None:
    with consumer(zookeeper, "a", topics=Registration({"ord.*": 1}, Pattern.WHITE_LIST)) as only:
        assert only.wait(1, 60)
        topic(kazoo, "orders", 1)
        topic(kazoo, "users", 1)
        wait_until("the topic that matches", lambda: only.assignment == partitions(0))


def test_a_claim_of_another_is_waited_for(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 1)
    kazoo.create("/consumers/payments/owners/orders/0", b"slow", makepath=True)
    with consumer(zookeeper, "a") as only:
        wait_until("it is running", lambda: kazoo.exists("/consumers/payments/ids/a"))
        assert only.assignment == frozenset()
        kazoo.delete("/consumers/payments/owners/orders/0")
        wait_until("it has it", lambda: only.assignment == partitions(0))


def test_after_a_lost_session_it_registers_anew(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 2)
    gone: list[frozenset[TopicPartition]] = []
    with consumer(zookeeper, "a", on_revoked=gone.append) as only:
        wait_until("all", lambda: only.assignment == partitions(0, 1))
        client = only._registry.connection._client
        session, password = client.client_id
        thief = KazooClient(zookeeper, client_id=(session, password))
        thief.start()
        thief.stop()  # ends the session of both
        thief.close()
        wait_until("revoked, and claimed by another session", lambda: gone == [partitions(0, 1)] and only.assignment)
        wait_until("all again", lambda: only.assignment == partitions(0, 1))
        assert kazoo.get("/consumers/payments/owners/orders/0")[1].ephemeralOwner != session


def test_a_failing_callback_ends_the_instance_and_is_raised(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 1)

    def fail(offsets: Mapping[TopicPartition, int | None]) -> None:
        raise ZeroDivisionError

    failing = consumer(zookeeper, "a", on_assigned=fail)
    failing.start()
    with pytest.raises(UserCodeError, match=r"on_assigned failed \(.*test_consumer\.py:\d+\): ZeroDivisionError") as caught:
        failing.wait(1, 60)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    wait_until("it has left", lambda: kazoo.get_children("/consumers/payments/ids") == [])
    with pytest.raises(UserCodeError):
        failing.close()
    failing.close()


def test_misuse_is_refused(zookeeper: str, kazoo: KazooClient) -> None:
    with pytest.raises(UsageError):
        consumer(zookeeper, "a", topics=[])
    with consumer(zookeeper, "a"):
        twin = consumer(zookeeper, "a")
        with pytest.raises(InstanceRegisteredError):
            twin.start()
        twin.close()


def test_kgctl_sees_a_running_consumer_as_any_other(zookeeper: str, kazoo: KazooClient) -> None:
    topic(kazoo, "orders", 1)
    with consumer(zookeeper, "a") as only, Registry.connect(zookeeper) as registry:
        wait_until("claimed", lambda: only.assignment == partitions(0))
        assert [instance.name for instance in registry.group("payments").instances()] == ["a"]
