"""`kgctl.admin.client.GroupAdmin` over a data folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from kgctl.admin.client import removal_reason
from kgctl.admin.embedded import describe
from kgctl.admin.embedded.session import EmbeddedSession
from kgctl.admin.explain import ACTIVE_GROUP, item_error
from kgctl.admin.results import GroupResults, ItemError, PartitionResults, Results
from kgctl.coordinator.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    DeleteGroups,
    DescribeGroups,
    LeaveGroup,
    ListGroups,
    MemberIdentity,
    OffsetCommit,
    OffsetCommitPartition,
    OffsetDelete,
    OffsetFetch,
)
from kgctl.coordinator.results import (
    ConsumerGroupDescribeResult,
    ConsumerGroupHeartbeatResult,
    DeleteGroupsResult,
    DescribeGroupsResult,
    LeaveGroupResult,
    ListGroupsResult,
    OffsetDeleteResult,
    OffsetFetchResult,
    PartitionErrors,
)
from kgctl.errors import NotFoundError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupDescription, GroupListing, GroupState, GroupType, MemberDescription
from kgctl.model.offsets import LogOffsets, OffsetAndMetadata
from kgctl.model.partitions import TopicPartition
from kgctl.storage.folder import DataFolder

_LEAVE_EPOCH = -1
T = TypeVar("T")


def open_embedded(path: Path, clock_ms: Callable[[], int] | None = None) -> EmbeddedGroupAdmin:
    """The groups of the data folder at ``path``; the caller closes it.

    Raises `kgctl.errors.NotFoundError` where there is no such folder, `RefusedError` while a server or another command has it
    open, `UsageError` where a newer kgctl wrote it, and `StorageError` where it is damaged.
    """
    folder = DataFolder.open(path, create=False)
    try:
        return EmbeddedGroupAdmin(folder, clock_ms or _wall_clock_ms)
    except BaseException:
        folder.close()
        raise


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000  # noqa: TID251 - this is the driver of the folder's coordinator


class EmbeddedGroupAdmin:
    """Answers from the folder's coordinator; changes are durable when a method returns. ``folder`` is closed with it."""

    def __init__(self, folder: DataFolder, clock_ms: Callable[[], int]) -> None:
        self._folder = folder
        self._session = EmbeddedSession(folder, clock_ms)

    def cluster_id(self) -> str | None:
        """A folder has none of its own."""
        return None

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """Groups of every type, by id."""
        request = ListGroups(request_id=1, states_filter=tuple(states), types_filter=tuple(types))
        answer = cast("ListGroupsResult", self._session.ask(request))
        listings = sorted(map(describe.listing, answer.groups), key=lambda found: found.group_id)
        return Results({found.group_id: found for found in listings})

    def describe_groups(self, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        """A share or streams group has the error INCONSISTENT_GROUP_PROTOCOL."""
        wanted = tuple(dict.fromkeys(group_ids))
        found = self._classic_groups(wanted)
        found |= self._consumer_groups([group for group in wanted if group not in found])
        missing = [group for group in wanted if group not in found]
        types = {group: listing.type for group, listing in self.list_groups().values.items()} if missing else {}
        errors = {group: _no_description(group, types.get(group)) for group in missing}
        return Results({group: found[group] for group in wanted if group in found}, errors)

    def list_committed_offsets(
        self, group_ids: Sequence[str], *, require_stable: bool = False
    ) -> GroupResults[Mapping[TopicPartition, OffsetAndMetadata]]:
        """A group that does not exist has none; one with an open transaction is an error where ``require_stable``."""
        values: dict[str, Mapping[TopicPartition, OffsetAndMetadata]] = {}
        errors: dict[str, ItemError] = {}
        for group in dict.fromkeys(group_ids):
            request = OffsetFetch(request_id=1, group_id=group, require_stable=require_stable)
            answer = cast("OffsetFetchResult", self._session.ask(request))
            error = answer.error or next((fetched.error for fetched in answer.offsets if fetched.error), ErrorCode.NONE)
            if error:
                errors[group] = item_error(error, group=group)
            else:
                values[group] = _committed(answer)
        return Results(values, errors)

    def list_log_offsets(self, partitions: Sequence[TopicPartition]) -> PartitionResults[LogOffsets]:
        """The bounds of the logs that the folder holds."""
        return _each(partitions, lambda partition: LogOffsets(*self._folder.topics.log_offsets(partition)))

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """None where no record is as new as that."""

        def first(partition: TopicPartition) -> int | None:
            found = self._folder.topics.offset_for_timestamp(partition, timestamp_ms)
            return None if found is None else found[0]

        return _each(partitions, first)

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions."""
        found = self._folder.topics.topics()
        names = sorted(found) if topics is None else sorted({*topics} & {*found})
        return {name: found[name].partition_count for name in names}

    def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PartitionResults[None]:
        """A group with members is NON_EMPTY_GROUP on each partition."""
        topics = self._folder.topics.topics()
        known = {p: o for p, o in offsets.items() if p.topic in topics and 0 <= p.partition < topics[p.topic].partition_count}
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        errors = {partition: item_error(unknown, partition=partition) for partition in offsets if partition not in known}
        if not known:
            return Results({}, errors)
        commits = [
            OffsetCommitPartition(
                topic=partition.topic,
                partition=partition.partition,
                offset=committed.offset,
                leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                topic_id=topics[partition.topic].topic_id,
            )
            for partition, committed in known.items()
        ]
        request = OffsetCommit(request_id=1, group_id=group_id, partitions=tuple(commits))
        answer = cast("PartitionErrors", self._session.change(request))
        return _partition_results(group_id, answer.partitions, errors)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """GROUP_SUBSCRIBED_TO_TOPIC where a member still reads the topic."""
        wanted = tuple(dict.fromkeys(partitions))
        if not wanted:
            return Results()
        request = OffsetDelete(request_id=1, group_id=group_id, partitions=wanted)
        answer = cast("OffsetDeleteResult", self._session.change(request))
        outcome = [(partition, answer.error) for partition in wanted] if answer.error else answer.partitions
        return _partition_results(group_id, outcome, {})

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""
        request = DeleteGroups(request_id=1, group_ids=tuple(dict.fromkeys(group_ids)))
        answer = cast("DeleteGroupsResult", self._session.change(request))
        errors = {group: item_error(error, group=group) for group, error in answer.groups if group is not None and error}
        return Results({group: None for group, error in answer.groups if group is not None and not error}, errors)

    def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Sequence[str] = (),
        group_instance_ids: Sequence[str] = (),
        reason: str | None = None,
    ) -> GroupResults[None]:
        """By member id or, for static members, by group instance id."""
        words = removal_reason(reason)
        identities = [MemberIdentity(member_id=member, reason=words) for member in dict.fromkeys(member_ids)]
        identities += [MemberIdentity(group_instance_id=name, reason=words) for name in dict.fromkeys(group_instance_ids)]
        if not identities:
            return Results()
        answer = cast(
            "LeaveGroupResult",
            self._session.change(LeaveGroup(request_id=1, group_id=group_id, members=tuple(identities))),
        )
        if answer.error:
            outcome = dict.fromkeys((each.group_instance_id or each.member_id for each in identities), answer.error)
        else:
            outcome = {each.group_instance_id or each.member_id: each.error for each in answer.members}
        outcome |= self._leave_consumer_group(group_id, [key for key, e in outcome.items() if e is ErrorCode.UNKNOWN_MEMBER_ID])
        errors = {key: item_error(error, group=group_id, member=key) for key, error in outcome.items() if error}
        return Results({key: None for key, error in outcome.items() if not error}, errors)

    def close(self) -> None:
        """Safe to call twice."""
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _classic_groups(self, group_ids: Sequence[str]) -> dict[str, GroupDescription]:
        answer = cast("DescribeGroupsResult", self._session.ask(DescribeGroups(request_id=1, group_ids=tuple(group_ids))))
        return {group.group_id or "": describe.classic_group(group) for group in answer.groups if not group.error}

    def _consumer_groups(self, group_ids: Sequence[str]) -> dict[str, GroupDescription]:
        if not group_ids:
            return {}
        request = ConsumerGroupDescribe(request_id=1, group_ids=tuple(group_ids))
        answer = cast("ConsumerGroupDescribeResult", self._session.ask(request))
        names = {topic.topic_id: name for name, topic in self._folder.topics.topics().items()}
        return {group.group_id: describe.consumer_group(group, names) for group in answer.groups if not group.error}

    def _leave_consumer_group(self, group_id: str, keys: Sequence[str]) -> dict[str, ErrorCode]:
        """Those of ``keys`` that are members by the consumer protocol after all leave with a last heartbeat (KIP-848)."""
        group = self._consumer_groups([group_id]).get(group_id) if keys else None
        members = {member.group_instance_id or member.member_id: member for member in group.members} if group else {}
        members |= {member.member_id: member for member in group.members} if group else {}
        return {key: self._last_heartbeat(group_id, members[key]) for key in keys if key in members}

    def _last_heartbeat(self, group_id: str, member: MemberDescription) -> ErrorCode:
        request = ConsumerGroupHeartbeat(
            request_id=1,
            group_id=group_id,
            member_id=member.member_id,
            member_epoch=_LEAVE_EPOCH,
            instance_id=member.group_instance_id,
        )
        return cast("ConsumerGroupHeartbeatResult", self._session.change(request)).error


def _no_description(group: str, kind: GroupType | None) -> ItemError:
    if kind is None:
        return item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group)
    return ItemError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group '{group}' is a {kind.value} group, not a consumer group")


def _committed(answer: OffsetFetchResult) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """librdkafka ends metadata with a NUL that is not part of it."""
    found = {
        fetched.partition: OffsetAndMetadata(fetched.offset, fetched.metadata.removesuffix("\0"), fetched.leader_epoch)
        for fetched in answer.offsets
        if fetched.offset >= 0
    }
    return dict(sorted(found.items()))


def _each(partitions: Iterable[TopicPartition], answer: Callable[[TopicPartition], T]) -> PartitionResults[T]:
    values: dict[TopicPartition, T] = {}
    errors: dict[TopicPartition, ItemError] = {}
    for partition in dict.fromkeys(partitions):
        try:
            values[partition] = answer(partition)
        except NotFoundError:
            errors[partition] = item_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=partition)
    return Results(values, errors)


def _partition_results(
    group_id: str, outcome: Iterable[tuple[TopicPartition, ErrorCode]], errors: Mapping[TopicPartition, ItemError]
) -> PartitionResults[None]:
    """A commit from outside that meets members is UNKNOWN_MEMBER_ID on the wire, which tells nobody anything."""
    values: dict[TopicPartition, None] = {}
    failed = dict(errors)
    for partition, error in outcome:
        if not error:
            values[partition] = None
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            failed[partition] = ItemError(ErrorCode.NON_EMPTY_GROUP, ACTIVE_GROUP.format(group=group_id))
        else:
            failed[partition] = item_error(error, group=group_id, partition=partition)
    return Results(values, failed)
