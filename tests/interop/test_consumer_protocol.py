"""Groups of the consumer protocol (KIP-848), with librdkafka as the members."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.kafka import commit
from tests.support.members import CLIENTS, Member, Members, wait_until
from tests.support.serve import ServeFactory
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.interop

TOPIC, PARTITIONS = "orders", 12
ALL = {(TOPIC, partition) for partition in range(PARTITIONS)}
CONSUMER_GROUP_DESCRIBE, OFFSET_FETCH = 69, 9
QUICK = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}
MORTAL = {"group.consumer.session.timeout.ms": "4000", "group.consumer.min.session.timeout.ms": "500"}
"""Only where somebody dies: elsewhere nobody is to be taken for dead because the machine was busy."""


@pytest.fixture
def members(kgctl_serve: ServeFactory) -> Iterator[Members]:
    yield from members_of(kgctl_serve, QUICK)


@pytest.fixture
def mortal_members(kgctl_serve: ServeFactory) -> Iterator[Members]:
    yield from members_of(kgctl_serve, QUICK | MORTAL)


def members_of(kgctl_serve: ServeFactory, config: dict[str, str]) -> Iterator[Members]:
    server = kgctl_serve(topics={TOPIC: PARTITIONS}, config=config)
    with ExitStack() as stack:
        yield Members(stack, CLIENTS["confluent-kafka"], server.bootstrap, "group", TOPIC)


def start(members: Members, name: str, **settings: Any) -> Member:
    return members.start(name, protocol="consumer", **settings)


def share(*group: Member) -> bool:
    """Whether they have everything between them, nothing twice, evenly."""
    counts = Counter(partition for member in group for partition in member.owned or ())
    sizes = {len(member.owned or ()) for member in group}
    return counts.keys() == ALL and set(counts.values()) == {1} and max(sizes) - min(sizes) <= 1


def describe(bootstrap: str) -> Any:
    with RawClient(bootstrap) as raw:
        return raw.call(CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["group"]}).groups[0]


def test_members_join_share_die_and_leave(mortal_members: Members) -> None:
    members = mortal_members
    one = start(members, "one")
    wait_until(lambda: one.owned == ALL, "one has all partitions")
    two, three = start(members, "two"), start(members, "three")
    wait_until(lambda: share(one, two, three), "three members share the partitions")
    wait_until(lambda: describe(members.bootstrap).group_state == "Stable", "the coordinator knows that they have them")
    group = describe(members.bootstrap)

    assert {len(member.assignment.topic_partitions[0].partitions) for member in group.members} == {4}

    two.kill()
    wait_until(lambda: share(one, three), "the dead member's partitions have gone to the others")
    three.leave()
    wait_until(lambda: one.owned == ALL, "one has all partitions again")


def test_a_static_member_comes_back_to_its_partitions(members: Members) -> None:
    one, two = (start(members, name, instance_id=name) for name in ("one", "two"))
    wait_until(lambda: share(one, two), "one and two share the partitions")
    before, assigned = len(one.owned_history), two.owned
    two.leave()
    again = start(members, "two", instance_id="two")
    wait_until(lambda: again.owned == assigned, "two has its partitions back")

    assert len(one.owned_history) == before


@pytest.mark.deep
def test_no_record_comes_twice_while_members_come_and_go(members: Members) -> None:
    """Each commits what it has read before it gives a partition up; so every record is read once.

    librdkafka that is closed while its first assignment arrives now and then ends without the heartbeat that leaves: its
    partitions are free when its session has ended.

    Nobody has to ask for the beginning of a partition: `tests.interop.crowd.Crowd` says why.
    """
    commit(members.bootstrap, "group", dict.fromkeys(ALL, 0))
    rng = random.Random(4)
    gone: list[Member] = []
    here = [start(members, f"m{number}", commit_on_revoke=True) for number in range(4)]
    producer = here[0]
    producer.tell("produce", count=3_000, partitions=PARTITIONS)
    for number in range(4, 10):
        here.append(start(members, f"m{number}", commit_on_revoke=True))
        leaver = here.pop(rng.randrange(1, len(here) - 1))
        wait_until(lambda member=leaver: member.owned is not None, f"{leaver.name} is in the group")  # type: ignore[misc]
        leaver.tell("leave")
        gone.append(leaver)
    wait_until(lambda: share(*here), "those who stayed share the partitions")
    wait_until(lambda: sum(len(member.records) for member in (*here, *gone)) >= 3_000, "every record has come")
    times = Counter(record for member in (*here, *gone) for record in member.records)

    assert len(times) == 3_000
    assert [record for record, count in times.items() if count > 1] == []
