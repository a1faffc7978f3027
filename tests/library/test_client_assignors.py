"""kgctl's assignors inside kafka-python and aiokafka: what their leaders answer, and two real consumers of aiokafka."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

import kgctl
from kgctl.errors import UsageError
from kgctl.testing import EmbeddedServer
from tests.support import kafka_python
from tests.support.patience import PATIENCE_S

CHANCES, CHANCE_S = 24, 5.0
TOPICS = {"a": 3, "b": 2}
CLUSTER: Any = SimpleNamespace(partitions_for_topic=lambda topic: set(range(TOPICS[topic])) if topic in TOPICS else None)
OWNED = {"m1": {"a": [0, 1, 2], "b": [0]}, "m2": {"b": [1]}}


class Tenants:
    """An assignor of one's own: topics of one tenant (``tenant.topic``) stay together."""

    name = "tenants"

    def assign(self, group: Any) -> dict[str, dict[str, list[int]]]:
        members = sorted(member.member_id for member in group.members)
        tenants = sorted({topic.partition(".")[0] for topic in group.topics})
        found: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        for topic, spec in sorted(group.topics.items()):
            owner = members[tenants.index(topic.partition(".")[0]) % len(members)]
            found[owner][topic] = list(range(spec.partition_count))
        return found


@pytest.mark.parametrize("name", ["range", "roundrobin", "kafka-go:range"])
def test_stateless_assignors_answer_as_kgctl_does(name: str) -> None:
    expected = kgctl.assign(name, topics=TOPICS, members=["m1", "m2"]).assignment
    python = kgctl.kafka_python_assignor(name)()
    members = [SimpleNamespace(member_id=m, metadata=python.metadata(set(TOPICS))) for m in ("m1", "m2")]
    assert by_member(python.assign(CLUSTER, members)) == expected
    aio = kgctl.aiokafka_assignor(name)
    assert by_member(aio.assign(CLUSTER, {m: aio.metadata(set(TOPICS)) for m in ("m1", "m2")})) == expected


def by_member(answer: Any) -> dict[str, dict[str, tuple[int, ...]]]:
    """Both libraries' answers, by name."""
    return {
        member: {topic: tuple(sorted(partitions)) for topic, partitions in assigned.assignment}
        for member, assigned in answer.items()
    }


def test_sticky_of_kafka_python_remembers_what_members_had() -> None:
    expected = kgctl.assign("sticky", topics=TOPICS, members=["m1", "m2", "m3"], previous=OWNED).assignment
    leader = kgctl.kafka_python_assignor("sticky")()
    members = []
    for member in ("m1", "m2", "m3"):
        assignor = kgctl.kafka_python_assignor("sticky")()
        if member in OWNED:
            assignor.member_assignment, assignor.generation = partitions_of(member), 1
        said = assignor.metadata(sorted(TOPICS))
        members.append(SimpleNamespace(member_id=member, metadata=type(said).decode(said.encode())))
    assert by_member(leader.assign(CLUSTER, members)) == expected


def test_sticky_of_aiokafka_remembers_what_members_had() -> None:
    expected = kgctl.assign("sticky", topics=TOPICS, members=["m1", "m2", "m3"], previous=OWNED).assignment
    said: dict[str, ConsumerProtocolMemberMetadata] = {}
    for member in ("m1", "m2", "m3"):
        assignor = kgctl.aiokafka_assignor("sticky")
        if member in OWNED:
            assignor.member_assignment, assignor.generation = partitions_of(member), 1
        said[member] = assignor.metadata(sorted(TOPICS))
    assert by_member(kgctl.aiokafka_assignor("sticky").assign(CLUSTER, said)) == expected


def partitions_of(member: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, numbers in OWNED[member].items() for number in numbers]


def test_one_s_own_assignor_is_used_by_aiokafka() -> None:
    async def run(bootstrap: str) -> list[set[str]]:
        consumers = [
            AIOKafkaConsumer(
                *("blue.clicks", "blue.orders", "red.clicks", "red.orders"),
                bootstrap_servers=bootstrap,
                group_id="tenants",
                heartbeat_interval_ms=50,
                partition_assignment_strategy=[kgctl.aiokafka_assignor(f"{__name__}:Tenants")],
            )
            for _ in range(2)
        ]
        for consumer in consumers:
            await consumer.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not all(len(consumer.assignment()) == 4 for consumer in consumers):
                    await asyncio.gather(*(consumer.getmany(timeout_ms=20) for consumer in consumers))
            return [{entry.topic.partition(".")[0] for entry in consumer.assignment()} for consumer in consumers]
        finally:
            for consumer in consumers:
                await consumer.stop()

    topics = {f"{tenant}.{topic}": 2 for tenant in ("blue", "red") for topic in ("clicks", "orders")}
    with EmbeddedServer(topics) as cluster:
        tenants = asyncio.run(run(cluster.bootstrap))
    assert sorted(map(sorted, tenants)) == [["blue"], ["red"]]


def test_a_consumer_of_kafka_python_starts_with_it() -> None:
    """Several chances: kafka-python 3.0.12 may never join, now and then, whatever its assignor (tests/interop/test_groups.py)."""
    with EmbeddedServer({"orders": 2}) as cluster:
        assert any(joins(cluster.bootstrap) for _ in range(CHANCES))


def joins(bootstrap: str) -> bool:
    """Whether a new consumer of kafka-python has both partitions soon."""
    consumer = kafka_python.kafka.KafkaConsumer(  # type: ignore[attr-defined]
        bootstrap_servers=bootstrap,
        group_id="group",
        partition_assignment_strategy=[kgctl.kafka_python_assignor("cooperative-sticky")],
    )
    kafka_python.subscribe(consumer, "orders")
    deadline = time.monotonic() + CHANCE_S
    try:
        while len(consumer.assignment()) < 2 and time.monotonic() < deadline:
            consumer.poll(timeout_ms=50)
        return len(consumer.assignment()) == 2
    finally:
        consumer.close()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean sticky"):
        kgctl.kafka_python_assignor("stiky")
    with pytest.raises(UsageError, match="does not rebalance cooperatively"):
        kgctl.aiokafka_assignor("cooperative-sticky")
