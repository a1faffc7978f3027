"""`kgctl.admin.GroupAdmin` over a data folder."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from kgctl.admin import (
    ACTIVE_GROUP,
    EARLIEST_LOCAL,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    Closing,
    Committed,
    GroupResults,
    ItemError,
    PartitionResults,
    Place,
    Results,
    Sight,
    item_error,
    removal_reason,
)
from kgctl.admin.descriptions import classic_member, consumer_member, description
from kgctl.coordinator.config import CoordinatorConfig, setting_names
from kgctl.coordinator.effects import AppendRecord, Effect, GroupFailed, Reply
from kgctl.coordinator.share.no_op import outcome_without_state
from kgctl.errors import KgctlError, NotFoundError, UnsupportedError
from kgctl.model import requests
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    Assignment,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    MemberDescription,
    OffsetAndMetadata,
    TopicPartition,
)
from kgctl.model.settings import MAX_INT
from kgctl.model.share_requests import DeleteShareState
from kgctl.serde.record_batch import iterate_records
from kgctl.storage.folder import DataFolder, load_coordinator, open_folder

_REQUEST_ID = 1
_OUTCOME_ID = 2

log = logging.getLogger(__name__)


class EmbeddedSession:
    """Loads the coordinator as it was when the folder was last served, and lets its clock run on to now.

    So members whose session has ended since are gone, as they would be had the server stayed up, and a group whose consumers died
    with the server can be reset. What that changes is written only together with the first change that the user asks for: looking
    at a folder leaves it as it is. Offsets that are older than their retention stay until a server runs: nobody expects a
    reset of one group to delete those of another. In a folder whose time stands still, as a simulation leaves it, nothing passes.
    """

    def __init__(self, folder: DataFolder, clock_ms: Callable[[], int]) -> None:
        self._folder = folder
        frozen_ms = folder.settings.frozen_ms()
        self._clock_ms = clock_ms = clock_ms if frozen_ms is None else lambda: frozen_ms
        config = _config(folder)
        now_ms = clock_ms()
        served_until_ms = min(now_ms, (folder.last_alive_ms or 0) if frozen_ms is None else frozen_ms)
        # No session is longer than the longest allowed: from further back, the clock would run for nothing.
        start_ms = max(served_until_ms, now_ms - config.group_max_session_timeout_ms)
        never = replace(config, offsets_retention_check_interval_ms=MAX_INT)
        self._coordinator = load_coordinator(folder, never, str, start_ms)
        self._unwritten: list[AppendRecord] = []
        self._keep(self._coordinator.expire(now_ms))

    def ask(self, kind: type[requests.Request], **fields: Any) -> Any:
        """The result of a request that changes nothing."""
        effects = self._coordinator.handle(kind(request_id=_REQUEST_ID, **fields), self._clock_ms())
        self._keep(effects)
        return _answer(effects)

    def change(self, kind: type[requests.Request], **fields: Any) -> Any:
        """The result of a request, once all that it changed is durable. Raises `kgctl.errors.StorageError`."""
        now_ms = self._clock_ms()
        effects = self._coordinator.handle(kind(request_id=_REQUEST_ID, **fields), now_ms)
        for effect in effects:
            # Nobody but a server has the state of share groups.
            if isinstance(effect, DeleteShareState):
                effects += self._coordinator.handle(outcome_without_state(effect, _OUTCOME_ID), now_ms)
        self._keep(effects)
        self._folder.record_log.append(self._unwritten, now_ms)
        self._unwritten.clear()
        return _answer(effects)

    def _keep(self, effects: Sequence[Effect]) -> None:
        """Work that the coordinator wants done in the background is left to the next server, which starts it anew."""
        for effect in effects:
            if isinstance(effect, GroupFailed):
                log.error("group %s: a timer failed, the group goes on: %s", effect.group_id, effect.error)
        self._unwritten += [effect for effect in effects if isinstance(effect, AppendRecord)]


def _config(folder: DataFolder) -> CoordinatorConfig:
    """The settings that the folder was last served with."""
    known = set(setting_names())
    kept = folder.settings.broker_properties()
    return CoordinatorConfig.from_properties({name: value for name, value in kept.items() if name in known})


def _answer(effects: Sequence[Effect]) -> requests.Result:
    return next(effect.result for effect in effects if isinstance(effect, Reply) and effect.request_id == _REQUEST_ID)


def listing(group: requests.ListedGroup) -> GroupListing:
    """Return a group as an entry of a listing."""
    return GroupListing(group.group_id, group.protocol_type, GroupState(group.state), GroupType(group.type))


def classic_group(group: requests.DescribedGroup) -> GroupDescription:
    """Return the description of a group of the classic protocol."""
    members = (classic_member(group, each, each.metadata, each.assignment) for each in group.members)
    return description(group, group.state, GroupType.CLASSIC, members)


def consumer_group(group: requests.ConsumerGroupDescribedGroup, names: Mapping[UUID, str]) -> GroupDescription:
    """A group of the consumer protocol; ``names`` are those of the topics, of which one may have been deleted."""
    members = (consumer_member(each, partial(_by_topic, names)) for each in group.members)
    return description(group, group.state, GroupType.CONSUMER, members)


def _by_topic(names: Mapping[UUID, str], assignment: requests.TopicPartitions) -> Assignment:
    named = {names[topic_id]: tuple(sorted(partitions)) for topic_id, partitions in assignment if topic_id in names}
    return dict(sorted(named.items()))


_LEAVE_EPOCH = -1
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def open_embedded(path: Path, clock_ms: Callable[[], int] | None = None) -> EmbeddedGroupAdmin:
    """The groups of the data folder at ``path``; the caller closes it.

    Raises `kgctl.errors.NotFoundError` where there is no such folder, `RefusedError` while a server or another command has it
    open, `UsageError` where a newer kgctl wrote it, and `StorageError` where it is damaged.
    """
    folder = open_folder(path, create=False)
    try:
        return EmbeddedGroupAdmin(folder, clock_ms or _wall_clock_ms)
    except BaseException:
        folder.close()
        raise


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000  # noqa: TID251 - this is the driver of the folder's coordinator


class EmbeddedGroupAdmin(Closing):
    """Answers from the folder's coordinator; changes are durable when a method returns. ``folder`` is closed with it."""

    def __init__(self, folder: DataFolder, clock_ms: Callable[[], int]) -> None:
        self._folder = folder
        self._session = EmbeddedSession(folder, clock_ms)

    def cluster_id(self) -> str | None:
        """Return None: a folder has no id of a cluster."""
        return None

    def sight(self) -> Sight:
        """Return that nothing is hidden: a folder knows no rights."""
        return Sight()

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """Groups of every type, by id."""
        answer = self._session.ask(requests.ListGroups, states_filter=tuple(states), types_filter=tuple(types))
        listings = sorted(map(listing, answer.groups), key=lambda found: found.group_id)
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

    def list_committed_offsets(self, group_ids: Sequence[str], *, require_stable: bool = False) -> GroupResults[Committed]:
        """A group that does not exist has none; one with an open transaction is an error where ``require_stable``."""
        values: dict[str, Committed] = {}
        errors: dict[str, ItemError] = {}
        for group in dict.fromkeys(group_ids):
            answer = self._session.ask(requests.OffsetFetch, group_id=group, require_stable=require_stable)
            error = answer.error or next((fetched.error for fetched in answer.offsets if fetched.error), ErrorCode.NONE)
            if error:
                errors[group] = item_error(error, group=group)
            else:
                values[group] = _committed(answer)
        return Results(values, errors)

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """The bounds of the logs that the folder holds; which transactions are open only its server knows."""
        if read_committed:
            raise UnsupportedError("a data folder without its server has no last stable offsets")
        return _each(partitions, lambda partition: LogOffsets(*self._folder.topics.log_offsets(partition)))

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """Return the first offset at or after the time; None where no record is as new as that."""
        topics = self._folder.topics

        def first(partition: TopicPartition) -> int | None:
            if timestamp_ms in (EARLIEST_LOCAL, LATEST_TIERED):  # all is local
                return topics.log_offsets(partition)[0] if timestamp_ms == EARLIEST_LOCAL else None
            is_newest = timestamp_ms == MAX_TIMESTAMP
            found = (
                topics.offset_of_max_timestamp(partition) if is_newest else topics.offset_for_timestamp(partition, timestamp_ms)
            )
            return None if found is None else found[0]

        return _each(partitions, first)

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        """From the folder's logs; a record whose compression kgctl lacks is an error."""
        values: dict[Place, int | None] = {}
        errors: dict[Place, ItemError] = {}
        for partition, offset in dict.fromkeys(places):
            try:
                batches = self._folder.topics.read_batches(partition, offset, 1)
                records = iterate_records(batches) if batches else iter(())
                values[partition, offset] = next((each.timestamp_ms for each in records if each.offset >= offset), None)
            except (KgctlError, KeyError, ValueError) as error:
                errors[partition, offset] = ItemError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{partition}: cannot read it: {error}")
        return Results(values, errors)

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions."""
        found = self._folder.topics.topics()
        names = sorted(found) if topics is None else sorted({*topics} & {*found})
        return {name: found[name].partition_count for name in names}

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Of the topics that the folder knows."""
        found = self._folder.topics.topics()
        return {name: str(found[name].topic_id) for name in topics if name in found}

    def alter_offsets(self, group_id: str, offsets: Committed) -> PartitionResults[None]:
        """A group with members is NON_EMPTY_GROUP on each partition."""
        topics = self._folder.topics.topics()
        known = {p: o for p, o in offsets.items() if p.topic in topics and 0 <= p.partition < topics[p.topic].partition_count}
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        errors = {partition: item_error(unknown, partition=partition) for partition in offsets if partition not in known}
        if not known:
            return Results({}, errors)
        commits = [
            requests.OffsetCommitPartition(
                topic=partition.topic,
                partition=partition.partition,
                offset=committed.offset,
                leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                topic_id=topics[partition.topic].topic_id,
            )
            for partition, committed in known.items()
        ]
        answer = self._session.change(requests.OffsetCommit, group_id=group_id, partitions=tuple(commits))
        return _partition_results(group_id, answer.partitions, errors)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """GROUP_SUBSCRIBED_TO_TOPIC where a member still reads the topic."""
        wanted = tuple(dict.fromkeys(partitions))
        if not wanted:
            return Results()
        answer = self._session.change(requests.OffsetDelete, group_id=group_id, partitions=wanted)
        outcome = [(partition, answer.error) for partition in wanted] if answer.error else answer.partitions
        return _partition_results(group_id, outcome, {})

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""
        answer = self._session.change(requests.DeleteGroups, group_ids=tuple(dict.fromkeys(group_ids)))
        return _sorted_out((group, error and item_error(error, group=group)) for group, error in answer.groups)

    def remove_members(
        self, group_id: str, *, member_ids: Sequence[str] = (), group_instance_ids: Sequence[str] = (), reason: str | None = None
    ) -> GroupResults[None]:
        """By member id or, for static members, by group instance id."""
        words = removal_reason(reason)
        identities = [requests.MemberIdentity(member_id=member, reason=words) for member in dict.fromkeys(member_ids)]
        identities += [
            requests.MemberIdentity(group_instance_id=name, reason=words) for name in dict.fromkeys(group_instance_ids)
        ]
        if not identities:
            return Results()
        answer = self._session.change(requests.LeaveGroup, group_id=group_id, members=tuple(identities))
        if answer.error:
            outcome = dict.fromkeys((each.group_instance_id or each.member_id for each in identities), answer.error)
        else:
            outcome = {each.group_instance_id or each.member_id: each.error for each in answer.members}
        outcome |= self._leave_consumer_group(group_id, [key for key, e in outcome.items() if e is ErrorCode.UNKNOWN_MEMBER_ID])
        return _sorted_out((key, error and item_error(error, group=group_id, member=key)) for key, error in outcome.items())

    def close(self) -> None:
        """Safe to call twice."""
        self._folder.close()

    def _classic_groups(self, group_ids: Sequence[str]) -> dict[str, GroupDescription]:
        answer = self._session.ask(requests.DescribeGroups, group_ids=tuple(group_ids))
        return {group.group_id or "": classic_group(group) for group in answer.groups if not group.error}

    def _consumer_groups(self, group_ids: Sequence[str]) -> dict[str, GroupDescription]:
        if not group_ids:
            return {}
        answer = self._session.ask(requests.ConsumerGroupDescribe, group_ids=tuple(group_ids))
        names = {topic.topic_id: name for name, topic in self._folder.topics.topics().items()}
        return {group.group_id: consumer_group(group, names) for group in answer.groups if not group.error}

    def _leave_consumer_group(self, group_id: str, keys: Sequence[str]) -> dict[str, ErrorCode]:
        """Those of ``keys`` that are members by the consumer protocol after all leave with a last heartbeat (KIP-848)."""
        group = self._consumer_groups([group_id]).get(group_id) if keys else None
        members = {member.group_instance_id or member.member_id: member for member in group.members} if group else {}
        members |= {member.member_id: member for member in group.members} if group else {}
        return {key: self._last_heartbeat(group_id, members[key]) for key in keys if key in members}

    def _last_heartbeat(self, group_id: str, member: MemberDescription) -> ErrorCode:
        fields = {"member_id": member.member_id, "member_epoch": _LEAVE_EPOCH, "instance_id": member.group_instance_id}
        error: ErrorCode = self._session.change(requests.ConsumerGroupHeartbeat, group_id=group_id, **fields).error
        return error


def _no_description(group: str, kind: GroupType | None) -> ItemError:
    if kind is None:
        return item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group)
    return ItemError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group '{group}' is a {kind.value} group, not a consumer group")


def _committed(answer: requests.OffsetFetchResult) -> Committed:
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

    def told(partition: TopicPartition, error: ErrorCode) -> ItemError | ErrorCode:
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            return ItemError(ErrorCode.NON_EMPTY_GROUP, ACTIVE_GROUP.format(group=group_id))
        return error and item_error(error, group=group_id, partition=partition)

    found = _sorted_out((partition, told(partition, error)) for partition, error in outcome)
    return Results(found.values, {**errors, **found.errors})


def _sorted_out(outcome: Iterable[tuple[K, ItemError | ErrorCode]]) -> Results[K, None]:
    """What was done, apart from what failed; `ErrorCode.NONE` is no failure."""
    found = dict(outcome)
    errors = {key: error for key, error in found.items() if isinstance(error, ItemError)}
    return Results({key: None for key in found if key not in errors}, errors)
