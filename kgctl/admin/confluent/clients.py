"""Real producers and consumers for ``kgctl demo``: a topic with records, a group with members, offsets that were committed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from kgctl.errors import BrokerError, TimedOutError
from kgctl.model.partitions import TopicPartition

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
