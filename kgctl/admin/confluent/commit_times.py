"""When groups committed: read from the end of their partitions of ``__consumer_offsets``, as no request of Kafka's tells it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.admin.confluent.calls import client_config, connection_error, explained
from kgctl.admin.results import GroupResults, ItemError, Results
from kgctl.coordinator.config import partition_for
from kgctl.errors import KgctlError, NotFoundError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetCommitKey, OffsetCommitValue, TopicPartition
from kgctl.serde.coordinator_records import decode_key, decode_value
from kgctl.wire.deadline import Deadline

OFFSETS_TOPIC = "__consumer_offsets"
FIRST_BLOCK = 2_000
"""Records from the end that are read first; each block before it is twice as long."""

_POLL_S = 0.1
_AT_ONCE = 1_000
_READER: Mapping[str, Any] = {
    "group.id": "kgctl",  # the library wants one; nothing is joined or committed where partitions are assigned by hand
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 50,
}
_FATAL = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN)

Wanted = Mapping[str, Collection[TopicPartition]]


def commit_times(
    properties: Mapping[str, str], wanted: Wanted, partition_count: int, deadline: Deadline
) -> GroupResults[Mapping[TopicPartition, int]]:
    """Return the time of the latest commit, in milliseconds, of each group on each of its partitions.

    A commit that the log no longer has is left out. Groups whose partition could not be read in time, or at all, are errors.
    ``partition_count`` is how many partitions the offsets topic has.

    Raises:
        NotFoundError: this user sees no offsets topic.
        KgctlError: no broker takes the connection.
    """
    if not partition_count:
        raise NotFoundError(f"the topic {OFFSETS_TOPIC}, where commits are kept, is not there, or this user may not see it")
    by_partition: dict[int, set[str]] = {}
    for group_id in wanted:
        by_partition.setdefault(partition_for(group_id, partition_count), set()).add(group_id)
    reader = _Reader(properties, deadline)
    try:
        for number, groups in sorted(by_partition.items()):
            reader.read(number, {OffsetCommitKey(group, *each) for group in groups for each in wanted[group]}, groups)
    finally:
        reader.close()
    return Results(reader.values, reader.errors)


class _Reader:
    """Reads one partition after the other, each from its end backwards until every commit that is asked for has been seen."""

    def __init__(self, properties: Mapping[str, str], deadline: Deadline) -> None:
        self.values: dict[str, dict[TopicPartition, int]] = {}
        self.errors: dict[str, ItemError] = {}
        self._failure: KgctlError | None = None
        self._deadline = deadline
        self._consumer = Consumer({**client_config(properties), **_READER, "error_cb": self._on_error})

    def read(self, number: int, missing: set[OffsetCommitKey], groups: Collection[str]) -> None:
        """Read until all records are there, or the time is up."""
        partition, seen = TopicPartition(OFFSETS_TOPIC, number), dict.fromkeys(groups, False)
        self.values |= {group: {} for group in seen}
        try:
            start, end = self._consumer.get_watermark_offsets(ConfluentPartition(*partition), self._deadline.seconds_left())
            size = FIRST_BLOCK
            while missing and end > start:
                block = max(start, end - size)
                missing -= self._newest(partition, block, end, missing)
                end, size = block, size * 2
        except _NotRead as failed:
            error = failed.error
        except Exception as failed:  # noqa: BLE001 - librdkafka's, whose argument says what
            error = explained(failed.args[0], partition=partition) if isinstance(failed.args[0], KafkaError) else _late()
        else:
            return
        self.errors |= dict.fromkeys(groups, error)
        if self._failure:
            raise self._failure

    def _newest(self, partition: TopicPartition, start: int, end: int, missing: set[OffsetCommitKey]) -> set[OffsetCommitKey]:
        """The keys that the block has; those with a commit, and no tombstone after it, get their time."""
        found: dict[OffsetCommitKey, int | None] = {}
        for message in self._block(partition, start, end):
            key = decode_key(message.key() or b"\0\0")
            if isinstance(key, OffsetCommitKey) and key in missing:
                value = decode_value(key, message.value())
                found[key] = value.commit_timestamp_ms if isinstance(value, OffsetCommitValue) else None
        for key, time_ms in found.items():
            if time_ms is not None:
                self.values[key.group][TopicPartition(key.topic, key.partition)] = time_ms
        return set(found)

    def _block(self, partition: TopicPartition, start: int, end: int) -> Iterator[Message]:
        self._consumer.assign([ConfluentPartition(*partition, start)])
        while not self._deadline.is_over:
            for message in self._consumer.consume(_AT_ONCE, _POLL_S):
                error = message.error()
                if error is None and (message.offset() or 0) < end:
                    yield message
                elif error is None or error.code() == KafkaError._PARTITION_EOF:
                    return
                else:
                    raise _NotRead(explained(error, partition=partition))
            if self._failure:
                raise self._failure
            if self._is_behind(partition, end):
                return
        raise _NotRead(_late())

    def _is_behind(self, partition: TopicPartition, end: int) -> bool:
        (at,) = self._consumer.position([ConfluentPartition(*partition)])
        return bool(at.offset >= end)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _FATAL:
            self._failure = connection_error(error)

    def close(self) -> None:
        """Leave the brokers; no group was joined."""
        self._consumer.unassign()
        self._consumer.close()


class _NotRead(Exception):  # noqa: N818 - is caught here
    def __init__(self, error: ItemError) -> None:
        self.error = error


def _late() -> ItemError:
    return ItemError(ErrorCode.REQUEST_TIMED_OUT, f"{OFFSETS_TOPIC} was not read in time (--timeout)")
