"""A group member on aiokafka."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.interop.members.wire_talk import Commands, Owned, emit, settings

ASSIGNORS = {"range": RangePartitionAssignor, "sticky": StickyPartitionAssignor}


async def produce(bootstrap: str, topic: str, count: int, partitions: int) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for number in range(count):
        await producer.send_and_wait(topic, str(number).encode(), partition=number % partitions)
    await producer.stop()
    emit("produced", left=0)


async def main() -> None:
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
        "metadata_max_age_ms": 1_000,
    }
    if given.instance_id:
        config["group_instance_id"] = given.instance_id
    consumer = AIOKafkaConsumer(given.topic, **config)
    await consumer.start()
    commands, owned = Commands(), Owned()
    while True:
        records = await consumer.getmany(timeout_ms=50)
        owned.tell((entry.topic, entry.partition) for entry in consumer.assignment())
        for batch in records.values():
            for record in batch:
                emit("record", partition=record.partition, offset=record.offset)
        match commands.next():
            case {"do": "produce", "count": count, "partitions": partitions}:
                await produce(given.bootstrap, given.topic, count, partitions)
            case {"do": "commit"}:
                await consumer.commit()
                emit("committed")
            case {"do": "leave"}:
                break
            case _:
                continue
    await consumer.stop()
    emit("left")


if __name__ == "__main__":
    asyncio.run(main())
