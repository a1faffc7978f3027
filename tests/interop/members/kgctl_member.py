"""A group member on kgctl.ConsumerGroup, which fetches nothing: confluent-kafka reads what it is assigned."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from kgctl.errors import KgctlError
from kgctl.group.consumer_group import ConsumerGroup
from kgctl.group.generation import Generation
from kgctl.group.settings import ASSIGNORS
from tests.interop.members.confluent import produce
from tests.interop.members.wire_talk import Commands, Owned, Settings, emit, settings


class Reader:
    """Reads the partitions of one generation after the other, and does what the test says meanwhile."""

    def __init__(self, given: Settings, group: ConsumerGroup) -> None:
        self._given = given
        self._group = group
        self._commands, self._owned = Commands(), Owned()
        self._positions: dict[tuple[str, int], int] = {}
        self.has_left = False
        # the group id is librdkafka's wish; without subscribe() and commits it stays out of the group
        self._consumer = Consumer({"bootstrap.servers": given.bootstrap, "group.id": "unused", "enable.auto.commit": False})

    def read(self, generation: Generation) -> None:
        self._consumer.assign([TopicPartition(*partition, offset) for partition, offset in generation.assignments.items()])
        self._owned.tell(generation.assignments)
        self._positions = {}
        while not self.has_left and not generation.ended.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None
                assert partition is not None
                assert offset is not None
                self._positions[topic, partition] = offset + 1
                emit("record", partition=partition, offset=offset)
            self._obey(generation)
        self._consumer.unassign()
        if generation.ended.is_set() and self._given.commit_on_revoke:
            self._commit(generation)

    def _commit(self, generation: Generation) -> None:
        try:
            generation.commit(self._positions)
            emit("committed")
        except KgctlError as refusal:
            emit("refused", text=refusal.message)

    def _obey(self, generation: Generation) -> None:
        match self._commands.next():
            case {"do": "produce", "count": count, "partitions": partitions}:
                produce(self._given.bootstrap, self._given.topic, count, partitions)
            case {"do": "commit"}:
                self._commit(generation)
            case {"do": "leave"}:
                self.has_left = True
            case _:
                return


def main() -> None:
    given = settings()
    is_classic = given.protocol == "classic"
    with ConsumerGroup(
        given.bootstrap,
        given.group,
        [given.topic],
        protocol="classic" if is_classic else "consumer",
        session_timeout_ms=given.session_timeout_ms if is_classic else 45_000,
        heartbeat_interval_ms=300,
        assignors=[given.assignor] if is_classic else ASSIGNORS,
        group_instance_id=given.instance_id,
        client_id=given.client_id,
        auto_offset_reset="earliest",
        partition_watch_interval_ms=1_000,
    ) as group:
        reader = Reader(given, group)
        for generation in group:
            reader.read(generation)
            if reader.has_left:
                break
    emit("left")


if __name__ == "__main__":
    main()
