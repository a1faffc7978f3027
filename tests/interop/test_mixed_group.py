"""kgctl.ConsumerGroup in one group with members of Java and librdkafka, and of kafka-go and aiokafka, whoever leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial

import pytest

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.group.consumer_group import ConsumerGroup
from kgctl.group.generation import Generation
from kgctl.model.groups import GroupState
from tests.support.java_consumers import JavaConsumers
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import committed, create_topic, unique
from tests.support.members import CLIENTS, Member, Partition, wait_until
from tests.support.patience import PATIENCE_MS
from tests.support.serve import ServeFactory

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
def java(kafka_broker: KafkaBroker) -> Iterator[JavaConsumers]:
    with JavaConsumers(kafka_broker.bootstrap) as running:
        yield running


def owners(bootstrap: str, group_id: str) -> Counter[int]:
    """How many partitions each member has, as the coordinator sees it; empty while the group is not stable."""
    with closing(connect(ConnectionSettings(bootstrap=bootstrap))) as admin:
        description = admin.describe_groups([group_id]).values.get(group_id)
    if description is None or description.state is not GroupState.STABLE:
        return Counter()
    return Counter(sum(len(each) for each in (member.assignment or {}).values()) for member in description.members)


@pytest.mark.needs("javac")
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.deep if kind == "eager" else ()) for kind in SETTINGS])
def test_three_libraries_share_one_group(kafka_broker: KafkaBroker, java: JavaConsumers, kind: str) -> None:
    bootstrap, topic, group_id = kafka_broker.bootstrap, unique("mixed"), unique("mixed")
    create_topic(bootstrap, topic, PARTITIONS)
    ours, javas = SETTINGS[kind]
    protocol, assignor = LIBRDKAFKA[kind]
    common = {"group.id": group_id, "bootstrap.servers": bootstrap, "heartbeat.interval.ms": "500"}
    own_beat = {"heartbeat_interval_ms": 500} if protocol == "classic" else {}
    java.start("java", topic, {**javas, **(common if protocol == "classic" else {"group.id": group_id})})
    rdkafka = {"bootstrap": bootstrap, "group": group_id, "topic": topic, "client_id": "rdkafka"}
    with ExitStack() as stack:
        group = stack.enter_context(
            ConsumerGroup(bootstrap, group_id, [topic], auto_offset_reset="earliest", **own_beat, **ours)  # type: ignore[arg-type]
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
        generation = group.next(timeout_ms=PATIENCE_MS)
        if len(generation.assignments) == partitions:
            return generation


TRIO = ("kgctl", "kafka-go", "aiokafka")


@pytest.fixture(params=[pytest.param("kafka", marks=[pytest.mark.deep, pytest.mark.kafka]), "serve"])
def any_server(request: pytest.FixtureRequest) -> str:
    """Apache Kafka, and kgctl's own."""
    if request.param == "kafka":
        broker: KafkaBroker = request.getfixturevalue("kafka_broker")
        return broker.bootstrap
    serve: ServeFactory = request.getfixturevalue("kgctl_serve")
    return serve(topics={}).bootstrap


@pytest.mark.needs("go")
def test_kafka_go_and_aiokafka_share_a_group_whoever_leads_it(any_server: str) -> None:
    """Each in turn leaves and comes back, so that each leads once; who commits before a change reads no record again."""
    topic, group_id = unique("trio"), unique("trio")
    create_topic(any_server, topic, PARTITIONS)
    everything = {(topic, partition) for partition in range(PARTITIONS)}
    given = {"bootstrap": any_server, "group": group_id, "topic": topic, "assignor": "range"}
    with ExitStack() as stack:
        everybody: list[Member] = []
        running: dict[str, Member] = {}
        written = 0
        for departs in (None, *TRIO):
            if departs is not None:
                running.pop(departs).leave()
                wait_until(lambda: shared(running.values(), everything), f"the others have all without {departs}")
            for name in TRIO:
                if name not in running:
                    running[name] = stack.enter_context(Member(CLIENTS[name], client_id=name, **given))
                    everybody.append(running[name])
                    wait_until(lambda: shared(running.values(), everything), f"{name} has its share")
            running["kgctl"].tell("produce", count=5 * PARTITIONS, partitions=PARTITIONS)
            written += 5
            wait_until(partial(have_all, everybody, everything, written), "all records have come")
            for member in running.values():
                member.tell("commit")
            wait_until(partial(are_committed, any_server, group_id, everything, written), "everything is committed")
        assert {record: count for record, count in records(everybody).items() if count > 1} == {}
        assert [member.events for member in everybody if any(event["event"] == "error" for event in member.events)] == []


def shared(members: Iterable[Member], everything: set[Partition]) -> bool:
    """Whether they have everything between them, nothing twice, nobody nothing."""
    owned = [member.owned or set() for member in members]
    return all(owned) and set.union(*owned) == everything and sum(map(len, owned)) == len(everything)


def have_all(members: Iterable[Member], everything: set[Partition], written: int) -> bool:
    return len(records(members)) == written * len(everything)


def are_committed(bootstrap: str, group_id: str, everything: set[Partition], offset: int) -> bool:
    return committed(bootstrap, group_id) == dict.fromkeys(everything, offset)


def records(members: Iterable[Member]) -> Counter[tuple[int, int]]:
    return Counter(record for member in members for record in member.records)
