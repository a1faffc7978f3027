"""What the partitions of a generation hold, by librdkafka's fetcher: it never joins a group, and commits nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kgctl.errors import AuthError, BrokerError, KgctlError, UnsupportedError
from kgctl.group.driver import log
from kgctl.model.groups import TopicPartition
from kgctl.model.records import TopicRecord
from kgctl.wire.settings import librdkafka_properties

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

POLL_S = 0.1
"""How long a look for records may take: so soon is the end of a generation noticed."""


class Fetcher:
    """One consumer of librdkafka, made when records are first asked for. For one thread at a time."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._consumer: Consumer | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is anything to close."""
        return self._consumer is not None

    def begin(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, from these offsets on, and no others.

        Raises `UnsupportedError` for settings that librdkafka has not, and what the maker of a login's token raises.
        """
        from confluent_kafka import Consumer, KafkaException
        from confluent_kafka import TopicPartition as Place

        if self._consumer is None:
            try:
                self._consumer = Consumer(librdkafka_properties(self._properties))
            except KafkaException as error:
                words = f"records() reads by librdkafka, which does not take these properties ({error}): use another client"
                raise UnsupportedError(words) from None
        self._consumer.assign([Place(topic, partition, offset) for (topic, partition), offset in positions.items()])

    def fetch(self, max_records: int) -> list[TopicRecord]:
        """Return what is there, waiting a moment for the first; none where there is none. Raises what does not pass."""
        consumer = self._consumer
        assert consumer is not None
        first = consumer.poll(POLL_S)
        if first is None:
            return []
        more = consumer.consume(max_records - 1, 0) if max_records > 1 else []
        return [record for message in (first, *more) if (record := _read(message)) is not None]

    def pause(self) -> None:
        """Read nothing until the next `begin`."""
        if self._consumer is not None:
            self._consumer.unassign()

    def close(self) -> None:
        """Give the connections back. Safe to call twice."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


def _read(message: Message) -> TopicRecord | None:
    error = message.error()
    if error is not None:
        _judge(error)
        return None
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    headers = tuple((str(each[0]), _bytes(each[1])) for each in message.headers() or ())
    return TopicRecord(topic, partition, offset, _bytes(message.key()), _bytes(message.value()), headers, message.timestamp()[1])


def _bytes(value: object) -> bytes | None:
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None


def _judge(error: KafkaError) -> None:
    """Raise what does not pass; librdkafka goes on trying with all else."""
    name = error.name()
    if name.endswith("AUTHORIZATION_FAILED"):
        raise AuthError(f"not authorised to read: {error.str()}", code=name)
    if error.fatal() or name in _FOR_GOOD:
        kind = KgctlError if name.startswith("_") else BrokerError
        raise kind(f"the records cannot be read: {error.str()}", code=name)
    log.info("%s", error.str())


_FOR_GOOD = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE", "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"})
