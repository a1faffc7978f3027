"""The life of a group, told once and lived by each of six client libraries that nobody here wrote, and by kgctl's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from tests.support.members import CLIENTS, Client, Member, Members, wait_until
from tests.support.serve import ServeFactory
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.interop

TOPIC, PARTITIONS = "orders", 4
ALL = {(TOPIC, partition) for partition in range(PARTITIONS)}
DESCRIBE_GROUPS, OFFSET_FETCH = 15, 9


@pytest.fixture
def members(request: pytest.FixtureRequest, kgctl_serve: ServeFactory) -> Iterator[Members]:
    """A factory of members of the client that the test is parametrized with; ``bootstrap`` of a server of the test's own."""
    client: Client = request.param
    server = kgctl_serve(topics={TOPIC: PARTITIONS})
    with ExitStack() as stack:
        yield Members(stack, client, server.bootstrap, "group", TOPIC)


def client_param(client: Client, *marks: pytest.MarkDecorator) -> ParameterSet:
    """A client as a parameter, with what it needs of the machine."""
    return pytest.param(client, id=client.name, marks=[pytest.mark.needs(*client.needs), *marks])


every_client = pytest.mark.parametrize(
    "members",
    [client_param(client, *([pytest.mark.deep] if name == "java" else [])) for name, client in CLIENTS.items()],
    indirect=True,
)


def two_clients(clients: Iterable[Client]) -> pytest.MarkDecorator:
    """librdkafka and kgctl's own; the others are the same story again, which the first test has told of each."""
    params = [
        client_param(client, *([] if client.name in ("confluent-kafka", "kgctl") else [pytest.mark.deep])) for client in clients
    ]
    return pytest.mark.parametrize("members", params, indirect=True)


def describe(bootstrap: str) -> Any:
    with RawClient(bootstrap) as raw:
        return raw.call(DESCRIBE_GROUPS, 5, {"groups": ["group"]}).groups[0]


def committed(bootstrap: str) -> dict[int, int]:
    with RawClient(bootstrap) as raw:
        group = raw.call(OFFSET_FETCH, 8, {"groups": [{"group_id": "group", "topics": None}]}).groups[0]
    return {partition.partition_index: partition.committed_offset for topic in group.topics for partition in topic.partitions}


def share(first: Member, second: Member) -> bool:
    """Whether the two have everything between them, half each."""
    if first.owned is None or second.owned is None:
        return False
    return first.owned | second.owned == ALL and len(first.owned) == len(second.owned) == PARTITIONS // 2


def two_members(
    members: Members, *, static: bool = False, second: Mapping[str, Any] | None = None, **settings: Any
) -> tuple[Member, Member]:
    """Two that share the partitions; ``second`` are settings of the second alone, which comes when the first has settled.

    kafka-python 3.0.12 may hang when a rebalance begins at the moment of its own first join, with Apache Kafka as well (once in
    some twenty times).
    """
    names = {name: {"instance_id": f"instance-{name}"} if static else {} for name in ("one", "two")}
    one = members.start("one", **names["one"], **settings)
    wait_until(lambda: one.owned == ALL, "one has all partitions")
    two = members.start("two", **names["two"], **settings, **(second or {}))
    wait_until(lambda: share(one, two), "one and two share the partitions")
    return one, two


@every_client
def test_members_join_share_consume_commit_and_leave(members: Members) -> None:
    one, two = two_members(members)
    one.tell("produce", count=40, partitions=PARTITIONS)
    one.wait_for("produced")
    expected = {(partition, offset) for partition in range(PARTITIONS) for offset in range(10)}
    wait_until(lambda: {*one.records, *two.records} == expected, "all records have come")

    assert len(one.records) + len(two.records) == 40
    assert str(describe(members.bootstrap).group_state) == "Stable"

    for member in (one, two):
        member.tell("commit")
        member.wait_for("committed")

    assert committed(members.bootstrap) == dict.fromkeys(range(PARTITIONS), 10)

    two.leave()
    wait_until(lambda: one.owned == ALL, "one has all partitions again")
    one.leave()
    group = describe(members.bootstrap)

    assert (group.group_state, group.members) == ("Empty", ())
    assert committed(members.bootstrap) == dict.fromkeys(range(PARTITIONS), 10)


@two_clients(CLIENTS.values())
def test_a_killed_member_expires_and_its_partitions_go_to_the_other(members: Members) -> None:
    one, two = two_members(members, second={"session_timeout_ms": 4_000})
    two.kill()
    wait_until(lambda: one.owned == ALL, "one has all partitions")

    assert len(describe(members.bootstrap).members) == 1


@two_clients(client for client in CLIENTS.values() if client.has_static_members)
def test_a_static_member_comes_back_without_a_rebalance(members: Members) -> None:
    one, two = two_members(members, static=True)
    before, assigned = len(one.owned_history), two.owned
    two.kill()
    again = members.start("two", instance_id="instance-two")
    wait_until(lambda: again.owned == assigned, "two has its partitions back")
    group = describe(members.bootstrap)

    assert len(one.owned_history) == before
    assert sorted(member.group_instance_id for member in group.members) == ["instance-one", "instance-two"]


@two_clients(client for client in CLIENTS.values() if "cooperative-sticky" in client.assignors)
def test_a_cooperative_member_keeps_what_stays_with_it(members: Members) -> None:
    one, _ = two_members(members, assignor="cooperative-sticky")
    from_all_on = one.owned_history[one.owned_history.index(ALL) :]

    assert all(after <= before for before, after in itertools.pairwise(from_all_on))
    assert all(len(owned) >= PARTITIONS // 2 for owned in from_all_on)
