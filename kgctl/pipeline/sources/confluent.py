"""Reading through confluent-kafka, for logins that only librdkafka has (GSSAPI, OAUTHBEARER).

It hands out what transactions have committed and hides their markers and producers: such a record counts from its own time on
here, not from its transaction's end. What a transaction has not ended yet is not given, nor anything behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kgctl.errors import AuthError, KgctlError, NotFoundError, TimedOutError, UnreachableError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.pipeline.sources.live import OFFSETS_TOPIC, LivePart, LogOffsetRow, LogState, error_of
from kgctl.pipeline.store.tables import RAW, rows_of
from kgctl.wire.settings import librdkafka_properties

T = TypeVar("T")

_CONFIG: Mapping[str, Any] = {
    "client.id": "kgctl",
    "group.id": "kgctl-history",  # must be given; nothing is committed and nobody joins
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "check.crcs": True,
    "log_level": 0,
    "enable.metrics.push": False,
    "reconnect.backoff.ms": 1,
    "reconnect.backoff.max.ms": 200,
}
_AT_A_TIME = 20_000
_SHORTEST_WAIT_S = 1.0
_POLL_S = 0.5
_PASSING = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT_QUEUE)
_AUTH = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)


class ConfluentReader:
    """`kgctl.pipeline.sources.live.LiveReader`. Nothing is contacted before the first call."""

    def __init__(self, properties: Mapping[str, str], timeout_ms: int) -> None:
        """Raises `UsageError` for properties that librdkafka does not take, and as `librdkafka_properties`."""
        self._timeout_s = timeout_ms / 1000
        self._fatal: KgctlError | None = None
        self._last: KafkaError | None = None
        self._assigned: dict[int, int] = {}
        try:
            self._consumer = Consumer({**_CONFIG, **librdkafka_properties(properties), "error_cb": self._on_error})
        except (KafkaException, ValueError, TypeError) as error:
            raise UsageError(f"librdkafka does not take these properties: {_text(error)}") from None

    def log_state(self) -> LogState:
        """See `LiveReader`; the topic's id is not to be seen."""
        metadata = self._blocking(lambda seconds: self._consumer.list_topics(OFFSETS_TOPIC, timeout=seconds))
        topic = metadata.topics.get(OFFSETS_TOPIC)
        if topic is None or topic.error or not topic.partitions:
            why = f": {topic.error.str()}" if topic is not None and topic.error else ""
            raise NotFoundError(
                f"the cluster has no topic {OFFSETS_TOPIC} (no group ever committed), or this user may not see it{why}"
            )
        bounds: dict[int, tuple[int, int]] = {}
        errors: dict[int, KgctlError] = {}
        for number in sorted(topic.partitions):
            start, end, error = self._bounds(OFFSETS_TOPIC, number)
            if error is not None or start is None or end is None:
                errors[number] = error or TimedOutError(f"{OFFSETS_TOPIC}-{number}: no answer", partition=number)
            else:
                bounds[number] = (start, end)
        return LogState(metadata.cluster_id or None, None, bounds, errors)

    def fetch(self, positions: Mapping[int, int], max_wait_ms: int) -> tuple[Mapping[int, LivePart], Mapping[int, KgctlError]]:
        """See `LiveReader`. Until something of every partition came, or its end, or the time is over."""
        self._assign(positions)
        until = time.monotonic() + max(max_wait_ms / 1000, _SHORTEST_WAIT_S)
        rows: dict[int, list[Message]] = {}
        ends: dict[int, int] = {}
        errors: dict[int, KgctlError] = {}
        while (left := until - time.monotonic()) > 0 and not positions.keys() <= rows.keys() | ends.keys() | errors.keys():
            for message in self._consumer.consume(_AT_A_TIME, min(left, _POLL_S)):
                self._take(message, rows, ends, errors)
            if self._fatal is not None:
                raise self._fatal
        parts = {number: _part(number, rows.get(number, ()), ends.get(number)) for number in {*rows, *ends}}
        self._assigned.update({number: part.next_offset for number, part in parts.items()})
        return parts, errors

    def log_offsets(self, topics: Sequence[str] | None) -> tuple[list[LogOffsetRow], list[KgctlError]]:
        """See `LiveReader`. One request a partition."""
        found = self._blocking(lambda seconds: self._consumer.list_topics(timeout=seconds)).topics
        rows: list[LogOffsetRow] = []
        errors: list[KgctlError] = []
        for name in sorted(found if topics is None else set(topics) & found.keys()):
            trouble = found[name].error
            if trouble is not None and trouble.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                errors.append(_error(trouble, name, None))
            for number in sorted(found[name].partitions):
                start, end, error = self._bounds(name, number)
                rows.append(LogOffsetRow(name, number, start, end))
                errors += [error] if error else []
        return rows, errors

    def close(self) -> None:
        """Safe to call twice."""
        self._consumer.close()

    def _assign(self, positions: Mapping[int, int]) -> None:
        """Only what is new, or elsewhere than it was left, begins anew."""
        moved = {number: offset for number, offset in positions.items() if self._assigned.get(number) != offset}
        if moved:
            known = [TopicPartition(OFFSETS_TOPIC, number) for number in moved if number in self._assigned]
            if known:
                self._consumer.incremental_unassign(known)
            self._consumer.incremental_assign([TopicPartition(OFFSETS_TOPIC, *place) for place in moved.items()])
            self._assigned.update(moved)

    def _take(
        self, message: Message, rows: dict[int, list[Message]], ends: dict[int, int], errors: dict[int, KgctlError]
    ) -> None:
        error, number = message.error(), message.partition()
        if number is None or number < 0:
            return
        if error is None:
            rows.setdefault(number, []).append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            ends[number] = message.offset() or 0
        elif error.code() not in _PASSING:
            errors[number] = _error(error, OFFSETS_TOPIC, number)

    def _bounds(self, topic: str, number: int) -> tuple[int | None, int | None, KgctlError | None]:
        place = TopicPartition(topic, number)
        try:
            found = self._blocking(lambda seconds: self._consumer.get_watermark_offsets(place, timeout=seconds))
        except KafkaException as error:
            return None, None, _error(error.args[0], topic, number)
        return (*found, None)

    def _blocking(self, call: Callable[[float], T]) -> T:
        """A call that waits, cut into pieces between which librdkafka can say what is wrong."""
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                return call(_POLL_S)
            except KafkaException as error:
                if error.args[0].code() not in _PASSING:
                    raise
            self._consumer.poll(0)
            if self._fatal is not None:
                raise self._fatal
            if time.monotonic() >= until:
                raise self._unreachable()

    def _unreachable(self) -> UnreachableError:
        if self._last is not None:
            return UnreachableError(_told(self._last))
        return TimedOutError(f"the cluster did not answer within {self._timeout_s:g} s")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _AUTH:
            self._fatal = AuthError(_told(error), code=ErrorCode.SASL_AUTHENTICATION_FAILED.name)
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last = error


def _part(number: int, messages: Sequence[Message], end: int | None) -> LivePart:
    columns: dict[str, list[Any]] = {
        "partition": [number] * len(messages),
        "offset": [message.offset() for message in messages],
        "timestamp_ms": [message.timestamp()[1] for message in messages],
        "key": [message.key() for message in messages],
        "value": [message.value() for message in messages],
    }
    behind = (columns["offset"][-1] + 1) if messages else 0
    return LivePart(rows_of(columns, RAW), (), max(behind, end or 0))


def _error(error: KafkaError, topic: str, number: int | None) -> KgctlError:
    try:
        return error_of(ErrorCode(error.code()), None, topic, number)
    except ValueError:
        return error_of(ErrorCode.UNKNOWN_SERVER_ERROR, error.str(), topic, number)


def _told(error: KafkaError) -> str:
    """librdkafka begins its texts with the thread's name and ends them with how often it tried."""
    text = error.str()
    _, separator, rest = text.partition("/bootstrap: ")
    return (rest if separator else text).partition(" (after ")[0]


def _text(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)
