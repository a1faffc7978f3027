"""The times of single records, read by a consumer that is in no group: librdkafka knows every compression and old formats."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.admin.client import Place
from kgctl.admin.confluent.calls import client_config, connection_error, explained
from kgctl.admin.results import ItemError, Results
from kgctl.errors import KgctlError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.wire.deadline import Deadline

_POLL_S = 0.05
_FATAL = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN)
_SMALL_BYTES = 65_536

_CONSUMER: Mapping[str, Any] = {
    "group.id": "kgctl",  # the library wants one; nothing is joined or committed where partitions are assigned by hand
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "earliest",
    "queued.min.messages": 1,
    "fetch.message.max.bytes": _SMALL_BYTES,
    "fetch.wait.max.ms": 50,
}


def record_times(properties: Mapping[str, str], places: Sequence[Place], deadline: Deadline) -> Results[Place, int | None]:
    """The timestamp of the first record at or after each offset, None where the log has none.

    Each partition is read at one offset at a time: as many rounds as there are offsets in one partition. What is not read in
    time is REQUEST_TIMED_OUT.

    Raises:
        KgctlError: no broker takes the connection.
    """
    waiting: dict[TopicPartition, deque[int]] = {}
    for partition, offset in sorted(set(places)):
        waiting.setdefault(partition, deque()).append(offset)
    reader = _Reader(properties)
    try:
        while waiting and not deadline.is_over and reader.failure is None:
            reader.read({partition: offsets.popleft() for partition, offsets in waiting.items()}, deadline)
            waiting = {partition: offsets for partition, offsets in waiting.items() if offsets}
    finally:
        reader.close()
    if reader.failure and not reader.values:
        raise reader.failure
    late = ItemError(ErrorCode.REQUEST_TIMED_OUT, "the record was not read in time")
    errors = {place: late for place in places if place not in reader.values}
    return Results(reader.values, errors | reader.errors)


class _Reader:
    """Reads one record of each partition of a round. ``failure`` concerns the whole cluster."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.values: dict[Place, int | None] = {}
        self.errors: dict[Place, ItemError] = {}
        self.failure: KgctlError | None = None
        self._consumer = Consumer({**client_config(properties), **_CONSUMER, "error_cb": self._on_error})

    def read(self, wanted: Mapping[TopicPartition, int], deadline: Deadline) -> None:
        """Read until all are there, or time is up."""
        assigned = [ConfluentPartition(*partition, offset) for partition, offset in wanted.items()]
        self._consumer.assign(assigned)
        self._consumer.resume(assigned)  # those of the round before are still paused
        pending = dict(wanted)
        while pending and self.failure is None and not deadline.is_over:
            for message in self._consumer.consume(len(pending), _POLL_S):
                self._take(message, pending)

    def _take(self, message: Any, pending: dict[TopicPartition, int]) -> None:
        partition = TopicPartition(message.topic(), message.partition())
        if partition not in pending:
            return
        place = partition, pending.pop(partition)
        error = message.error()
        if error is None:
            kind, time_ms = message.timestamp()
            self.values[place] = None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms
        elif error.code() == KafkaError._PARTITION_EOF:
            self.values[place] = None
        else:
            self.errors[place] = explained(error, partition=partition)
        self._consumer.pause([ConfluentPartition(*partition)])

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _FATAL:
            self.failure = connection_error(error)

    def close(self) -> None:
        """Leave the brokers; nothing was joined."""
        self._consumer.unassign()
        self._consumer.close()
