"""Playing back a group that counts epochs: of the consumer protocol (KIP-848), of share groups (KIP-932) or of streams groups
(KIP-1071), whose records `kgctl.serde.epoch_groups` reads in the terms of the consumer protocol's.

A change of the group writes a new group epoch (type 3): the rebalance begins. The target assignment for it follows, at once or
later (6; the members' targets, 7, are not needed here), and each member reaches the epoch with a current assignment (8) in state
STABLE. When all are there the epoch is stable. An epoch that the next one overtakes before that never is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kgctl.model.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    RecordType,
)
from kgctl.model.streams_records import AssignedTaskIds
from kgctl.pipeline.tables.group_history import (
    Arrival,
    Cause,
    Generation,
    GroupHistory,
    GroupType,
    MemberInfo,
    Partition,
    Place,
    change_of_members,
)
from kgctl.serde.epoch_groups import CurrentTasksValue, GroupRecord, TopicNamesValue, interpreted
from kgctl.serde.partition_metadata import decode_partition_metadata
from kgctl.serde.record_schema import RecordDecodeError, uuid_text

if TYPE_CHECKING:
    import pyarrow as pa


class TopicNames:
    """What topic ids are called, by what one group's own records and commits tell; the id itself in Kafka's base64 form where
    they do not. What is told only by subscriptions, or not yet, may change: what was made of it waits.

    Three things tell: commits with id and name, the topics that groups of Kafka before 4.1 list, and what members subscribe to: a
    member that is assigned an id subscribes to its topic, so that subscriptions that have one name in common tell it. Everything
    is learnt before the first question is asked.
    """

    def __init__(self) -> None:
        self._in_commits: dict[str, str] = {}
        self._in_lists: dict[str, str] = {}
        self._candidates: dict[UUID, set[str]] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._regexes: dict[str, tuple[str, ...]] = {}
        self._texts: dict[UUID, str] = {}
        self._unsure: set[str] = set()

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs."""
        return vars(self)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        vars(self).update(state)

    def of(self, topic_id: UUID) -> str:
        """Return the topic's name, or its id as text."""
        text = self._texts.get(topic_id)
        if text is None:
            self._texts[topic_id] = text = self._named(topic_id)
            if self._told(topic_id) is None:
                self._unsure.add(text)
        return text

    def is_sure(self, text: str) -> bool:
        """Whether a topic's text is for good: no record still to come can give it another."""
        return text not in self._unsure

    def corrected(self) -> dict[str, str]:
        """What answers from before are now, where they are others."""
        found = {text: self._named(topic_id) for topic_id, text in self._texts.items()}
        self._texts = {topic_id: found[text] for topic_id, text in self._texts.items()}
        self._unsure = {text for topic_id, text in self._texts.items() if self._told(topic_id) is None}
        return {before: now for before, now in found.items() if before != now}

    def _told(self, topic_id: UUID) -> str | None:
        encoded = uuid_text(topic_id.bytes)
        return self._in_lists.get(encoded) or self._in_commits.get(encoded)

    def _named(self, topic_id: UUID) -> str:
        candidates = self._candidates.get(topic_id, set())
        return self._told(topic_id) or (next(iter(candidates)) if len(candidates) == 1 else uuid_text(topic_id.bytes))

    def learn_commit(self, topic_id: str, topic: str) -> None:
        """A commit has both; of several topics of one id, which no cluster has, the first one counts."""
        self._in_commits.setdefault(topic_id, topic)

    def learn(self, record: GroupRecord) -> None:
        """Take names from the next record of the group."""
        key: Any = record.key
        value: Any = record.value
        match key, value:
            case ConsumerGroupPartitionMetadataKey(), TopicNamesValue(topics):
                self._in_lists.update((uuid_text(topic_id.bytes), name) for topic_id, name in topics)
            case ConsumerGroupPartitionMetadataKey(), bytes(value):
                self._learn_list(value)
            case ConsumerGroupMemberMetadataKey(_, member_id), ConsumerGroupMemberMetadataValue() as value:
                self._subscriptions[member_id] = (value.subscribed_topic_names, value.subscribed_topic_regex or "")
            case ConsumerGroupRegularExpressionKey(_, regex), ConsumerGroupRegularExpressionValue() as value:
                self._regexes[regex] = value.topics
            case ConsumerGroupTargetAssignmentMemberKey(_, member_id), ConsumerGroupTargetAssignmentMemberValue() as value:
                self._narrow(member_id, [topic_id for topic_id, _ in value.topic_partitions])
            case _:
                pass

    def _learn_list(self, partition_metadata: bytes) -> None:
        try:
            topics = decode_partition_metadata(partition_metadata)
        except RecordDecodeError:
            return
        self._in_lists.update((uuid_text(topic.topic_id.bytes), topic.name) for topic in topics)

    def _narrow(self, member_id: str, topic_ids: Sequence[UUID]) -> None:
        names, regex = self._subscriptions.get(member_id, ((), ""))
        resolved = self._regexes.get(regex) if regex else ()
        if resolved is None or not (names or resolved):
            return
        possible = {*names, *resolved}
        for topic_id in topic_ids:
            common = self._candidates.setdefault(topic_id, set(possible)) & possible
            self._candidates[topic_id] = common or possible


_Subscription = tuple[tuple[str, ...], str]
_TELLING = (
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA,
    RecordType.SHARE_GROUP_MEMBER_METADATA,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
)


def telling(group_records: pa.Table) -> Iterator[tuple[str, GroupRecord]]:
    """The records that `TopicNames.learn` wants, with their groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.array([int(record_type) for record_type in _TELLING], pa.int16())
    is_telling = pc.and_(pc.is_in(group_records.column("record_type"), types), pc.is_valid(group_records.column("value")))
    rows = group_records.filter(is_telling)
    columns = (rows.column(name).to_pylist() for name in ("group", "record_type", "key", "value"))
    for group, record_type, key, value in zip(*columns, strict=True):
        yield group, interpreted(record_type, key, value)


def names_in(offset_commits: pa.Table) -> pa.Table:
    """Group, topic_id and topic of commits that have all of them, each once."""
    import pyarrow.compute as pc

    columns = ["group", "topic_id", "topic"]
    rows = offset_commits.select(columns).filter(pc.is_valid(offset_commits.column("topic_id")))
    return rows.unify_dictionaries().group_by(columns).aggregate([])


_CLOSED_EPOCH = -2
"""Of a static member that has closed. Kafka: ConsumerGroupHeartbeatRequest.LEAVE_GROUP_STATIC_MEMBER_EPOCH."""
_FIRST_EPOCH = 1
"""A new group is at it without a record that says so, until something bumps it (since Kafka 4.3)."""
_STABLE = 0


class EpochGroup:
    """The group as its last record left it. ``type``: see `Generation`."""

    def __init__(self, history: GroupHistory, topics: TopicNames, group_type: GroupType) -> None:
        self.type = group_type
        self._history = history
        self._topics = topics
        self._epoch: int | None = None
        self._target_epoch: int | None = None
        self._row: Generation | None = None
        self._metadata: dict[str, ConsumerGroupMemberMetadataValue] = {}
        self._reached: dict[str, tuple[int, int]] = {}
        self._behind: set[str] = set()
        self._regexes: set[str] = set()
        self._topology: bytes | None = None
        self._changes = Changes()
        self._fresh: set[str] = set()
        self._hash = 0

    @property
    def unsettled(self) -> Generation | None:
        """Return the generation that may still become stable."""
        return self._row if self._row is not None and self._row.stable_ms is None else None

    @property
    def fresh(self) -> set[str]:
        """Members whose first generation is not known yet."""
        return self._fresh

    @property
    def generation(self) -> int:
        """Return the group epoch; -1 where it is not known."""
        return -1 if self._epoch is None else self._epoch

    def member(self, member_id: str, value: ConsumerGroupMemberMetadataValue, place: Place) -> None:
        """Type 5: a member, new or with another subscription."""
        before = self._metadata.get(member_id)
        self._metadata[member_id] = value
        if before is None:
            self._changes.joined[member_id] = value.instance_id
            self._behind.add(member_id)
        elif _subscription(before) != _subscription(value):
            self._changes.subscription = True
        if self._history.has_member(member_id, _info(value), place.time_ms, self._epoch or _FIRST_EPOCH):
            self._fresh.add(member_id)

    def member_gone(self, member_id: str, place: Place) -> None:
        """Apply a tombstone of type 5: the member is gone."""
        value = self._metadata.pop(member_id, None)
        self._behind.discard(member_id)
        self._reached.pop(member_id, None)
        self._fresh.discard(member_id)
        if member_id in self._changes.joined:
            del self._changes.joined[member_id]
        elif value is not None:
            self._changes.left[member_id] = value.instance_id
        self._history.member_gone(member_id, place.time_ms, self.generation)

    def shared(self) -> None:
        """Type 15: the share group's state is kept for other partitions than before, which is when they can be assigned."""
        self._changes.partitions = True

    def topology(self, value: bytes | None) -> None:
        """Type 23: what an application of Kafka Streams does, which is what it subscribes to."""
        if None not in (value, self._topology) and value != self._topology:
            self._changes.subscription = True
        self._topology = value

    def regex(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        """Type 16: the topics that a regular expression stands for."""
        if value is None:
            self._regexes.discard(regex)
            return
        if regex not in self._regexes:
            self._regexes.add(regex)
            self._changes.subscription = True

    def bumped(self, value: ConsumerGroupMetadataValue, place: Place, arrival: Arrival | None = None) -> None:
        """Type 3: the group epoch. ``arrival``: if it is the first one since the group was of the other protocol."""
        if value.epoch == self._epoch and arrival is None:
            return
        is_first = self._epoch is None and value.epoch <= _FIRST_EPOCH + 1
        is_known = is_first or (self._epoch is not None and (place.is_gapless or value.epoch == self._epoch + 1))
        is_same_hash = value.metadata_hash == self._hash != 0
        compares = self._epoch is not None or is_first
        self._epoch, self._hash = value.epoch, value.metadata_hash
        self._leave_behind(place)
        cause = self._cause(is_known=is_known, is_same_hash=is_same_hash) if arrival is None else arrival.cause
        self._row = self._new_row(place, cause)
        if arrival is not None:
            self._row.members_joined, self._row.members_left = arrival.joined(self._metadata), arrival.left(self._metadata)
        elif not compares:
            self._row.members_joined = self._row.members_left = None
        if not self._metadata:
            self._row.stable_ms = place.time_ms
        self._changes = Changes()

    def _leave_behind(self, place: Place) -> None:
        """Members of the classic group that this one replaced and that did not come along."""
        for member_id in [member_id for member_id in self._history.members if member_id not in self._metadata]:
            self._history.member_gone(member_id, place.time_ms, self.generation)

    def target(self, epoch: int) -> None:
        """Apply a record of type 6: the epoch of the target assignment."""
        self._target_epoch = epoch
        self._behind = {member_id for member_id in self._metadata if self._reached.get(member_id) != (_STABLE, epoch)}

    def current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | CurrentTasksValue, place: Place) -> None:
        """Type 8: what a member owns, and how far it is."""
        self._note_first_epoch(value.member_epoch, place)
        self._note_return(member_id, place)
        if value.member_epoch == _CLOSED_EPOCH and member_id in self._metadata:
            info = replace(_info(self._metadata[member_id]), is_closed=True)
            self._history.has_member(member_id, info, place.time_ms, self.generation)
        self._reached[member_id] = (value.state, value.member_epoch)
        if self._reached[member_id] == (_STABLE, self._target_epoch):
            self._behind.discard(member_id)
        else:
            self._behind.add(member_id)
        self._history.owns(member_id, self._owned(value), place.time_ms)
        self._settle([member_id])
        row = self._row
        if row is not None and row.stable_ms is None and not self._behind and self._target_epoch == self._epoch:
            row.stable_ms = place.time_ms

    def current_gone(self, member_id: str, place: Place) -> None:
        """Apply a tombstone of type 8: the member has no assignment any more."""
        self._reached.pop(member_id, None)
        self._history.owns(member_id, {}, place.time_ms)

    def deleted(self, place: Place) -> Generation | None:
        """Type 3, tombstone: the group is gone. A row, if its epoch is known."""
        left = sorted({*self._metadata, *self._changes.left})
        self._history.all_gone(place.time_ms, self.generation)
        if self._epoch is None:
            return None
        row = self._new_row(place, Cause.GROUP_DELETED)
        row.members, row.members_joined, row.members_left = 0, [], left
        return row

    def _settle(self, member_ids: Iterable[str]) -> None:
        """These are at the group's epoch, if that is known; those that are new came with it."""
        for member_id in member_ids if self._epoch is not None else ():
            span = self._history.members.get(member_id)
            if span is None:
                continue
            if member_id in self._fresh:
                span.first_generation = self.generation
            span.last_generation = max(span.first_generation, self.generation)
            self._fresh.discard(member_id)

    def _note_first_epoch(self, epoch: int, place: Place) -> None:
        if self._epoch is None and epoch == _FIRST_EPOCH:
            self._target_epoch = _FIRST_EPOCH
            self.bumped(ConsumerGroupMetadataValue(_FIRST_EPOCH), place)

    def _note_return(self, member_id: str, place: Place) -> None:
        """A static member that takes the place of its predecessor changes no epoch, unless its subscription is another one."""
        changes = self._changes
        if self._epoch is None or member_id not in changes.joined:
            return
        if change_of_members(changes.joined, changes.left) is not Cause.STATIC_MEMBER_RETURNED:
            return
        row = self._new_row(place, Cause.STATIC_MEMBER_RETURNED)
        row.stable_ms, row.started_by = place.time_ms, None
        changes.joined, changes.left = {}, {}

    def _new_row(self, place: Place, cause: Cause) -> Generation:
        is_end = cause is Cause.GROUP_DELETED
        row = Generation(
            group=self._history.group,
            type=self.type,
            protocol_type=self.type,
            generation_id=self.generation,
            started_ms=place.time_ms,
            stable_ms=None,
            started_by=None if is_end else "epoch_bump",
            assignor=None if is_end else _most_named(value.server_assignor for value in self._metadata.values()),
            leader=None,
            members=len(self._metadata),
            members_joined=sorted(self._changes.joined),
            members_left=sorted(self._changes.left),
            cause=cause,
            log_offset=place.log_offset,
        )
        self._settle(self._metadata)
        if not is_end:
            self._history.add(row)
        return row

    def _cause(self, *, is_known: bool, is_same_hash: bool) -> Cause:
        if not self._metadata:
            return Cause.GROUP_EMPTIED
        if not is_known:
            return Cause.UNKNOWN
        changed = change_of_members(self._changes.joined, self._changes.left)
        if changed is not None and changed is not Cause.STATIC_MEMBER_RETURNED:
            return changed
        if self._changes.subscription:
            return Cause.SUBSCRIPTION_CHANGED
        if changed is None:
            return Cause.UNKNOWN if is_same_hash and not self._changes.partitions else Cause.PARTITIONS_CHANGED
        return changed

    def _owned(self, value: ConsumerGroupCurrentMemberAssignmentValue | CurrentTasksValue) -> dict[Partition, int]:
        """Return what a member has, with the epoch at which it got each; of a streams group its active tasks."""
        found: dict[Partition, int] = {}
        for name, partitions, epochs in self._shares(value):
            known = epochs if len(epochs) == len(partitions) else (max(value.member_epoch, 0),) * len(partitions)
            found.update(((name, partition), epoch) for partition, epoch in zip(partitions, known, strict=True))
        return found

    def _shares(self, value: ConsumerGroupCurrentMemberAssignmentValue | CurrentTasksValue) -> Iterable[AssignedTaskIds]:
        if isinstance(value, CurrentTasksValue):
            return value.tasks
        topics = (*value.partitions_pending_revocation, *value.assigned_partitions)
        return (AssignedTaskIds(self._topics.of(each.topic_id), each.partitions, each.assignment_epochs) for each in topics)


@dataclass(slots=True)
class Changes:
    """What has changed in the group since its last row."""

    joined: dict[str, str | None] = field(default_factory=dict)
    left: dict[str, str | None] = field(default_factory=dict)
    subscription: bool = False
    partitions: bool = False


def _info(value: ConsumerGroupMemberMetadataValue) -> MemberInfo:
    classic = value.classic_member_metadata
    return MemberInfo(
        value.instance_id,
        value.client_id,
        value.client_host,
        None if classic is None else classic.session_timeout_ms,
        value.rebalance_timeout_ms if value.rebalance_timeout_ms >= 0 else None,
    )


def _subscription(value: ConsumerGroupMemberMetadataValue) -> tuple[object, ...]:
    return value.subscribed_topic_names, value.subscribed_topic_regex or ""


def _most_named(assignors: Iterable[str | None]) -> str | None:
    """The assignor that most members ask for, which decides; None where nobody asks: the broker's default, which no log names.

    Of several, Kafka prefers one by the order of a hash map; with its own two that is uniform, the last in the alphabet.
    """
    counts = Counter(name for name in assignors if name is not None)
    return max(counts, key=lambda name: (counts[name], name), default=None)
