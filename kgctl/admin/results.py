"""Results of asking about several things at once: what was learnt, and what failed, side by side."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kgctl.errors import (
    AuthError,
    BrokerError,
    KgctlError,
    NotFoundError,
    RefusedError,
    TimedOutError,
    UnsupportedError,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemError:
    """Why one thing failed: Kafka's error and one sentence for a person."""

    code: ErrorCode
    message: str

    def to_exception(self, *, group: str | None = None, partition: TopicPartition | None = None) -> KgctlError:
        """The error as an exception of the class that its exit code belongs to."""
        kind = _EXCEPTIONS.get(self.code, BrokerError)
        topic, number = (partition.topic, partition.partition) if partition else (None, None)
        return kind(self.message, code=self.code.name, group=group, topic=topic, partition=number)


_EXCEPTIONS: Mapping[ErrorCode, type[KgctlError]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: NotFoundError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NotFoundError,
    ErrorCode.UNKNOWN_TOPIC_ID: NotFoundError,
    ErrorCode.UNKNOWN_MEMBER_ID: NotFoundError,
    ErrorCode.NON_EMPTY_GROUP: RefusedError,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: RefusedError,
    ErrorCode.REBALANCE_IN_PROGRESS: RefusedError,
    ErrorCode.REQUEST_TIMED_OUT: TimedOutError,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: TimedOutError,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: TimedOutError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.SASL_AUTHENTICATION_FAILED: AuthError,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedError,
}


@dataclass(frozen=True)
class Results(Generic[K, T]):
    """What was asked, answered: ``values`` for what worked, ``errors`` for what did not; no key is in both.

    ``unreachable`` names brokers that did not answer and whose part is missing (only a listing has those).
    """

    values: Mapping[K, T] = field(default_factory=dict)
    errors: Mapping[K, ItemError] = field(default_factory=dict)
    unreachable: Mapping[str, ItemError] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """``ok``, ``partial`` (something worked and something failed) or ``error`` (nothing worked)."""
        if not self.errors and not self.unreachable:
            return "ok"
        return "partial" if self.values else "error"

    def __iter__(self) -> Iterator[K]:
        return iter(self.values)


GroupResults = Results[str, T]
PartitionResults = Results[TopicPartition, T]
