"""Answers about several things, what was learnt beside what failed, and the sentence for each of Kafka's errors."""

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
    """Why one thing failed: Kafka's error and a sentence for a person. ``nothing_sent``: no change of it left for the cluster."""

    code: ErrorCode
    message: str
    nothing_sent: bool = False

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

    ``unreachable`` names brokers that did not answer and whose part is missing (only a listing has those). ``flaws``: what of a
    value could not be read; the value has the rest.
    """

    values: Mapping[K, T] = field(default_factory=dict)
    errors: Mapping[K, ItemError] = field(default_factory=dict)
    unreachable: Mapping[str, ItemError] = field(default_factory=dict)
    flaws: Mapping[K, tuple[KgctlError, ...]] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """``ok``, ``partial`` (something worked and something failed) or ``error`` (nothing worked)."""
        if not self.errors and not self.unreachable and not self.flaws:
            return "ok"
        return "partial" if self.values else "error"

    def __iter__(self) -> Iterator[K]:
        return iter(self.values)


GroupResults = Results[str, T]
PartitionResults = Results[TopicPartition, T]


_SENTENCES: Mapping[ErrorCode, str] = {
    ErrorCode.GROUP_ID_NOT_FOUND: "group '{group}' does not exist",
    ErrorCode.NON_EMPTY_GROUP: "group '{group}' is not empty: it has members",
    ErrorCode.INVALID_GROUP_ID: "'{group}' is no valid group id",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not authorised for group '{group}'",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "not authorised for the cluster",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "not authorised for topic '{topic}'",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "{partition} does not exist, or this user may not see it",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "'{topic}' is no valid topic name",
    ErrorCode.LEADER_NOT_AVAILABLE: "{partition} has no leader",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "group '{group}' is subscribed to topic '{topic}': its offsets are in use",
    ErrorCode.UNKNOWN_MEMBER_ID: "group '{group}' has no member '{member}'",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata of the offset for {partition} is too long for the cluster",
    ErrorCode.REBALANCE_IN_PROGRESS: "group '{group}' is rebalancing",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "group '{group}' has no coordinator at the moment",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator of group '{group}' is still loading",
    ErrorCode.NOT_COORDINATOR: "the coordinator of group '{group}' keeps moving",
    ErrorCode.REQUEST_TIMED_OUT: "no answer in time",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster has no such operation",
}

ACTIVE_GROUP = "group '{group}' is active: its offsets can be set only while it has no members"
"""What UNKNOWN_MEMBER_ID means when offsets are committed from outside."""


def item_error(
    code: ErrorCode,
    *,
    group: str | None = None,
    partition: TopicPartition | None = None,
    member: str | None = None,
    detail: str | None = None,
) -> ItemError:
    """The error with its sentence. ``detail``, the broker's own words, is used where there is no sentence for the code."""
    sentence = _SENTENCES.get(code)
    if sentence is None or not _can_name(sentence, group, partition, member):
        return ItemError(code, detail or code.name)
    topic = partition.topic if partition else None
    return ItemError(code, sentence.format(group=group, partition=partition, topic=topic, member=member))


def other_type(group: str, kind: str) -> ItemError:
    """A group that is there but of a type whose members are not consumers; ``kind`` is what it is ("share group")."""
    return ItemError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group '{group}' is a {kind}, not a consumer group")


def _can_name(sentence: str, group: str | None, partition: TopicPartition | None, member: str | None) -> bool:
    needs = {"{group}": group, "{partition}": partition, "{topic}": partition, "{member}": member}
    return all(value is not None for name, value in needs.items() if name in sentence)
