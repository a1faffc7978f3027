"""The state of one coordinator, and the only ways in which handlers act on it.

How a group type plugs in (the four there are: `kgctl.coordinator.classic`, `kgctl.coordinator.consumer`,
`kgctl.coordinator.share` and `kgctl.coordinator.streams`):

* a subclass of `kgctl.coordinator.group.Group` answers what offsets, list, delete and expiry ask of any group;
* ``REPLAYERS`` in `kgctl.coordinator.shard` gets a function for each of its record keys: these functions alone create, change
  and remove what survives a reload;
* ``HANDLERS`` in `kgctl.coordinator.coordinator` gets a function for each request that only it has; the requests that several
  types have (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) are told apart by the group's type in `kgctl.coordinator.membership`;
* ``TIMERS`` in `kgctl.coordinator.coordinator` gets a function for each `TimerKind` that it arms;
* ``CHECKS`` in `kgctl.coordinator.invariants` gets a function that checks a group of this type.

A handler is a function ``(shard, request) -> None``. It looks at `Shard.groups`, `Shard.offsets`, `Shard.image` and
`Shard.config`, and acts through `Shard.reply` (now, or later for a parked request: keep its ``request_id``), `Shard.append`
(which applies the record at once), `Shard.emit` (work for the driver), and `Shard.arm`, `Shard.disarm`. The time is
`Shard.now_ms`. A timer's function is ``(shard, timer) -> None`` and is called at the timer's deadline; the timer is gone by
then.

Records become state here and nowhere else (Kafka: GroupMetadataManager#replay). A group of the consumer protocol exists from its
first record on; a record for a simple classic group's id (one that only ever had commits) turns it into a consumer group.
Tombstones of what does not exist change nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, cast

from kgctl.assignors.spec import Target
from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.config import CoordinatorConfig, GroupConfig
from kgctl.coordinator.consumer.group import ConsumerGroup, ResolvedRegex
from kgctl.coordinator.consumer.member import NOTHING, ConsumerMember, with_current_assignment, with_metadata
from kgctl.coordinator.effects import AppendRecord, Effect, Reply
from kgctl.coordinator.group import Group
from kgctl.coordinator.modern.member import LEAVE_EPOCH
from kgctl.coordinator.modern.replay import AnyGroup, GroupRecords, apply_target_metadata, target_applier
from kgctl.coordinator.offset_store import OffsetStore
from kgctl.coordinator.share.partitions import SharePartitions, of_record
from kgctl.coordinator.share.replay import SHARE_RECORDS
from kgctl.coordinator.streams.replay import STREAMS_RECORDS
from kgctl.coordinator.timers import TimerKey, TimerQueue
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
    RecordKey,
    RecordValue,
    TransactionMarker,
)
from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.model.requests import Request, Result
from kgctl.model.share_records import ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue
from kgctl.model.values import TimelineHashMap, hash_map_order, uuid_hash
from kgctl.serde.partition_metadata import decode_partition_metadata


def _is_simple(group: Group) -> bool:
    """A group that only ever had commits becomes a consumer group."""
    return not group.listed_protocol_type


def apply_to_group(group: ConsumerGroup, record: CoordinatorRecord) -> None:
    """Apply a record that is not the group's own tombstone to a group that may not be registered (yet)."""
    APPLIERS[type(record.key)](group, record.key, record.value)


def _apply_member(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove_member(key.member_id)
    else:
        member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
        group.update_member(with_metadata(member, value))


def _apply_group(group: ConsumerGroup, _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
    if value is not None:
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _apply_partition_metadata(group: ConsumerGroup, _: ConsumerGroupPartitionMetadataKey, value: bytes | None) -> None:
    group.has_partition_metadata_record = value is not None
    if not group.profile.hashes_topics:
        topics = decode_partition_metadata(value) if value is not None else ()
        group.subscribed_topics = tuple(sorted((topic._replace(racks=()) for topic in topics), key=attrgetter("name")))


def _recorded_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Target:
    target = dict(value.topic_partitions)
    return {topic_id: target[topic_id] for topic_id in hash_map_order(target, hash_of=uuid_hash)}


def _apply_current_assignment(
    group: ConsumerGroup, key: ConsumerGroupCurrentMemberAssignmentKey, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.update_member(with_current_assignment(member or ConsumerMember(key.member_id), value, group.partition_form))
    elif member is not None:
        # It goes in a moment, with its other records; what it owned is free from here on.
        left = replace(
            member,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NOTHING,
            pending_revocation=NOTHING,
        )
        group.update_member(left)


def _apply_regex(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    resolved = None if value is None else ResolvedRegex(value.topics, value.version, value.timestamp_ms)
    group.set_resolved_regex(key.regular_expression, resolved)


APPLIERS: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _apply_group,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: _apply_member,
    ConsumerGroupTargetAssignmentMetadataKey: apply_target_metadata,
    ConsumerGroupTargetAssignmentMemberKey: target_applier(_recorded_target),
    ConsumerGroupCurrentMemberAssignmentKey: _apply_current_assignment,
    ConsumerGroupRegularExpressionKey: _apply_regex,
}
"""Key class -> how a record of it changes a group."""


Replayer = Callable[["Shard", Any, Any], None]


def apply_record(shard: Shard, record: CoordinatorRecord, producer_id: int | None = None) -> None:
    """Apply one record. A tombstone of something that does not exist changes nothing, as in Kafka."""
    if type(record.key) is OffsetCommitKey:
        _replay_offset(shard, record.key, cast("OffsetCommitValue | None", record.value), producer_id)
    else:
        REPLAYERS[type(record.key)](shard, record.key, record.value)


def load_record(shard: Shard, record: CoordinatorRecord, producer_id: int | None = None) -> None:
    """Apply one record of a log that is being read.

    A classic group's record replaces whatever bears its name, and its tombstone removes that. In live use the coordinator has
    seen to it itself, so there `apply_record` touches classic groups alone.
    """
    key = record.key
    if type(key) is GroupMetadataKey and key.group in shard.groups:
        if record.value is None:
            shard.remove_group(key.group)
            return
        # Kafka makes a new group for each record, and putting it may enlarge the table that decides the order of groups.
        shard.groups[key.group] = shard.groups[key.group]
    apply_record(shard, record, producer_id)


def apply_marker(shard: Shard, marker: TransactionMarker) -> None:
    """Apply the end of a transaction to the offsets that it held back."""
    shard.offsets.end_transaction(marker.producer_id, committed=marker.committed)


def _replay_offset(shard: Shard, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int | None) -> None:
    if value is None:
        shard.offsets.remove(key)
        return
    if key.group not in shard.groups:
        # A group that only ever has commits: Kafka's "simple" group.
        shard.groups[key.group] = ClassicGroup(key.group, shard.now_ms)
    if producer_id is None:
        shard.offsets.put(key, value)
    else:
        shard.offsets.put_pending(producer_id, key, value)


def _replay_group_metadata(shard: Shard, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    group = shard.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            shard.remove_group(key.group)
        return
    if not isinstance(group, ClassicGroup):
        group = shard.groups[key.group] = ClassicGroup(key.group, shard.now_ms)
    group.recorded = value


_CONSUMER_RECORDS = GroupRecords(ConsumerGroup, ConsumerGroupMetadataKey, APPLIERS, _is_simple)
_MODERN = {key: records for records in (_CONSUMER_RECORDS, SHARE_RECORDS, STREAMS_RECORDS) for key in records.appliers}


def _replay_modern(shard: Shard, key: Any, value: Any) -> None:
    """Apply a record to the group that its key names; the first one makes it, its own tombstone removes it."""
    records = _MODERN[type(key)]
    if value is not None:
        records.appliers[type(key)](_made(shard, key.group, records), key, value)
        return
    group = shard.groups.get(key.group)
    if not isinstance(group, records.kind):
        return
    if type(key) is records.group_key:
        shard.remove_group(key.group)
    else:
        records.appliers[type(key)](group, key, None)


def _made(shard: Shard, group_id: str, records: GroupRecords) -> AnyGroup:
    group, kind = shard.groups.get(group_id), records.kind
    if isinstance(group, kind):
        return group
    if group is not None and not records.gives_way(group):
        what = f"a {kind.type}-group record for {group_id!r}, which is a {group.type} group"
        raise InvariantViolation(what, group=group_id)
    made = shard.groups[group_id] = kind(group_id, shard.config.profile)
    return made


def _replay_share_partitions(
    shard: Shard, key: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
) -> None:
    if value is None:
        shard.share_partitions.pop(key.group, None)
    else:
        _made(shard, key.group, SHARE_RECORDS)
        shard.share_partitions[key.group] = of_record(value, shard.now_ms)


def _skip(_: Shard, __: OpaqueKey, ___: bytes | None) -> None:
    """A newer broker's record stays in the log."""


REPLAYERS: dict[type, Replayer] = {
    GroupMetadataKey: _replay_group_metadata,
    OpaqueKey: _skip,
    ShareGroupStatePartitionMetadataKey: _replay_share_partitions,
    **dict.fromkeys(_MODERN, _replay_modern),
}
"""Key class -> what a record with such a key does."""


_LINES = 40
_OBVIOUS = ("request_id", "group_id", "client_host", "protocols", "assignments")
"""Fields of requests that would fill the lines and tell little."""


class GroupStory:
    """The last events of each group. Cheap to write: an event is kept as it came, and turned into text on reading."""

    def __init__(self) -> None:
        self._events: dict[str, deque[tuple[int, str, object]]] = {}

    def note(self, group_id: str, now_ms: int, what: str, detail: object = "") -> None:
        """Remember that ``what`` happened; ``detail`` is shown with ``str``, so it must not change later."""
        events = self._events.get(group_id)
        if events is None:
            events = self._events[group_id] = deque(maxlen=_LINES)
        events.append((now_ms, what, detail))

    def of(self, group_id: str) -> tuple[str, ...]:
        """The group's last events, oldest first, one line each."""
        events = self._events.get(group_id, ())
        return tuple(f"{now_ms} ms: {what} {_text(detail)}".rstrip() for now_ms, what, detail in events)

    def group_ids(self) -> list[str]:
        """Return the groups of which events are known."""
        return list(self._events)

    def forget(self, group_id: str) -> None:
        """Drop the events of a group that is gone."""
        self._events.pop(group_id, None)


def _text(detail: object) -> str:
    """A request with the fields that are not as always; anything else as it is."""
    if not isinstance(detail, Request):
        return str(detail)
    given = [(field.name, getattr(detail, field.name)) for field in fields(detail) if field.name not in _OBVIOUS]
    usual = {field.name: field.default for field in fields(detail)}
    return f"{type(detail).__name__}({', '.join(f'{name}={value!r}' for name, value in given if value != usual[name])})"


class Shard:
    """Everything one coordinator knows, and the effects of the call under way.

    ``groups`` are in the order of Kafka's TimelineHashMap where order shows (``java_order``). Only `append`, through replay,
    adds or removes groups and offsets; what is not durable (parked requests, timers, members that join) handlers change
    themselves.
    """

    def __init__(
        self, config: CoordinatorConfig, new_member_id: Callable[[str], str], image: MetadataImage, start_ms: int
    ) -> None:
        self.config = config
        self.new_member_id = new_member_id
        self.image = image
        self.now_ms = start_ms
        self.call_ms = start_ms
        """The time of the driver's call; timers that it fires have earlier times of their own."""
        self.groups: TimelineHashMap[str, Group] = TimelineHashMap()
        self.offsets = OffsetStore()
        self.share_partitions: TimelineHashMap[str, SharePartitions] = TimelineHashMap()
        """Share groups -> of which partitions their state is kept."""
        self.group_configs: dict[str, GroupConfig] = {}
        self._broker_group_config = GroupConfig.of_broker(config)
        self.timers = TimerQueue()
        self.story = GroupStory()
        self.last_version_with_new_topics = image.version
        self.regexes_to_resolve: dict[str, tuple[str, ...]] = {}
        """What the request under way will ask of the driver once its records are written: group id -> expressions."""
        self.left_to_expire: list[str] = []
        """Ids of groups that the expiry cycle under way has still to visit, the last one first."""
        self.left_to_delete: deque[tuple[dict[str, TopicMetadata], list[str]]] = deque()
        """Topics that are gone, by name, and the groups whose offsets of them are still to go, the last one first."""
        self.forgotten: dict[str, None] = {}
        """Ids of groups whose records say more than what is in memory."""
        self.unsettled: dict[str, Group | None] = {}
        """What changed in memory without a record since the last one: group id -> the group as it was before, None for none."""
        self.upgraded: dict[str, None] = {}
        """Ids of groups that changed from the classic to the consumer protocol, or that failed to when nobody was left waiting.

        As in Kafka their classic timers stay armed, and a member that was spared because it waited has none.
        """
        self._effects: list[Effect] = []

    def reply(self, request_id: int, result: Result) -> None:
        """Answer a request, after everything appended so far."""
        self._effects.append(Reply(request_id, result))

    def append(
        self,
        key: RecordKey,
        value: RecordValue | None,
        *,
        producer_id: int | None = None,
        producer_epoch: int = 0,
        member_id: str | None = None,
    ) -> None:
        """Append a record to the log and apply it here at once. ``value`` None: a tombstone.

        ``member_id`` is not in the record; it tells the log's audit who committed.
        """
        self.unsettled.clear()
        record = CoordinatorRecord(key, value)
        apply_record(self, record, producer_id)
        self._effects.append(AppendRecord(record, producer_id, producer_epoch, member_id))

    def append_record(self, record: CoordinatorRecord) -> None:
        """Append a record that has been made before, and apply it here at once."""
        self.unsettled.clear()
        apply_record(self, record)
        self._effects.append(AppendRecord(record))

    def append_tombstones(self, keys: Iterable[RecordKey]) -> None:
        """Append a tombstone for each of these keys, in this order."""
        for key in keys:
            self.append(key, None)

    def append_marker(self, marker: TransactionMarker) -> None:
        """Append the end of a transaction and apply it here at once."""
        self.unsettled.clear()
        apply_marker(self, marker)
        self._effects.append(AppendRecord(marker, marker.producer_id, marker.producer_epoch))

    def emit(self, effect: Effect) -> None:
        """Add an effect to those that the driver gets from this call."""
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call of this, in order."""
        effects, self._effects = self._effects, []
        return effects

    def arm(self, key: TimerKey, delay_ms: int, argument: int = 0) -> None:
        """Arm a timer, replacing the one under this key; ``argument`` comes back with it."""
        self.timers.arm(key, self.now_ms + delay_ms, argument)

    def arm_for_next_call(self, key: TimerKey) -> None:
        """Arm a timer that fires in a later call of the driver, however late the present one is: long work goes on there."""
        self.timers.arm(key, self.call_ms + 1, 0)

    def disarm(self, key: TimerKey) -> None:
        """Cancel a timer, if it is armed."""
        self.timers.cancel(key)

    def delete_group(self, group: Group) -> None:
        """Append the group's tombstones, in Kafka's order, and cancel its timers. Its offsets are not touched."""
        for key in group.timer_keys():
            self.timers.cancel(key)
        self.append_tombstones(group.tombstone_keys())

    def forget_group(self, group: Group) -> None:
        """Drop the group from memory and leave its records, as Kafka does in one odd case: when the log is loaded, it is back."""
        for key in group.timer_keys():
            self.timers.cancel(key)
        del self.groups[group.group_id]
        self.forgotten[group.group_id] = None
        self.unsettled[group.group_id] = group

    def remove_group(self, group_id: str) -> None:
        """A record has said that the group is gone; so is what happened to it."""
        del self.groups[group_id]
        self.story.forget(group_id)

    def add_without_record(self, group: Group) -> None:
        """Take a group in of which no record tells; it is gone with the coordinator."""
        self.groups[group.group_id] = group
        self.unsettled[group.group_id] = None

    def settled_group(self, group_id: str) -> Group | None:
        """The group as requests see it that read the state at the end of the log: list, describe, and fetches of any offset."""
        return self.unsettled[group_id] if group_id in self.unsettled else self.groups.get(group_id)

    def settled_groups(self) -> list[Group]:
        """All groups as those requests see them, in Kafka's order."""
        groups = [self.unsettled.get(group.group_id, group) for group in self.groups.java_values()]
        forgotten = [group for group_id, group in self.unsettled.items() if group_id not in self.groups]
        return [group for group in (*groups, *forgotten) if group is not None]

    def unsettle(self, group: Group) -> None:
        """Keep the group as it is for those requests: what is done to it next, no record tells.

        A copy that shares what only records change; a group that nobody knows yet is left alone.
        """
        if self.groups.get(group.group_id) is group:
            self.unsettled.setdefault(group.group_id, copy(group))

    def violation(self, group_id: str, what: str) -> InvariantViolation:
        """The error for a group of which something does not hold, with what happened to it of late."""
        message = f"group {group_id!r} at {self.now_ms} ms: {what}"
        return InvariantViolation(message, group=group_id, story=self.story.of(group_id))

    def group_config(self, group_id: str) -> GroupConfig:
        """The settings of this group: its own where it has them, the broker's otherwise."""
        return self.group_configs.get(group_id, self._broker_group_config)
