"""kgctl.ConsumerGroup in one group with members of Java and librdkafka, on Apache Kafka."""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.group.consumer_group import ConsumerGroup
from kgctl.group.generation import Generation
from kgctl.model.groups import GroupState
from tests.calibration.fleet import Fleet, Line
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import committed, create_topic, unique
from tests.support.kafka.fixtures import java_or_skip
from tests.support.members import CLIENTS, Member, wait_until
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

PARTITIONS = 6
SETTINGS = {
    "eager": ({"assignors": ["range"]}, {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"}),
    "cooperative": (
        {"assignors": ["cooperative-sticky"]},
        {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
    ),
    "consumer": ({"protocol": "consumer"}, {"group.protocol": "consumer"}),
}
LIBRDKAFKA = {"eager": ("classic", "range"), "cooperative": ("classic", "cooperative-sticky"), "consumer": ("consumer", "range")}


@pytest.fixture
def fleet(kafka_broker: KafkaBroker) -> Iterator[Fleet]:
    said: queue.Queue[Line] = queue.Queue()
    with java_or_skip():
        running = Fleet(kafka_broker.bootstrap, said)
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.kill()


def owners(bootstrap: str, group_id: str) -> Counter[int]:
    """How many partitions each member has, as the coordinator sees it; empty while the group is not stable."""
    with closing(connect(ConnectionSettings(bootstrap=bootstrap))) as admin:
        description = admin.describe_groups([group_id]).values.get(group_id)
    if description is None or description.state is not GroupState.STABLE:
        return Counter()
    return Counter(sum(len(each) for each in (member.assignment or {}).values()) for member in description.members)


@pytest.mark.parametrize("kind", SETTINGS)
def test_three_libraries_share_one_group(kafka_broker: KafkaBroker, fleet: Fleet, kind: str) -> None:
    bootstrap, topic, group_id = kafka_broker.bootstrap, unique("mixed"), unique("mixed")
    create_topic(bootstrap, topic, PARTITIONS)
    ours, javas = SETTINGS[kind]
    protocol, assignor = LIBRDKAFKA[kind]
    common = {"group.id": group_id, "bootstrap.servers": bootstrap, "heartbeat.interval.ms": "500"}
    fleet.start("java", topic, {**javas, **(common if protocol == "classic" else {"group.id": group_id})})
    rdkafka = {"bootstrap": bootstrap, "group": group_id, "topic": topic, "client_id": "rdkafka"}
    with ExitStack() as stack:
        group = stack.enter_context(
            ConsumerGroup(bootstrap, group_id, [topic], heartbeat_interval_ms=500, auto_offset_reset="earliest", **ours)  # type: ignore[arg-type]
        )
        stack.enter_context(Member(CLIENTS["confluent-kafka"], **rdkafka, assignor=assignor, protocol=protocol))
        wait_until(lambda: owners(bootstrap, group_id) == Counter({2: 3}), "three members have two partitions each")
        generation = latest(group, 2)
        wanted = dict.fromkeys(generation.assignments, 5)
        generation.commit(wanted)
        stored = committed(bootstrap, group_id)  # Java commits, too
        assert {partition: stored[partition] for partition in wanted} == wanted
        group.close()
        wait_until(lambda: owners(bootstrap, group_id) == Counter({3: 2}), "the others have all when it has left")


def latest(group: ConsumerGroup, partitions: int) -> Generation:
    while True:
        generation = group.next(PATIENCE_S)
        if len(generation.assignments) == partitions:
            return generation
