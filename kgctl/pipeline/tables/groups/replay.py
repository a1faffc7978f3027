"""All groups of a log partition, played back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from kgctl.model.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
)
from kgctl.pipeline.tables.groups.causes import Cause
from kgctl.pipeline.tables.groups.classic import ClassicGroup
from kgctl.pipeline.tables.groups.consumer import ConsumerGroup
from kgctl.pipeline.tables.groups.history import Arrival, Generation, GroupHistory, Spans
from kgctl.pipeline.tables.groups.place import Coverage, Place
from kgctl.pipeline.tables.groups.quick_values import quick_value
from kgctl.pipeline.tables.groups.state import state_of, text_of
from kgctl.pipeline.tables.groups.topic_names import TopicNames, names_in, telling
from kgctl.pipeline.tables.outdated import OutdatedError
from kgctl.serde.coordinator_records import decode_key, decode_record

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs


def spans(inputs: PartitionInputs) -> Spans:
    """What the group records of a partition tell; played back once for all tables."""
    return inputs.once("spans of groups", _replay)


def _replay(inputs: PartitionInputs) -> Spans:
    found = Spans()
    records = inputs.group_records
    coverage = Coverage(inputs.coverage)
    groups = _restored(inputs, found)
    topics = _topics(inputs, groups)
    names = ("group", "record_type", "time_ms", "log_offset", "key", "value")
    columns = (records.column(name).to_pylist() for name in names)
    for group_id, record_type, time_ms, log_offset, key, value in zip(*columns, strict=True):
        group = groups.get(group_id)
        if group is None:
            groups[group_id] = group = _Group(GroupHistory(group_id, found), topics.setdefault(group_id, TopicNames()))
        is_gapless = coverage.holds(group.last_offset, log_offset)
        group.apply(_decoded(record_type, key, value), Place(time_ms, log_offset, is_gapless))
    for group in groups.values():
        group.note_open()
    for row, began_ms in found.reopened:
        if row.stable_ms is not None and began_ms < inputs.horizon_ms:
            raise OutdatedError("a rebalance took very long")
    found.states = partial(_states, found, groups, topics)
    inputs.counts.update(found.counts)
    return found


STATES = "groups"
"""What `PartitionInputs.carried` calls the states of groups: a table of group and text."""


def _restored(inputs: PartitionInputs, found: Spans) -> dict[str, _Group]:
    groups = {}
    carried = inputs.carried.get(STATES)
    for row in () if carried is None else carried.to_pylist():
        state = state_of(row["state"])
        groups[row["group"]] = group = _Group(GroupHistory(row["group"], found), TopicNames())
        group.restore(state)
    return groups


def _topics(inputs: PartitionInputs, groups: Mapping[str, _Group]) -> dict[str, TopicNames]:
    """What topics are called, by group, as all records tell it. Raises `OutdatedError` where earlier rows have another name."""
    topics = {group_id: group.topics for group_id, group in groups.items()}
    for group_id, topic_id, topic in names_in(inputs.offset_commits):
        topics.setdefault(group_id, TopicNames()).learn_commit(topic_id, topic)
    for group_id, record in telling(inputs.group_records):
        topics.setdefault(group_id, TopicNames()).learn(record)
    if any(names.has_changed() for names in topics.values()):
        raise OutdatedError("a topic's name became known")
    return topics


def _states(found: Spans, groups: Mapping[str, _Group], topics: Mapping[str, TopicNames]) -> dict[str, str]:
    """What a later build goes on from. Rows of spans that are for good are forgotten."""
    for member, settled in found.open_members:
        member.infos, member.told = member.infos[max(settled - 1, 0) :], min(settled, 1)
    for assignment, settled in found.open_assignments:
        assignment.told = settled
    states = {}
    for group_id in sorted({*groups, *topics}):
        group = groups.get(group_id) or _Group(GroupHistory(group_id, Spans()), topics[group_id])
        states[group_id] = text_of(group.state())
    return states


_keys = lru_cache(maxsize=8_192)(decode_key)
"""The same few keys come again and again."""


def _decoded(record_type: int, key: bytes, value: bytes | None) -> CoordinatorRecord:
    quick = None if value is None else quick_value(record_type, value)
    return decode_record(key, value) if quick is None else CoordinatorRecord(_keys(key), quick)


_SHARED = ("_history", "_topics")


class _Group:
    """A group through all its lives: created, deleted, created again, of one protocol or the other."""

    def __init__(self, history: GroupHistory, topics: TopicNames) -> None:
        self._history = history
        self.topics = topics
        self._now: ClassicGroup | ConsumerGroup | None = None
        self._deleted: Generation | None = None
        self._deleted_at = Place(0, 0)
        self._arrival: Arrival | None = None
        """That it has become a consumer group, until its first epoch is known."""
        self.last_offset = -1

    def apply(self, record: CoordinatorRecord, place: Place) -> None:
        """The next record of this group."""
        key, value = record.key, record.value
        self.last_offset = self._history.log_offset = place.log_offset
        if isinstance(key, GroupMetadataKey):
            self._classic(value if isinstance(value, GroupMetadataValue) else None, place)
        elif isinstance(key, ConsumerGroupMetadataKey):
            self._epoch(value if isinstance(value, ConsumerGroupMetadataValue) else None, place)
        elif value is not None or isinstance(self._now, ConsumerGroup):
            self._of_consumer(record, place)

    def note_open(self) -> None:
        """There are no more records for now: note what may still change."""
        unsettled = [self._deleted] if self._deleted is not None else []
        fresh: set[str] = set()
        if isinstance(self._now, ConsumerGroup):
            fresh = self._now.fresh
            unsettled += [self._now.unsettled] if self._now.unsettled is not None else []
        self._history.found.unsettled += unsettled
        self._history.found.generations += [self._deleted] if self._deleted is not None else []
        self._history.note_open(fresh)

    def state(self) -> dict[str, Any]:
        """What `restore` needs."""
        now = self._now
        return {
            "history": self._history.state(),
            "topics": self.topics.state(),
            "kind": "" if now is None else now.type,
            "now": {name: value for name, value in vars(now).items() if name not in _SHARED} if now is not None else {},
            "deleted": self._deleted,
            "deleted_at": self._deleted_at,
            "arrival": self._arrival,
            "last_offset": self.last_offset,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. A row that may still change is found again, as it then is."""
        self._history.restore(state["history"])
        self.topics.restore(state["topics"])
        self._deleted, self._deleted_at, self._arrival = state["deleted"], state["deleted_at"], state["arrival"]
        self.last_offset = state["last_offset"]
        if state["kind"] == ClassicGroup.type:
            self._now = ClassicGroup(self._history)
        elif state["kind"] == ConsumerGroup.type:
            self._now = ConsumerGroup(self._history, self.topics)
        if self._now is not None:
            vars(self._now).update(state["now"])
        if isinstance(self._now, ConsumerGroup) and self._now.unsettled is not None:
            self._history.add(self._now.unsettled)
            self._history.found.reopened.append((self._now.unsettled, self._now.unsettled.time_ms))

    def _classic(self, value: GroupMetadataValue | None, place: Place) -> None:
        if value is None:
            if isinstance(self._now, ClassicGroup):
                self._end(self._now.deleted(place), place)
            return
        arrival = self._switch(ClassicGroup, place)
        if not isinstance(self._now, ClassicGroup):
            self._now = ClassicGroup(self._history)
        self._now.apply(value, place, arrival if value.members else None)

    def _epoch(self, value: ConsumerGroupMetadataValue | None, place: Place) -> None:
        if value is None:
            if isinstance(self._now, ConsumerGroup):
                self._end(self._now.deleted(place), place)
            return
        group = self._consumer(place)
        arrival, self._arrival = self._arrival, None
        group.bumped(value, place, arrival)

    def _of_consumer(self, record: CoordinatorRecord, place: Place) -> None:
        key, value = record.key, record.value
        group = self._consumer(place)
        match key, value:
            case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
                group.member(key.member_id, value, place)
            case ConsumerGroupMemberMetadataKey(), None:
                group.member_gone(key.member_id, place)
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
                group.target(value.assignment_epoch)
            case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
                group.current(key.member_id, value, place)
            case ConsumerGroupCurrentMemberAssignmentKey(), None:
                group.current_gone(key.member_id, place)
            case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue() | None:
                group.regex(key.regular_expression, value)
            case _:
                pass  # members' targets say nothing that their current assignments do not

    def _consumer(self, place: Place) -> ConsumerGroup:
        if not isinstance(self._now, ConsumerGroup):
            self._arrival = self._switch(ConsumerGroup, place)
            self._now = ConsumerGroup(self._history, self.topics)
        return self._now

    def _end(self, row: Generation | None, place: Place) -> None:
        self._now = None
        self._deleted, self._deleted_at = row, place

    def _switch(self, kind: type[ClassicGroup | ConsumerGroup], place: Place) -> Arrival | None:
        """A record of this protocol comes: was the group of the other one until now, with members?

        Kafka removes the one group and writes the other in one step, so the first record of the new one follows at once.
        """
        deleted, deleted_at = self._deleted, self._deleted_at
        is_one_step = place.log_offset == deleted_at.log_offset + 1 and place.time_ms == deleted_at.time_ms
        members: frozenset[str] = frozenset()
        if deleted is not None and is_one_step and deleted.type != kind.type:
            self._deleted = None
            members = frozenset(deleted.members_left or ())
        else:
            self._settle_deletion()
            if self._now is not None and not isinstance(self._now, kind):
                members = frozenset(self._history.members)
        return Arrival(Cause.UPGRADED if kind is ConsumerGroup else Cause.DOWNGRADED, members) if members else None

    def _settle_deletion(self) -> None:
        if self._deleted is not None:
            self._history.add(self._deleted)
            self._deleted = None
