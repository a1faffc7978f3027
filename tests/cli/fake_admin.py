"""A `GroupAdmin` in memory, with the protocol's semantics: what the commands are developed and tested against."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self, TypeVar

from kgctl.admin import (
    EARLIEST_LOCAL,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    GroupResults,
    ItemError,
    PartitionResults,
    Place,
    Record,
    Results,
    Sight,
    Span,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    TopicPartition,
    listing_of,
)

NODE = Node(1, "127.0.0.1", 9092)

K = TypeVar("K")
T = TypeVar("T")


def error(code: ErrorCode, message: str = "") -> ItemError:
    """An error with a message made of its code unless given."""
    return ItemError(code, message or code.name.replace("_", " ").capitalize())


@dataclass
class FakeLog:
    """One partition's log: its bounds, and the timestamps of its records as (offset, ms)."""

    start: int = 0
    end: int = 0
    timestamps: tuple[tuple[int, int], ...] = ()
    last_stable: int | None = None
    local_start: int | None = None
    tiered: int | None = None

    def offset_at(self, timestamp_ms: int) -> int | None:
        if timestamp_ms in (EARLIEST_LOCAL, LATEST_TIERED):
            return self.local_start if timestamp_ms == EARLIEST_LOCAL else self.tiered
        if timestamp_ms == MAX_TIMESTAMP:
            return max(self.timestamps, key=lambda record: record[1], default=(None, 0))[0]
        return next((offset for offset, at_ms in self.timestamps if at_ms >= timestamp_ms and offset >= self.start), None)


@dataclass
class FakeGroup:
    """One group; ``offsets`` are its commits."""

    description: GroupDescription
    offsets: dict[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)


class FakeGroupAdmin:
    """Groups and logs in dictionaries. Failures are planted in the ``*_errors`` mappings; every call is noted in ``calls``."""

    def __init__(self) -> None:
        self.groups: dict[str, FakeGroup] = {}
        self.logs: dict[TopicPartition, FakeLog] = {}
        self.group_errors: dict[str, ItemError] = {}
        self.topic_errors: dict[str, ItemError] = {}
        self.offset_errors: dict[str, ItemError] = {}
        self.log_errors: dict[TopicPartition, ItemError] = {}
        self.alter_errors: dict[TopicPartition, ItemError] = {}
        self.unreachable: dict[str, ItemError] = {}
        self.failure: Exception | None = None
        self.before_alter: Callable[[], None] | None = None
        self.calls: list[tuple[str, Any]] = []
        self.records: dict[Place, Record] = {}
        self.commit_times: dict[tuple[str, TopicPartition], int] = {}
        self.made: dict[str, str] = {}
        self.closed = 0
        self.own_cluster_id: str | None = None
        self.own_sight = Sight()

    def cluster_id(self) -> str | None:
        return self.own_cluster_id

    def topic(self, name: str, *logs: FakeLog) -> None:
        """Make a topic with these logs as its partitions."""
        for number, log in enumerate(logs):
            self.logs[TopicPartition(name, number)] = log

    def group(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        members: Iterable[MemberDescription] = (),
        **changes: Any,
    ) -> None:
        """Make a group: Stable with members, else Empty, unless ``changes`` to its description say otherwise."""
        present = tuple(sorted(members, key=lambda member: member.member_id))
        description = GroupDescription(
            group_id,
            GroupState.STABLE if present else GroupState.EMPTY,
            protocol_type="consumer" if present else "",
            assignor="range" if present else None,
            coordinator=NODE,
            members=present,
        )
        commits = {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in (offsets or {}).items()
        }
        self.groups[group_id] = FakeGroup(replace(description, **changes), commits)

    def commits(self, group_id: str) -> dict[tuple[str, int], int]:
        """The group's committed offsets, for comparison."""
        return {
            (partition.topic, partition.partition): commit.offset
            for partition, commit in sorted(self.groups[group_id].offsets.items())
        }

    def sight(self) -> Sight:
        self._called("sight", ())
        return self.own_sight

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        self._called("list_groups", (tuple(states), tuple(types)))
        found = {}
        for group_id, group in sorted(self.groups.items()):
            is_wanted = (not states or group.description.state in states) and (not types or group.description.type in types)
            if is_wanted:
                found[group_id] = listing_of(group.description)
        return Results(found, {}, dict(self.unreachable))

    def describe_groups(self, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        self._called("describe_groups", tuple(group_ids))
        return _split(group_ids, self._describe)

    def list_committed_offsets(
        self, group_ids: Sequence[str], *, require_stable: bool = False
    ) -> GroupResults[Mapping[TopicPartition, OffsetAndMetadata]]:
        self._called("list_committed_offsets", tuple(group_ids))

        def offsets(group_id: str) -> Mapping[TopicPartition, OffsetAndMetadata] | ItemError:
            if failed := self.offset_errors.get(group_id):
                return failed
            return dict(self.groups[group_id].offsets) if group_id in self.groups else {}

        return _split(group_ids, offsets)

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        self._called("list_log_offsets", tuple(partitions))

        def bounds(log: FakeLog) -> LogOffsets:
            stable = log.end if log.last_stable is None else log.last_stable
            return LogOffsets(log.start, stable if read_committed else log.end)

        return _split(partitions, lambda partition: self._log(partition, bounds))

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        self._called("list_record_times", tuple(places))

        def time(place: Place) -> int | ItemError | None:
            return self._log(place[0], lambda log: next((ms for offset, ms in log.timestamps if offset >= place[1]), None))

        return _split(places, time)

    def read_records(self, spans: Sequence[Span]) -> Results[Span, tuple[Record, ...]]:
        self._called("read_records", tuple(spans))

        def read(span: Span) -> tuple[Record, ...]:
            log = sorted((offset, each) for (partition, offset), each in self.records.items() if partition == span.partition)
            return tuple(each for offset, each in log if offset >= span.start and offset < (span.before or 2**63))[: span.most]

        return Results({span: read(span) for span in spans})

    def list_commit_times(self, wanted: Mapping[str, Collection[TopicPartition]]) -> GroupResults[Mapping[TopicPartition, int]]:
        self._called("list_commit_times", wanted)
        return _split(
            list(wanted),
            lambda group: {each: self.commit_times[group, each] for each in wanted[group] if (group, each) in self.commit_times},
        )

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        self._called("list_offsets_at", (tuple(partitions), timestamp_ms))
        return _split(partitions, lambda partition: self._log(partition, lambda log: log.offset_at(timestamp_ms)))

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        self._called("list_topics", None if topics is None else tuple(topics))
        counts: dict[str, int] = {}
        for partition in sorted(self.logs):
            counts[partition.topic] = partition.partition + 1
        return {topic: count for topic, count in counts.items() if topics is None or topic in topics}

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        return {topic: self.made[topic] for topic in topics if topic in self.made}

    def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PartitionResults[None]:
        if self.before_alter:
            self.before_alter()
        self._called("alter_offsets", (group_id, dict(offsets)))
        if group_id in self.groups and self.groups[group_id].description.members:
            return Results({}, dict.fromkeys(offsets, error(ErrorCode.UNKNOWN_MEMBER_ID)))
        if group_id not in self.groups:
            self.group(group_id)

        def alter(partition: TopicPartition) -> ItemError | None:
            if failed := self.alter_errors.get(partition):
                return failed
            if partition not in self.logs:
                return error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self.groups[group_id].offsets[partition] = offsets[partition]
            return None

        return _split(list(offsets), alter)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        self._called("delete_offsets", (group_id, tuple(partitions)))
        group = self.groups.get(group_id)

        def delete(partition: TopicPartition) -> ItemError | None:
            if group is None:
                return error(ErrorCode.GROUP_ID_NOT_FOUND)
            if partition not in self.logs:
                return error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if any(partition.topic in (member.assignment or {}) for member in group.description.members):
                return error(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "The group has members that read the topic")
            group.offsets.pop(partition, None)
            return None

        return _split(partitions, delete)

    def delete_topics(self, topics: Sequence[str]) -> Results[str, None]:
        self._called("delete_topics", topics)
        errors = {topic: self.topic_errors[topic] for topic in topics if topic in self.topic_errors}
        gone = [topic for topic in topics if topic not in errors]
        self.logs = {partition: log for partition, log in self.logs.items() if partition.topic not in gone}
        return Results(dict.fromkeys(gone), errors)

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        self._called("delete_groups", tuple(group_ids))

        def delete(group_id: str) -> ItemError | None:
            if failed := self.group_errors.get(group_id):
                return failed
            if group_id not in self.groups:
                return error(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id!r} does not exist")
            if self.groups[group_id].description.members:
                return error(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id!r} has active members")
            del self.groups[group_id]
            return None

        return _split(group_ids, delete)

    def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Sequence[str] = (),
        group_instance_ids: Sequence[str] = (),
        reason: str | None = None,
    ) -> GroupResults[None]:
        self._called("remove_members", (group_id, tuple(member_ids), tuple(group_instance_ids), reason))

        def remove(name: str) -> ItemError | None:
            group = self.groups.get(group_id)
            if group is None:
                return error(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id!r} does not exist")
            kept = [m for m in group.description.members if name not in (m.member_id, m.group_instance_id)]
            if len(kept) == len(group.description.members):
                return error(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id!r} has no member {name!r}")
            self.group(group_id, group.offsets, kept)
            return None

        return _split([*member_ids, *group_instance_ids], remove)

    def close(self) -> None:
        self.closed += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _called(self, name: str, arguments: Any) -> None:
        self.calls.append((name, arguments))
        if self.failure:
            raise self.failure

    def _describe(self, group_id: str) -> GroupDescription | ItemError:
        if failed := self.group_errors.get(group_id):
            return failed
        if group_id not in self.groups:
            return error(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id!r} does not exist")
        return self.groups[group_id].description

    def _log(self, partition: TopicPartition, answer: Callable[[FakeLog], T]) -> T | ItemError:
        if failed := self.log_errors.get(partition):
            return failed
        if partition not in self.logs:
            return error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Partition {partition} does not exist")
        return answer(self.logs[partition])


def _split(keys: Sequence[K], answer: Callable[[K], T | ItemError]) -> Results[Any, Any]:
    values: dict[Any, Any] = {}
    errors: dict[Any, ItemError] = {}
    for key in keys:
        answered = answer(key)
        if isinstance(answered, ItemError):
            errors[key] = answered
        else:
            values[key] = answered
    return Results(values, errors)
