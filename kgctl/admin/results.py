"""Answers about several things, what was learnt beside what failed, the sentence for each of Kafka's errors, and which right
lacks where a user may not see all of a cluster."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from kgctl.model.groups import TopicPartition

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


NO_SUCH_NAME = "zz.name-that-no-group-and-no-topic-has"
"""Asked for in place of all that a user may not know of."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Whether a user sees every group and every topic; where not, groups, or commits on topics, may be hidden from him.

    One who may describe everything but some topics that are denied to him by name cannot be told from one who sees all.
    """

    all_groups: bool = True
    all_topics: bool = True
    user: str | None = None

    @property
    def lacks_groups(self) -> str:
        """Which right lacks to see every group; "" where none does."""
        return "" if self.all_groups else f"{shown_user(self.user)} lacks the right DESCRIBE on all groups"

    @property
    def lacks_topics(self) -> str:
        """Which right lacks to see the commits on every topic; "" where none does."""
        return "" if self.all_topics else f"{shown_user(self.user)} lacks the right DESCRIBE on all topics"


def shown_user(user: str | None) -> str:
    """``user 'alice'``, or ``this user`` where the name is not known."""
    return f"user {user!r}" if user else "this user"


@dataclass(frozen=True, slots=True)
class Needs:
    """The rights that a request needs: the operation on the group, and that on the topics, by Kafka's names; "" for none."""

    group: str = ""
    topic: str = ""

    def _lacking(self, code: ErrorCode) -> tuple[str, str]:
        if code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return self.group, "group"
        return (self.topic, "topic") if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else ("", "")

    def told(self, results: Results[K, T], user: str | None) -> Results[K, T]:
        """The results; errors for want of a right name it, and the user."""
        if not any(self._lacking(error.code)[0] for error in results.errors.values()):
            return results
        return replace(results, errors=self.told_errors(results.errors, user))

    def told_errors(self, errors: Mapping[K, ItemError], user: str | None) -> dict[K, ItemError]:
        """Return what `told` returns, of the errors alone."""
        return {key: self._told(error, user) for key, error in errors.items()}

    def _told(self, error: ItemError, user: str | None) -> ItemError:
        operation, kind = self._lacking(error.code)
        if not operation:
            return error
        return replace(error, message=f"{error.message}: {shown_user(user)} lacks the right {operation} on the {kind}")


LOOK = Needs("DESCRIBE", "DESCRIBE")
READ = Needs(topic="READ")
COMMIT = Needs("READ", "READ")
DELETE_GROUP = Needs("DELETE")
DELETE_OFFSETS = Needs("DELETE", "READ")
REMOVE_MEMBERS = Needs("READ")
