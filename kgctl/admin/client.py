"""What kgctl can do to the groups of a cluster, whatever stands behind it: a live cluster or an embedded data folder.

Every method takes several things and answers for each: a failure of one is an error beside its name (`GroupResults`), never an
exception that hides the rest. Exceptions (`kgctl.errors`) mean that nothing could be learnt at all: unreachable, timed out, not
authenticated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self, runtime_checkable

from kgctl.admin.results import GroupResults, PartitionResults, Results, Sight
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    OffsetAndMetadata,
    TopicPartition,
)

MAX_TIMESTAMP = -3
"""In place of a time: the record with the largest timestamp (KIP-734)."""
EARLIEST_LOCAL, LATEST_TIERED = -4, -5
"""In place of a time: the first record that the broker has itself, and the last that is in remote storage (KIP-405)."""

Place = tuple[TopicPartition, int]
"""An offset in the log of a partition."""


class Record(NamedTuple):
    """One record of a topic; ``timestamp_ms`` is None where it has none."""

    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None


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
        ...

    def sight(self) -> Sight:
        """Whether groups, or commits on topics, may be hidden from this user: brokers leave them out without an error."""
        ...

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """All groups of every type, sorted by id. A broker that does not answer is an error beside the rest (`unreachable`)."""
        ...

    def describe_groups(self, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        """State, members and assignment. A group that does not exist has the error GROUP_ID_NOT_FOUND."""
        ...

    def list_committed_offsets(
        self, group_ids: Sequence[str], *, require_stable: bool = False
    ) -> GroupResults[Mapping[TopicPartition, OffsetAndMetadata]]:
        """All committed offsets of each group; an unknown group has none (an empty mapping)."""
        ...

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """Log start and log end offset of each partition, in records; each partition is asked once.

        With ``read_committed`` the end is the last stable offset: where consumers of that isolation level have to stop.
        """
        ...

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """The first offset whose record's timestamp is at or after ``timestamp_ms``; None where there is no such record.

        `MAX_TIMESTAMP`, `EARLIEST_LOCAL` and `LATEST_TIERED` ask for what these mark.
        """
        ...

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        """The timestamp, in milliseconds, of the first record at or after each offset; None where there is no record."""
        ...

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions; None asks for all. Topics that do not exist are left out."""
        ...

    def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PartitionResults[None]:
        """Commit these offsets for a group without members; creates the group where there is none (callers guard against it)."""
        ...

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """Delete committed offsets. GROUP_SUBSCRIBED_TO_TOPIC where a member still reads the topic."""
        ...

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """Delete groups with all their offsets. NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""
        ...

    def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Sequence[str] = (),
        group_instance_ids: Sequence[str] = (),
        reason: str | None = None,
    ) -> GroupResults[None]:
        """Make members leave. The results are keyed by member id or, for static members, by group instance id."""
        ...

    def close(self) -> None:
        """Give connections back. Safe to call twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None: ...


@runtime_checkable
class TellsChanges(Protocol):
    """A `GroupAdmin` that hears of changes by itself, so that whoever watches groups need not wait to ask again."""

    def watch_groups(self, group_ids: Sequence[str], changed: Callable[[], None]) -> None:
        """Have ``changed`` called, from another thread, after the next change of these groups' members or assignments.

        Called before they are read, it misses no change. It holds for one change, or for the loss of the connection: then it is
        to be called again.
        """
        ...


@runtime_checkable
class ReadsRecords(Protocol):
    """A `GroupAdmin` that can read what groups read."""

    def list_records(self, places: Sequence[Place]) -> Results[Place, Record | None]:
        """The first record at or after each offset; None where there is none."""
        ...


@runtime_checkable
class TellsCommitTimes(Protocol):
    """A `GroupAdmin` that can find out when groups committed."""

    def list_commit_times(self, wanted: Mapping[str, Collection[TopicPartition]]) -> GroupResults[Mapping[TopicPartition, int]]:
        """The time of each group's latest commit on each of its partitions, in milliseconds; left out where nothing tells it."""
        ...


@runtime_checkable
class AltersManyGroups(Protocol):
    """A `GroupAdmin` that commits for many groups at the same time."""

    def alter_offsets_of(
        self, wanted: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]
    ) -> Iterator[tuple[str, PartitionResults[None]]]:
        """As ``alter_offsets``, all groups at once; each group with its results as soon as they are there.

        What is raised concerns the groups that have not been answered for by then.
        """
        ...
