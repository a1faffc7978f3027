"""A group member on confluent-kafka."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.interop.members.wire_talk import Commands, Owned, emit, settings
from tests.support.patience import PATIENCE_S


def produce(bootstrap: str, topic: str, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % partitions)
    emit("produced", left=producer.flush(PATIENCE_S))


def commit_what_is_read(consumer: Consumer, _partitions: list[TopicPartition]) -> None:
    """So that the next owner begins where this one ended."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._NO_OFFSET:
            emit("error", text=str(error))


def main() -> None:
    given = settings()
    config: dict[str, str | int | bool | float | None] = {
        "bootstrap.servers": given.bootstrap,
        "group.id": given.group,
        "client.id": given.client_id,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 1_000,
    }
    if given.protocol == "classic":
        config |= {
            "partition.assignment.strategy": given.assignor,
            "session.timeout.ms": given.session_timeout_ms,
            "heartbeat.interval.ms": 300,
        }
    else:
        config["group.protocol"] = given.protocol
    if given.instance_id:
        config["group.instance.id"] = given.instance_id
    consumer = Consumer(config)
    if given.commit_on_revoke:
        consumer.subscribe([given.topic], on_revoke=commit_what_is_read)
    else:
        consumer.subscribe([given.topic])
    commands, owned = Commands(), Owned()
    while True:
        message = consumer.poll(0.05)
        owned.tell((entry.topic, entry.partition) for entry in consumer.assignment())
        if message is not None:
            error = message.error()
            if error is not None:
                emit("error", text=str(error))
            else:
                emit("record", partition=message.partition(), offset=message.offset())
        match commands.next():
            case {"do": "produce", "count": count, "partitions": partitions}:
                produce(given.bootstrap, given.topic, count, partitions)
            case {"do": "commit"}:
                try:
                    consumer.commit(asynchronous=False)
                    emit("committed")
                except KafkaException as refusal:
                    emit("refused", text=str(refusal))
            case {"do": "leave"}:
                break
            case _:
                continue
    consumer.close()
    emit("left")


if __name__ == "__main__":
    main()
