"""What can be asked of the groups of a cluster and changed there, whatever stands behind it: a live cluster, an embedded data
folder, ZooKeeper.

Every method of `GroupAdmin` takes several things and answers for each: what was learnt beside what failed (`Results`), never an
exception that hides the rest. Exceptions (`kgctl.errors`) mean that nothing could be learnt at all: unreachable, timed out, not
authenticated. Here are too the sentence for each of Kafka's errors, and which right lacks where a user may not see all (`Sight`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from kgctl.errors import (
    AuthError,
    BrokerError,
    KgctlError,
    MisuseError,
    NotFoundError,
    RefusedError,
    TimedOutError,
    UnreachableError,
    UnsupportedError,
)
from kgctl.model.error_codes import UNSETTLED, ErrorCode
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    OffsetAndMetadata,
    TopicPartition,
)
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin.rights import Needs
    from kgctl.wire import Deadline

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@frozen_in_order
class ItemError:
    """Why one thing failed: Kafka's error and a sentence for a person. ``nothing_sent``: no change of it left for the cluster.

    ``own_code``: what Kafka has no error for, as it is told in its place.
    """

    code: ErrorCode
    message: str
    nothing_sent: bool = False
    own_code: str = ""

    def __str__(self) -> str:
        """The sentence."""
        return self.message

    def to_exception(self, *, group: str | None = None, partition: TopicPartition | None = None) -> KgctlError:
        """The error as an exception of the class that its exit code belongs to."""
        kind = _EXCEPTIONS.get(self.code, BrokerError)
        topic, number = (partition.topic, partition.partition) if partition else (None, None)
        return kind(self.message, code=self.own_code or self.code.name, group=group, topic=topic, partition=number)


_EXCEPTIONS: Mapping[ErrorCode, type[KgctlError]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: NotFoundError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NotFoundError,
    ErrorCode.UNKNOWN_TOPIC_ID: NotFoundError,
    ErrorCode.UNKNOWN_MEMBER_ID: NotFoundError,
    ErrorCode.NON_EMPTY_GROUP: RefusedError,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: RefusedError,
    ErrorCode.REBALANCE_IN_PROGRESS: RefusedError,
    ErrorCode.NETWORK_EXCEPTION: UnreachableError,
    ErrorCode.REQUEST_TIMED_OUT: TimedOutError,
    **dict.fromkeys(UNSETTLED, TimedOutError),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthError,
    ErrorCode.SASL_AUTHENTICATION_FAILED: AuthError,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedError,
}


@dataclass(frozen=True)
class Results(Generic[K, T_co]):
    """What was asked, answered: ``values`` for what worked, ``errors`` for what did not; no key is in both.

    ``unreachable`` names brokers that did not answer and whose part is missing (only a listing has those). ``flaws``: what of a
    value could not be read; the value has the rest.
    """

    values: Mapping[K, T_co] = field(default_factory=dict)
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

    def __getitem__(self, key: K | tuple[str, int]) -> T_co:
        """What was learnt of one group or partition. Raises its error where that failed; KeyError: it was not asked for."""
        error = self.errors.get(key)  # type: ignore[arg-type]
        if error is not None:
            raise self._raised(key, error)
        return self.values[key]  # type: ignore[index]

    def one(self) -> T_co:
        """The only answer, where one thing was asked. Raises its error, and `MisuseError` where there is not exactly one."""
        keys = [*self.values, *self.errors]
        if len(keys) != 1:
            raise MisuseError(f"one() is for one answer, and there are {len(keys)}: {', '.join(map(str, keys)) or 'none'}")
        return self[keys[0]]

    def raise_first(self) -> Self:
        """Return these results where nothing failed; otherwise raise the first error, as `kgctl.errors` has it."""
        for key, error in self.errors.items():
            raise self._raised(key, error)
        for broker, error in self.unreachable.items():
            raise UnreachableError(f"{broker}: {error.message}", code=error.code.name)
        return self

    def _raised(self, key: object, error: ItemError) -> KgctlError:
        if isinstance(key, tuple):
            return error.to_exception(partition=TopicPartition(*key) if len(key) == 2 and isinstance(key[0], str) else None)
        return error.to_exception(group=key if isinstance(key, str) else None)

    def __str__(self) -> str:
        """The counts, and what went wrong."""
        parts = [f"{len(self.values)} answered", *(f"{key}: {error}" for key, error in self.errors.items())]
        return "; ".join([*parts, *(f"{broker}: {error}" for broker, error in self.unreachable.items())])


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


NO_LEAVING = dict.fromkeys((GroupType.SHARE, GroupType.STREAMS), "members are removed from classic and consumer groups only")
"""Why members of groups of these types cannot be removed."""


def unfit(group: str, kind: GroupType, whys: Mapping[GroupType, str]) -> ItemError | None:
    """A group of a type that cannot be changed so, and why (``whys``, by type); None for one that can."""
    if kind not in whys:
        return None
    return ItemError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group '{group}' is a {kind.value} group: {whys[kind]}")


def _can_name(sentence: str, group: str | None, partition: TopicPartition | None, member: str | None) -> bool:
    needs = {"{group}": group, "{partition}": partition, "{topic}": partition, "{member}": member}
    return all(value is not None for name, value in needs.items() if name in sentence)


NO_SUCH_NAME = "zz.name-that-no-group-and-no-topic-has"
"""Asked for in place of all that a user may not know of."""


@frozen_in_order
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


MAX_TIMESTAMP = -3
"""In place of a time: the record with the largest timestamp (KIP-734)."""
EARLIEST_LOCAL, LATEST_TIERED = -4, -5
"""In place of a time: the first record that the broker has itself, and the last that is in remote storage (KIP-405)."""

Committed = Mapping[TopicPartition, OffsetAndMetadata]
"""What one group has committed; of a share group its start offsets."""

Place = tuple[TopicPartition, int]
"""An offset in the log of a partition."""


class Record(NamedTuple):
    """One record of a topic; ``timestamp_ms`` is None where it has none."""

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Span(NamedTuple):
    """A stretch of a partition's log: from ``start`` on, ``most`` records, all of them below ``before`` where that is given."""

    partition: TopicPartition
    start: int
    most: int = 1
    before: int | None = None


def removal_reason(reason: str | None) -> str:
    """Why members are removed, as the request says it: of 255 characters at the most, since brokers take no more."""
    return f"kgctl: {reason or 'member was removed by an admin'}"[:255]


class GroupAdmin(Protocol):
    """The one door through which commands reach groups.

    The caller closes it (or uses ``with``). A deadline given at connection covers each call as a whole: when it passes,
    `kgctl.errors.TimedOutError` is raised, or the rows that were not answered carry REQUEST_TIMED_OUT.
    """

    def cluster_id(self) -> str | None:
        """The cluster's own id; None where it has none, or it cannot be told."""

    def sight(self) -> Sight:
        """Whether groups, or commits on topics, may be hidden from this user: brokers leave them out without an error."""

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """All groups of every type, sorted by id. A broker that does not answer is an error beside the rest (`unreachable`)."""

    def describe_groups(self, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        """State, members and assignment. A group that does not exist has the error GROUP_ID_NOT_FOUND."""

    def list_committed_offsets(
        self, group_ids: Sequence[str], *, require_stable: bool = False
    ) -> GroupResults[Mapping[TopicPartition, OffsetAndMetadata]]:
        """All committed offsets of each group; an unknown group has none (an empty mapping)."""

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """Log start and log end offset of each partition, in records; each partition is asked once.

        With ``read_committed`` the end is the last stable offset: where consumers of that isolation level have to stop.
        """

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """The first offset whose record's timestamp is at or after ``timestamp_ms``; None where there is no such record.

        In place of a time: -3 for the record with the largest timestamp (KIP-734), -4 for the first that the broker has itself
        and -5 for the last in remote storage (KIP-405).
        """

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        """The timestamp, in milliseconds, of the first record at or after each place; None where there is no record.

        A place is (partition, offset).
        """

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions; None asks for all. Topics that do not exist are left out."""

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Topic -> its id: one of the same name that is made anew has another. Those that nobody tells are left out."""

    def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PartitionResults[None]:
        """Commit these offsets for a group without members; creates the group where there is none."""

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """Delete committed offsets. GROUP_SUBSCRIBED_TO_TOPIC where a member still reads the topic."""

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """Delete groups with all their offsets. NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""

    def remove_members(
        self, group_id: str, *, member_ids: Sequence[str] = (), group_instance_ids: Sequence[str] = (), reason: str | None = None
    ) -> GroupResults[None]:
        """Make members leave. The results are keyed by member id or, for static members, by group instance id."""

    def close(self) -> None:
        """Give connections back. Safe to call twice."""

    def __enter__(self) -> Self: ...

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None: ...


@runtime_checkable
class LimitsTime(Protocol):
    """A `GroupAdmin` whose calls can have one time limit together (``limit``); each has one of its own where that is None.

    No call takes all that is left (`kgctl.wire.Deadline.share`), and a broker that does not answer one is not waited for by the
    others, so that it costs its own rows only.
    """

    timeout_ms: int
    limit: Deadline | None


class Closing(ABC):
    """Closes itself at the end of a ``with``."""

    @abstractmethod
    def close(self) -> None:
        """Safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


@runtime_checkable
class TellsChanges(Protocol):
    """A `GroupAdmin` that hears of changes by itself, so that whoever watches groups need not wait to ask again."""

    def watch_groups(self, group_ids: Sequence[str], changed: Callable[[], None]) -> None:
        """Have ``changed`` called, from another thread, after the next change of these groups' members or assignments.

        Called before they are read, it misses no change. It holds for one change, or for the loss of the connection: then it is
        to be called again.
        """


@runtime_checkable
class KnowsVersions(Protocol):
    """A `GroupAdmin` of brokers that may be too old for a change, or by a way that has no such request."""

    def check_supports(self, change: Needs) -> None:
        """Raise `kgctl.errors.UnsupportedError` where ``change`` cannot be made: before a plan of it is shown as one that can."""


@runtime_checkable
class TellsRights(Protocol):
    """A `GroupAdmin` whose cluster tells beforehand which rights this user has."""

    def lacking(self, change: Needs, group_ids: Sequence[str], topics: Sequence[str]) -> Lacking:
        """The errors that ``change`` would have for want of a right; nothing where brokers do not tell."""


class Lacking(NamedTuple):
    """What a user has no right to change: the errors by group, and by topic."""

    groups: Mapping[str, ItemError] = {}
    topics: Mapping[str, ItemError] = {}

    def of(self, group_id: str, topic: str) -> ItemError | None:
        """Return why this group's commits on this topic cannot be changed; None where they can."""
        return self.groups.get(group_id) or self.topics.get(topic)


def lacking(admin: GroupAdmin, change: Needs, group_ids: Iterable[str], topics: Iterable[str] = ()) -> Lacking:
    """`TellsRights.lacking`, so that a preview fails as the deed does; nothing where nobody tells."""
    asked = list(dict.fromkeys(group_ids)), sorted({*topics})
    return admin.lacking(change, *asked) if isinstance(admin, TellsRights) and any(asked) else Lacking()


def check_supports(admin: GroupAdmin, change: Needs) -> None:
    """`KnowsVersions.check_supports`; nothing where all there is can be done."""
    if isinstance(admin, KnowsVersions):
        admin.check_supports(change)


@runtime_checkable
class ReadsRecords(Protocol):
    """A `GroupAdmin` that can read what groups read."""

    def read_records(self, spans: Sequence[Span]) -> Results[Span, tuple[Record, ...]]:
        """The records of each span, in the log's order; fewer than ``most`` where the log has no more."""


@runtime_checkable
class DeletesTopics(Protocol):
    """A `GroupAdmin` that can delete topics."""

    def delete_topics(self, topics: Sequence[str]) -> Results[str, None]:
        """Delete these. One that is gone already is no error."""


@runtime_checkable
class TellsCommitTimes(Protocol):
    """A `GroupAdmin` that can find out when groups committed."""

    def list_commit_times(self, wanted: Mapping[str, Collection[TopicPartition]]) -> GroupResults[Mapping[TopicPartition, int]]:
        """The time of each group's latest commit on each of its partitions, in milliseconds; left out where nothing tells it."""


@runtime_checkable
class AltersManyGroups(Protocol):
    """A `GroupAdmin` that commits for many groups at the same time."""

    def alter_offsets_of(self, wanted: Mapping[str, Committed]) -> Iterator[tuple[str, PartitionResults[None]]]:
        """As ``alter_offsets``, all groups at once; each group with its results as soon as they are there.

        What is raised concerns the groups that have not been answered for by then.
        """
