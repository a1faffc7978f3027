"""Exactly-once as librdkafka does it: consume, produce and commit in one transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeFactory, ServeProcess
from tests.support.wire.raw_client import RawClient
from tests.wire.differential.about_transactions import Producer as RawProducer
from tests.wire.differential.probe import Probe

pytestmark = pytest.mark.interop

IN, OUT, GROUP = "in", "out", "g"
OFFSET_FETCH, UNSTABLE = 9, 88


def transactional(server: ServeProcess, transactional_id: str = "tx") -> Producer:
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(PATIENCE_S)
    return producer


def read(server: ServeProcess, isolation_level: str) -> list[bytes]:
    """Everything in OUT up to its end, as this kind of reader sees it."""
    config = {
        "bootstrap.servers": server.bootstrap,
        "group.id": "readers",
        "isolation.level": isolation_level,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(OUT, 0, 0)])
    values: list[bytes] = []
    ended: list[Any] = []

    def step() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            ended.append(message.error())
        elif message is not None:
            values.append(message.value() or b"")
        return bool(ended)

    wait_until(step, "the end of the partition")
    consumer.close()
    return values


def consumer_of(server: ServeProcess) -> Consumer:
    config = {"bootstrap.servers": server.bootstrap, "group.id": GROUP, "enable.auto.commit": False}
    consumer = Consumer({**config, "auto.offset.reset": "earliest"})
    consumer.subscribe([IN])
    return consumer


def test_records_and_offsets_count_together_or_not_at_all(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(topics={IN: 1, OUT: 1})
    source = Producer({"bootstrap.servers": server.bootstrap})
    for number in range(4):
        source.produce(IN, str(number).encode())
    source.flush(PATIENCE_S)
    consumer, producer = consumer_of(server), transactional(server)
    taken: list[Any] = []

    def take() -> bool:
        taken.extend(consumer.consume(4, 0.1))
        return len(taken) == 4

    wait_until(take, "four records")

    for number, commits in enumerate((True, False)):
        producer.begin_transaction()
        producer.produce(OUT, b"good" if commits else b"bad")
        position = [TopicPartition(IN, 0, 2 + number)]
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), PATIENCE_S)
        if commits:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)

    assert read(server, "read_committed") == [b"good"]
    assert read(server, "read_uncommitted") == [b"good", b"bad"]
    assert consumer.committed([TopicPartition(IN, 0)], PATIENCE_S)[0].offset == 2

    consumer.close()


def test_a_second_producer_of_the_same_id_fences_the_first(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(topics={OUT: 1})
    first = transactional(server)
    first.begin_transaction()
    first.produce(OUT, b"lost")
    first.flush(PATIENCE_S)
    second = transactional(server)
    with pytest.raises(KafkaException):
        first.commit_transaction(PATIENCE_S)
    second.begin_transaction()
    second.produce(OUT, b"kept")
    second.commit_transaction(PATIENCE_S)

    assert read(server, "read_committed") == [b"kept"]


def test_an_open_transaction_outlives_the_server(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    """Its records stay hidden and its offsets pending over a kill, until its producer ends it."""

    def fetched(server: ServeProcess, *, stable: bool) -> tuple[int, int]:
        topics = [{"name": "t", "partition_indexes": [0]}]
        with RawClient(server.bootstrap) as raw:
            values = {"groups": [{"group_id": "t", "topics": topics}], "require_stable": stable}
            partition = raw.call(OFFSET_FETCH, 8, values).groups[0].topics[0].partitions[0]
        return partition.committed_offset, int(partition.error_code)

    server = kgctl_serve(topics={OUT: 1}, data=tmp_path)
    producer = RawProducer(Probe(server.bootstrap), 3, "t")
    producer.add_partition()
    producer.write(4)
    producer.add_group()
    producer.commit_offset(7)

    assert fetched(server, stable=True) == (-1, UNSTABLE)

    producer.probe.close()
    server.kill()
    again = kgctl_serve(data=tmp_path)

    assert fetched(again, stable=True) == (-1, UNSTABLE)

    producer.probe = Probe(again.bootstrap)
    producer.look()
    before = [answer for _, answer in producer.probe.answers if "responses" in answer]

    assert {entry["responses"][0]["partitions"][0]["last_stable_offset"] for entry in before} == {0}

    producer.end(committed=True)

    assert fetched(again, stable=True) == (7, 0)

    producer.probe.answers.clear()
    producer.look()
    after = [answer for _, answer in producer.probe.answers if "responses" in answer]

    assert {entry["responses"][0]["partitions"][0]["last_stable_offset"] for entry in after} == {5}

    producer.probe.close()
