"""Readers of a live cluster: what collecting needs of one, the choice of who reads, and kgctl's own connection, which reads raw
batches, so that transactions and their markers are seen as they are."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow.compute as pc

from kgctl.errors import AuthError, BrokerError, KgctlError, NotFoundError, RefusedError, TimedOutError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen, frozen_in_order
from kgctl.pipeline.sources.batches import Damage
from kgctl.pipeline.sources.parse import ParsedLog, parse_log
from kgctl.serde.record_schema import uuid_text
from kgctl.wire import Deadline
from kgctl.wire.asking import Failure, ask_leaders
from kgctl.wire.cluster import ClusterClient, ClusterLayout
from kgctl.wire.connection import Connection
from kgctl.wire.logs import EARLIEST, LATEST, Fetched, FetchLimits, fetch, list_offsets
from kgctl.wire.settings import WireSettings, not_covered

OFFSETS_TOPIC = "__consumer_offsets"
ReaderName = Literal["auto", "wire", "confluent"]


@frozen_in_order
class LogState:
    """``__consumer_offsets`` as it is. ``bounds`` has (log start, log end) of each partition; ``errors`` are partitions without.

    ``log_id`` is the topic's id in Kafka's base64 form; None where the reader cannot see it.
    """

    cluster_id: str | None
    log_id: str | None
    bounds: Mapping[int, tuple[int, int]]
    errors: Mapping[int, KgctlError] = field(default_factory=dict)


class LivePart(NamedTuple):
    """What came of one partition: rows of `kgctl.pipeline.store.tables.RAW`, and where to go on."""

    table: Any
    damaged: Sequence[Damage]
    next_offset: int


class LogOffsetRow(NamedTuple):
    """One sample of a partition's log; None is unknown."""

    topic: str
    partition: int
    log_start_offset: int | None
    log_end_offset: int | None


class LiveReader(Protocol):
    """A cluster's ``__consumer_offsets``, and the log offsets of its topics.

    All raise `UnreachableError` and `AuthError` where nothing at all can be learnt; errors of one partition are data.
    """

    def log_state(self) -> LogState:
        """Bounds and ids. Raises `NotFoundError` where the cluster has no such topic: no group ever committed."""
        ...

    def fetch(self, positions: Mapping[int, int], max_wait_ms: int) -> tuple[Mapping[int, LivePart], Mapping[int, KgctlError]]:
        """What partitions hold from their positions on, some of it; waits for news at most ``max_wait_ms``."""
        ...

    def log_offsets(self, topics: Sequence[str] | None) -> tuple[list[LogOffsetRow], list[KgctlError]]:
        """Log start and end of every partition of these topics; None asks for all topics. Deleted ones are left out."""
        ...

    def close(self) -> None:
        """Safe to call twice."""
        ...


def open_reader(properties: Mapping[str, str], timeout_ms: int, reader: ReaderName = "auto") -> tuple[LiveReader, str | None]:
    """The reader, and why it is confluent-kafka where that was not asked for (None: it is not).

    ``properties`` have librdkafka's names. ``auto``: kgctl's own connection, unless only librdkafka can log in. Raises
    `UsageError` for properties that cannot be.
    """
    from kgctl.wire.settings import not_covered, with_msk_mechanism

    known = with_msk_mechanism(properties)
    why = not_covered(known)
    if reader == "wire" or (reader == "auto" and why is None):
        return WireReader(known, timeout_ms), None
    from kgctl.pipeline.sources.confluent import ConfluentReader

    return ConfluentReader(known, timeout_ms), why if reader == "auto" else None


@frozen
class CollectOrigin:
    """A cluster to collect from. ``properties`` have librdkafka's names; ``all_topics``: sample every topic, not only those that
    groups have commits on."""

    properties: Mapping[str, str]
    reader: ReaderName = "auto"
    timeout_ms: int = 15_000
    all_topics: bool = False

    @property
    def address(self) -> str:
        """Return what the records are said to come from."""
        return self.properties["bootstrap.servers"]

    @contextmanager
    def opened(self) -> Iterator[LiveReader]:
        """Give a reader."""
        reader = open_reader(self.properties, self.timeout_ms, self.reader)[0]
        try:
            yield reader
        finally:
            reader.close()


def error_of(code: ErrorCode, message: str | None, topic: str, partition: int | None) -> KgctlError:
    """An error of Kafka's as the exception that its exit code belongs to."""
    place = topic if partition is None else f"{topic}-{partition}"
    text = f"{place}: {code.name}" + (f" ({message})" if message else "")
    return _KINDS.get(code, BrokerError)(text, code=code.name, topic=topic, partition=partition)


_KINDS: Mapping[ErrorCode, type[KgctlError]] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NotFoundError,
    ErrorCode.REQUEST_TIMED_OUT: TimedOutError,
    ErrorCode.NETWORK_EXCEPTION: TimedOutError,
    ErrorCode.OFFSET_OUT_OF_RANGE: RefusedError,
}


_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23

Bounds = tuple[int | Failure, int | Failure]


class WireReader:
    """`kgctl.pipeline.sources.live.LiveReader`. Nothing is contacted before the first call."""

    def __init__(self, properties: Mapping[str, str], timeout_ms: int) -> None:
        """Raises `UsageError` for wrong properties, `UnsupportedError` where only librdkafka can log in."""
        why = not_covered(properties)
        if why is not None:
            raise UnsupportedError(f"kgctl's own connection does not cover {why}: use --reader confluent")
        self._cluster = ClusterClient(WireSettings.from_properties(properties))
        self._timeout_ms = timeout_ms

    def log_state(self) -> LogState:
        """See `LiveReader`."""
        layout = self._layout([OFFSETS_TOPIC])
        topic = layout.topics.get(OFFSETS_TOPIC)
        code = ErrorCode(topic.error_code) if topic else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotFoundError(
                f"the cluster has no topic {OFFSETS_TOPIC} (no group ever committed), or this user may not see it"
            )
        if topic is None or code:
            raise error_of(code, None, OFFSETS_TOPIC, None)
        bounds, errors = self._bounds([TopicPartition(OFFSETS_TOPIC, number) for number in sorted(topic.leaders)])
        of_partition = {place.partition: error for place, error in errors.items()}
        found = {place.partition: bound for place, bound in bounds.items()}
        log_id = None if topic.topic_id is None else uuid_text(topic.topic_id.bytes)
        return LogState(layout.cluster_id, log_id, found, of_partition)

    def fetch(self, positions: Mapping[int, int], max_wait_ms: int) -> tuple[Mapping[int, LivePart], Mapping[int, KgctlError]]:
        """See `LiveReader`."""
        deadline = Deadline(self._timeout_ms + max_wait_ms)
        limits = FetchLimits(max_wait_ms=max_wait_ms)

        def ask(connection: Connection, wanted: list[TopicPartition]) -> Iterator[Mapping[TopicPartition, Fetched | Failure]]:
            yield fetch(connection, {place: positions[place.partition] for place in wanted}, limits, deadline)

        answers = ask_leaders(self._cluster, [TopicPartition(OFFSETS_TOPIC, number) for number in positions], ask, deadline)
        parts: dict[int, LivePart] = {}
        errors: dict[int, KgctlError] = {}
        for (topic, partition), answer in answers.items():
            if isinstance(answer, Failure):
                errors[partition] = error_of(answer.code, answer.message, topic, partition)
            else:
                parts[partition] = _part(answer, partition, positions[partition])
        return parts, errors

    def log_offsets(self, topics: Sequence[str] | None) -> tuple[list[LogOffsetRow], list[KgctlError]]:
        """See `LiveReader`."""
        if topics is not None and not topics:
            return [], []
        layout = self._layout(None if topics is None else sorted(topics))
        places = [
            TopicPartition(name, partition)
            for name, topic in sorted(layout.topics.items())
            if not topic.error_code
            for partition in sorted(topic.leaders)
        ]
        bounds, errors = self._bounds(places)
        rows = [LogOffsetRow(*place, *bounds.get(place, (None, None))) for place in places]
        return rows, [*_topic_errors(layout), *errors.values()]

    def close(self) -> None:
        """Safe to call twice."""
        self._cluster.close()

    def _layout(self, topics: list[str] | None) -> ClusterLayout:
        return self._cluster.layout(topics, Deadline(self._timeout_ms))

    def _bounds(
        self, places: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, tuple[int, int]], dict[TopicPartition, KgctlError]]:
        deadline = Deadline(self._timeout_ms)

        def ask(connection: Connection, wanted: list[TopicPartition]) -> Iterator[Mapping[TopicPartition, Bounds | Failure]]:
            for part in list_offsets(connection, wanted, (EARLIEST, LATEST), deadline):
                yield {place: _both(*bounds) for place, bounds in part.items()}

        found: dict[TopicPartition, tuple[int, int]] = {}
        errors: dict[TopicPartition, KgctlError] = {}
        for place, answer in ask_leaders(self._cluster, places, ask, deadline).items() if places else ():
            if isinstance(answer, Failure):
                errors[place] = error_of(answer.code, answer.message, *place)
            else:
                start, end = answer
                assert isinstance(start, int)
                assert isinstance(end, int)
                found[place] = (start, end)
        return found, errors


def _topic_errors(layout: ClusterLayout) -> list[KgctlError]:
    """Of topics that have none of their partitions to show; those that are deleted have none any more."""
    codes = {name: ErrorCode(topic.error_code) for name, topic in sorted(layout.topics.items()) if topic.error_code}
    return [error_of(code, None, name, None) for name, code in codes.items() if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def _both(start: int | Failure, end: int | Failure) -> Bounds | Failure:
    if isinstance(start, Failure):
        return start
    return end if isinstance(end, Failure) else (start, end)


def _part(answer: Fetched, partition: int, position: int) -> LivePart:
    parsed = parse_log(answer.records, partition)
    table = parsed.table()
    if table.num_rows and table.column("offset")[0].as_py() < position:  # a batch comes whole
        table = table.filter(pc.greater_equal(table.column("offset"), position))
    return LivePart(table, parsed.damaged, max(position, _behind(parsed)))


def _behind(parsed: ParsedLog) -> int:
    """Where to go on. Behind damage where nothing but damage came: it would come again and again."""
    if parsed.next_offset is not None:
        return parsed.next_offset
    behind = 0
    for damage in parsed.damaged:
        if damage.base_offset is not None and len(damage.data) >= _LAST_OFFSET_DELTA_AT + _LAST_OFFSET_DELTA.size:
            (delta,) = _LAST_OFFSET_DELTA.unpack_from(damage.data, _LAST_OFFSET_DELTA_AT)
            behind = max(behind, damage.base_offset + max(delta, 0) + 1)
    return behind
