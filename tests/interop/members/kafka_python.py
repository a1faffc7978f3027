"""A group member on kafka-python."""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.interop.members.wire_talk import Commands, Owned, emit, settings
from tests.support.kafka_python import subscribe
from tests.support.patience import PATIENCE_S

ASSIGNORS = {"range": RangePartitionAssignor, "sticky": StickyPartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


def produce(bootstrap: str, topic: str, count: int, partitions: int) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    futures = [producer.send(topic, str(number).encode(), partition=number % partitions) for number in range(count)]
    for future in futures:
        future.get(timeout=PATIENCE_S)
    producer.close()
    emit("produced", left=0)


def main() -> None:
    given = settings()
    config: dict[str, Any] = {
        "bootstrap_servers": given.bootstrap,
        "group_id": given.group,
        "client_id": given.client_id,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "partition_assignment_strategy": [ASSIGNORS[given.assignor]],
        "session_timeout_ms": given.session_timeout_ms,
        "heartbeat_interval_ms": 300,
    }
    if given.instance_id:
        config["group_instance_id"] = given.instance_id
    consumer = KafkaConsumer(**config)
    subscribe(consumer, given.topic)
    commands, owned = Commands(), Owned()
    while True:
        # A poll that ends while a join is under way can leave kafka-python out of the group for good, with Apache Kafka as well.
        records = consumer.poll(timeout_ms=1_000)
        owned.tell((entry.topic, entry.partition) for entry in consumer.assignment())
        for batch in records.values():
            for record in batch:
                emit("record", partition=record.partition, offset=record.offset)
        match commands.next():
            case {"do": "produce", "count": count, "partitions": partitions}:
                produce(given.bootstrap, given.topic, count, partitions)
            case {"do": "commit"}:
                consumer.commit()
                emit("committed")
            case {"do": "leave"}:
                break
            case _:
                continue
    consumer.close()
    emit("left")


if __name__ == "__main__":
    main()
