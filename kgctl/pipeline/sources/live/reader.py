"""What collecting needs of a cluster, and the choice of who reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from kgctl.errors import AuthError, BrokerError, KgctlError, NotFoundError, RefusedError, TimedOutError
from kgctl.model.error_codes import ErrorCode
from kgctl.pipeline.sources.log.damage import Damage

OFFSETS_TOPIC = "__consumer_offsets"
ReaderName = Literal["auto", "wire", "confluent"]


@dataclass(frozen=True, slots=True)
class LogState:
    """``__consumer_offsets`` as it is. ``bounds`` has (log start, log end) of each partition; ``errors`` are partitions without.

    ``log_id`` is the topic's id in Kafka's base64 form; None where the reader cannot see it.
    """

    cluster_id: str | None
    log_id: str | None
    bounds: Mapping[int, tuple[int, int]]
    errors: Mapping[int, KgctlError] = field(default_factory=dict)


class Part(NamedTuple):
    """What came of one partition: rows of `kgctl.pipeline.store.raw.RAW`, and where to go on."""

    table: Any
    damaged: Sequence[Damage]
    next_offset: int


class LogOffsetRow(NamedTuple):
    """One sample; None is unknown."""

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

    def fetch(self, positions: Mapping[int, int], max_wait_ms: int) -> tuple[Mapping[int, Part], Mapping[int, KgctlError]]:
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
    from kgctl.wire.settings import not_covered

    why = not_covered(properties)
    if reader == "wire" or (reader == "auto" and why is None):
        from kgctl.pipeline.sources.live.wire import WireReader

        return WireReader(properties, timeout_ms), None
    from kgctl.pipeline.sources.live.confluent import ConfluentReader

    return ConfluentReader(properties, timeout_ms), why if reader == "auto" else None


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
