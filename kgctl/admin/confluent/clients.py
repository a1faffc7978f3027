"""Producers and consumers of confluent-kafka: those of ``kgctl demo``, and the reader of the times of single records."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.admin.client import Place, Record
from kgctl.admin.confluent.calls import client_config, connection_error, explained
from kgctl.admin.results import ItemError, Results
from kgctl.errors import BrokerError, KgctlError, TimedOutError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.wire.deadline import Deadline

_QUIET: Mapping[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 200}
_POLL_S = 0.01


def produce(bootstrap: str, topic: str, records: int, partition_count: int, *, timeout_ms: int = 30_000) -> None:
    """``records`` records, dealt out to the partitions in turn, all acknowledged when this returns.

    Raises `TimedOutError` when they are not within the time, `BrokerError` with the broker's own error for one of them.
    """
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({**_QUIET, "bootstrap.servers": bootstrap, "linger.ms": 1, "message.timeout.ms": timeout_ms})
    for number in range(records):
        producer.produce(topic, f"record {number}".encode(), partition=number % partition_count, on_delivery=on_delivery)
    left = producer.flush(timeout_ms / 1000)
    if failed:
        raise BrokerError(f"cannot produce to topic '{topic}': {failed[0].str()}", topic=topic)
    if left:
        raise TimedOutError(f"{left} of {records} records to topic '{topic}' were not acknowledged in time", topic=topic)


class ConsumerTeam:
    """The members of one group in this process. Leaving the ``with`` block makes them leave the group.

    They are polled by whoever calls `consume`; in between librdkafka sends their heartbeats, so the group stays as it is. They
    take part in a rebalance only while `consume` runs.
    """

    def __init__(
        self,
        bootstrap: str,
        group_id: str,
        topics: Sequence[str],
        size: int,
        *,
        static: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """``size`` members that subscribe to ``topics``; ``static`` gives them group instance ids (``GROUP-1`` and on)."""
        self._members: list[Consumer] = []
        for number in range(1, size + 1):
            name = f"{group_id}-{number}"
            own = {"group.instance.id": name} if static else {}
            config = {**_CONSUMER, **own, "bootstrap.servers": bootstrap, "group.id": group_id, "client.id": name}
            member = Consumer({**config, **(properties or {})})
            member.subscribe(list(topics))
            self._members.append(member)

    def consume(self, records: int, *, timeout_ms: int = 60_000) -> None:
        """Poll until every member has its assignment and the topics' first ``records`` records are read, then commit that.

        What a member has read of a partition that then went to another one counts no more: it was not committed, and comes
        again. Raises `TimedOutError`.
        """
        end = time.monotonic() + timeout_ms / 1000
        while (read := sum(map(_position, self._members))) < records or not all(self.assignments()):
            if time.monotonic() > end:
                raise TimedOutError(f"the group read {read} of {records} records in {timeout_ms / 1000:g} s")
            for member in self._members:
                self._poll(member)
        for member in self._members:
            _commit(member)

    def assignments(self) -> list[tuple[TopicPartition, ...]]:
        """What each member owns, by the order of the members."""
        return [
            tuple(sorted(TopicPartition(each.topic, each.partition) for each in member.assignment())) for member in self._members
        ]

    def leave(self) -> None:
        """All members leave the group; safe to call twice."""
        while self._members:
            self._members.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.leave()

    @staticmethod
    def _poll(member: Consumer) -> None:
        for message in member.consume(500, _POLL_S):
            error = message.error()
            if error is not None and error.fatal():
                raise BrokerError(error.str())


_CONSUMER: Mapping[str, Any] = {
    **_QUIET,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "fetch.wait.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 50,
}


def _position(member: Consumer) -> int:
    """How far it is in its partitions together; one that it has read nothing of counts nothing."""
    return sum(max(each.offset, 0) for each in member.position(member.assignment()))


def _commit(member: Consumer) -> None:
    """A member that read nothing has nothing to commit, which librdkafka takes for an error."""
    try:
        member.commit(asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._NO_OFFSET:
            raise BrokerError(f"cannot commit: {error.args[0].str()}") from None


_RECORD_POLL_S = 0.05
_FATAL = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN)
_SMALL_BYTES = 65_536

_RECORD_READER: Mapping[str, Any] = {
    "group.id": "kgctl",  # the library wants one; nothing is joined or committed where partitions are assigned by hand
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "earliest",
    "queued.min.messages": 1,
    "fetch.message.max.bytes": _SMALL_BYTES,
    "fetch.wait.max.ms": 50,
}


def first_records(properties: Mapping[str, str], places: Sequence[Place], deadline: Deadline) -> Results[Place, Record | None]:
    """The first record at or after each offset, None where the log has none.

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
        self.values: dict[Place, Record | None] = {}
        self.errors: dict[Place, ItemError] = {}
        self.failure: KgctlError | None = None
        self._consumer = Consumer({**client_config(properties), **_RECORD_READER, "error_cb": self._on_error})

    def read(self, wanted: Mapping[TopicPartition, int], deadline: Deadline) -> None:
        """Read until all records are there, or the time is up."""
        assigned = [ConfluentPartition(*partition, offset) for partition, offset in wanted.items()]
        self._consumer.assign(assigned)
        self._consumer.resume(assigned)  # those of the round before are still paused
        pending = dict(wanted)
        while pending and self.failure is None and not deadline.is_over:
            for message in self._consumer.consume(len(pending), _RECORD_POLL_S):
                self._take(message, pending)

    def _take(self, message: Any, pending: dict[TopicPartition, int]) -> None:
        partition = TopicPartition(message.topic(), message.partition())
        if partition not in pending:
            return
        place = partition, pending.pop(partition)
        error = message.error()
        if error is None:
            kind, time_ms = message.timestamp()
            self.values[place] = Record(None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms, message.key(), message.value())
        elif error.code() == KafkaError._PARTITION_EOF:
            self.values[place] = None
        else:
            self.errors[place] = explained(error, partition=partition)
        self._consumer.pause([ConfluentPartition(*partition)])

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _FATAL:
            self.failure = connection_error(error)

    def close(self) -> None:
        """Leave the brokers; no group was joined."""
        self._consumer.unassign()
        self._consumer.close()
