"""All groups of a log partition, played back.

A history has millions of group records. Kafka writes them in one version and one shape each, so most fields stand where the
numbers before them say; what is any different (another version, a tagged field of a newer broker, a number that needs a second
byte, bytes that end early) is not guessed at but decoded by `kgctl.serde.coordinator_records`.

`text_of` and `state_of` keep what playing back knows as text, so that an incremental build goes on from it: JSON with a mark
for each kind of value that JSON lacks. Nothing is executed when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from struct import Struct, unpack_from
from struct import error as struct_error
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.model import coordinator_records, groups
from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    RecordType,
)
from kgctl.model.streams_records import StreamsGroupTopologyKey
from kgctl.pipeline.tables.classic import ReplayedClassicGroup
from kgctl.pipeline.tables.epochs import Changes, EpochGroup, TopicNames, names_in, telling
from kgctl.pipeline.tables.group_history import (
    Arrival,
    AssignmentSpan,
    Cause,
    Coverage,
    Generation,
    GroupHistory,
    GroupType,
    MemberInfo,
    MemberSpan,
    Place,
    Spans,
)
from kgctl.serde.coordinator_records import decode_key
from kgctl.serde.epoch_groups import SCHEMAS, CurrentTasksValue, GroupRecord, TopicNamesValue, interpreted
from kgctl.serde.record_schema import uuid_from_bytes

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs


_INT16 = Struct(">h").unpack_from
_INT32 = Struct(">i").unpack_from
_TIMEOUTS = Struct(">iii").unpack_from
_EPOCH = Struct(">hi").unpack_from
_EPOCH_AND_TAG = Struct(">hi3sq").unpack_from
_CURRENT = Struct(">hiib").unpack_from
_ONE_INT64_TAG = b"\x01\x00\x08"

Value = (
    GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupCurrentMemberAssignmentValue
)


class _Unusual(Exception):  # noqa: N818 - not an error: the tables decode it
    """Raised for bytes that are not of the usual shape."""


def quick_value(record_type: int, data: bytes) -> Value | None:
    """The value, equal to what the tables decode; None where they have to be asked."""
    read = _READERS.get(record_type)
    try:
        return None if read is None else read(data)
    except (_Unusual, struct_error, IndexError, UnicodeDecodeError):
        return None


def _group_metadata(data: bytes) -> GroupMetadataValue:
    if data[:2] != b"\x00\x03":
        raise _Unusual
    protocol_type, at = _text(data, 2)
    (generation,) = _INT32(data, at)
    protocol, at = _nullable_text(data, at + 4)
    leader, at = _nullable_text(data, at)
    state_ms, count = unpack_from(">qi", data, at)
    at += 12
    members = []
    for _ in range(count):
        member, at = _member(data, at)
        members.append(member)
    if count < 0:
        raise _Unusual
    return GroupMetadataValue(protocol_type, generation, protocol, leader, state_ms, tuple(members))


def _member(data: bytes, at: int) -> tuple[MemberMetadata, int]:
    member_id, at = _text(data, at)
    instance, at = _nullable_text(data, at)
    client_id, at = _text(data, at)
    host, at = _text(data, at)
    rebalance_ms, session_ms, size = _TIMEOUTS(data, at)
    subscription, at = _bytes(data, at + 12, size)
    (size,) = _INT32(data, at)
    assignment, at = _bytes(data, at + 4, size)
    return MemberMetadata(member_id, instance, client_id, host, rebalance_ms, session_ms, subscription, assignment), at


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _INT16(data, at)
    text, end = _bytes(data, at + 2, size)
    return text.decode(), end


def _nullable_text(data: bytes, at: int) -> tuple[str | None, int]:
    return (None, at + 2) if data[at : at + 2] == b"\xff\xff" else _text(data, at)


def _bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if size < 0 or end > len(data):
        raise _Unusual
    return data[at:end], end


def _epoch_and_number(data: bytes) -> tuple[int, int]:
    """An int32, and the int64 of tag 0, 0 where it is not there."""
    if len(data) == 7 and data[6] == 0:
        version, epoch = _EPOCH(data)
        number = 0
    else:
        version, epoch, tag, number = _EPOCH_AND_TAG(data)
        if tag != _ONE_INT64_TAG:
            raise _Unusual
    if version != 0:
        raise _Unusual
    return epoch, number


def _current_assignment(data: bytes) -> ConsumerGroupCurrentMemberAssignmentValue:
    version, epoch, previous, state = _CURRENT(data)
    if version != 0:
        raise _Unusual
    assigned, at = _assigned_topics(data, 11)
    pending, at = _assigned_topics(data, at)
    if data[at] != 0:
        raise _Unusual
    return ConsumerGroupCurrentMemberAssignmentValue(epoch, previous, state, assigned, pending)


def _assigned_topics(data: bytes, at: int) -> tuple[tuple[AssignedTopicPartitions, ...], int]:
    count, at = _count(data, at)
    topics = []
    for _ in range(count):
        topic_id: UUID = uuid_from_bytes(_bytes(data, at, 16)[0])
        partitions, at = _numbers(data, at + 16)
        epochs: tuple[int, ...] = ()
        if data[at] == 1 and data[at + 1] == 0 and data[at + 2] < 0x80:
            size = data[at + 2]
            epochs, end = _numbers(data, at + 3)
            if end != at + 3 + size:
                raise _Unusual
            at = end
        elif data[at] == 0:
            at += 1
        else:
            raise _Unusual
        topics.append(AssignedTopicPartitions(topic_id, partitions, epochs))
    return tuple(topics), at


def _numbers(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = _count(data, at)
    return unpack_from(f">{count}i", data, at), at + 4 * count


def _count(data: bytes, at: int) -> tuple[int, int]:
    """The elements of an array: one more than that stands there, in a single byte."""
    number = data[at]
    if not 1 <= number < 0x80:
        raise _Unusual
    return number - 1, at + 1


_READERS: Mapping[int, Callable[[bytes], Value]] = {
    RecordType.GROUP_METADATA: _group_metadata,
    RecordType.CONSUMER_GROUP_METADATA: lambda data: ConsumerGroupMetadataValue(*_epoch_and_number(data)),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: lambda data: ConsumerGroupTargetAssignmentMetadataValue(
        *_epoch_and_number(data)
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_assignment,
}


def spans(inputs: PartitionInputs) -> Spans:
    """What the group records of a partition tell; played back once for all tables."""
    return inputs.once("spans of groups", _replay)


def _replay(inputs: PartitionInputs) -> Spans:
    found = Spans()
    records = inputs.group_records
    coverage = Coverage(inputs.coverage)
    groups = _restored(inputs, found)
    names = ("group", "record_type", "time_ms", "log_offset", "key", "value")
    columns = (records.column(name).to_pylist() for name in names)
    for group_id, record_type, time_ms, log_offset, key, value in zip(*columns, strict=True):
        group = groups[group_id]
        is_gapless = coverage.holds(group.last_offset, log_offset)
        group.apply(_decoded(record_type, key, value), Place(time_ms, log_offset, is_gapless), type_of(record_type))
    for group in groups.values():
        group.note_open()
    found.states = partial(_states, found, groups)
    inputs.counts.update(found.counts)
    return found


STATES, NAMES = "groups", "names"
"""What `PartitionInputs.carried` calls the states of groups, a table of group, state and is_waiting; and what commits have
told of topics' names, by group. The states are of the groups that are played back."""


def played_back(records: pa.Table, states: pa.Table, named: Collection[str]) -> set[str]:
    """The groups that are played back: those with new records, and those that wait for a name and were told one."""
    found = set(records.column("group").unique().to_pylist())
    waiting = states.filter(states.column("is_waiting")).column("group").to_pylist()
    return found | {group for group in waiting if group in named}


def _restored(inputs: PartitionInputs, found: Spans) -> dict[str, _Group]:
    """The groups that are played back, as earlier builds left them, knowing all names that there are."""
    carried, told = inputs.carried.get(STATES), inputs.carried.get(NAMES)
    played = [inputs.group_records, *([] if carried is None else [carried])]
    names = {group_id: TopicNames() for table in played for group_id in table.column("group").unique().to_pylist()}
    groups = {group_id: _Group(group_id, found, topics) for group_id, topics in names.items()}
    for row in () if carried is None else carried.to_pylist():
        groups[row["group"]].restore(state_of(row["state"]))
    told = names_in(inputs.offset_commits) if told is None else told
    for row in told.filter(pc.is_in(told.column("group").cast(pa.string()), pa.array(list(names), pa.string()))).to_pylist():
        names[row["group"]].learn_commit(row["topic_id"], row["topic"])
    for group_id, record in telling(inputs.group_records):
        names[group_id].learn(record)
    for group in groups.values():
        group.rename()
    return groups


def _states(found: Spans, groups: Mapping[str, _Group]) -> dict[str, tuple[str, bool]]:
    """What a later build goes on from. Rows of spans that are for good are forgotten."""
    for member, settled in found.open_members:
        member.infos, member.told = member.infos[max(settled - 1, 0) :], min(settled, 1)
    for assignment, settled in found.open_assignments:
        assignment.told = settled
    return {group_id: (text_of(group.state()), group.is_waiting) for group_id, group in sorted(groups.items())}


_keys = lru_cache(maxsize=8_192)(decode_key)
"""The same few keys come again and again."""


def _decoded(record_type: int, key: bytes, value: bytes | None) -> GroupRecord:
    quick = None if value is None else quick_value(record_type, value)
    return interpreted(record_type, key, value) if quick is None else GroupRecord(_keys(key), quick)


def type_of(record_type: int) -> GroupType:
    """Return the type of the groups that have records of this type, for all that count epochs."""
    schema = SCHEMAS.get(record_type)
    return "consumer" if schema is None else schema.type


_SHARED = ("_history", "_topics")


class _Group:
    """A group through all its lives: created, deleted, created again, of one protocol or the other."""

    def __init__(self, group_id: str, found: Spans, topics: TopicNames) -> None:
        self._history = GroupHistory(group_id, found, topics.is_sure)
        self.topics = topics
        self._now: ReplayedClassicGroup | EpochGroup | None = None
        self._deleted: Generation | None = None
        self._deleted_at = Place(0, 0)
        self._arrival: Arrival | None = None
        """That it has become a consumer group, until its first epoch is known."""
        self.last_offset = -1

    def apply(self, record: GroupRecord, place: Place, group_type: GroupType) -> None:
        """Apply the next record of this group, which is of this type by it."""
        key, value = record.key, record.value
        self.last_offset = self._history.log_offset = place.log_offset
        if isinstance(key, GroupMetadataKey):
            self._classic(value if isinstance(value, GroupMetadataValue) else None, place)
        elif value is None and not self._is_of(group_type):
            pass  # a tombstone of what the group was before, or never had
        elif isinstance(key, ConsumerGroupMetadataKey):
            self._epoch(value if isinstance(value, ConsumerGroupMetadataValue) else None, place, group_type)
        else:
            self._of_epochs(record, self._counting(group_type, place), place)

    def note_open(self) -> None:
        """There are no more records for now: note what may still change."""
        unsettled = [self._deleted] if self._deleted is not None else []
        fresh: set[str] = set()
        if isinstance(self._now, EpochGroup):
            fresh = self._now.fresh
            unsettled += [self._now.unsettled] if self._now.unsettled is not None else []
        self._history.found.unsettled += unsettled
        self._history.found.generations += [self._deleted] if self._deleted is not None else []
        self._history.note_open(fresh)

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs."""
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
        if state["kind"] == ReplayedClassicGroup.type:
            self._now = ReplayedClassicGroup(self._history)
        elif state["kind"]:
            self._now = EpochGroup(self._history, self.topics, state["kind"])
        if self._now is not None:
            vars(self._now).update(state["now"])
        if isinstance(self._now, EpochGroup) and self._now.unsettled is not None:
            self._history.add(self._now.unsettled)

    def rename(self) -> None:
        """What topics are called is known, as far as it is."""
        self._history.rename(self.topics.corrected())

    @property
    def is_waiting(self) -> bool:
        """Return whether rows wait for the name of a topic."""
        return self._history.is_waiting

    def _classic(self, value: GroupMetadataValue | None, place: Place) -> None:
        if value is None:
            if isinstance(self._now, ReplayedClassicGroup):
                self._end(self._now.deleted(place), place)
            return
        arrival = self._switch("classic", place)
        if not isinstance(self._now, ReplayedClassicGroup):
            self._now = ReplayedClassicGroup(self._history)
        self._now.apply(value, place, arrival if value.members else None)

    def _epoch(self, value: ConsumerGroupMetadataValue | None, place: Place, group_type: GroupType) -> None:
        group = self._counting(group_type, place)
        if value is None:
            self._end(group.deleted(place), place)
            return
        arrival, self._arrival = self._arrival, None
        group.bumped(value, place, arrival)

    def _of_epochs(self, record: GroupRecord, group: EpochGroup, place: Place) -> None:
        key: Any = record.key
        value: Any = record.value
        match key, value:
            case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
                group.member(key.member_id, value, place)
            case ConsumerGroupMemberMetadataKey(), None:
                group.member_gone(key.member_id, place)
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
                group.target(value.assignment_epoch)
            case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue() | CurrentTasksValue():
                group.current(key.member_id, value, place)
            case ConsumerGroupCurrentMemberAssignmentKey(), None:
                group.current_gone(key.member_id, place)
            case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue() | None:
                group.regex(key.regular_expression, value)
            case ConsumerGroupPartitionMetadataKey(), TopicNamesValue():
                group.shared()
            case StreamsGroupTopologyKey(), _:
                group.topology(value)
            case _:
                pass  # members' targets say nothing that their current assignments do not

    def _is_of(self, group_type: GroupType) -> bool:
        return self._now is not None and self._now.type == group_type

    def _counting(self, group_type: GroupType, place: Place) -> EpochGroup:
        if not isinstance(self._now, EpochGroup) or self._now.type != group_type:
            self._arrival = self._switch(group_type, place)
            self._now = EpochGroup(self._history, self.topics, group_type)
        return self._now

    def _end(self, row: Generation | None, place: Place) -> None:
        self._now = None
        self._deleted, self._deleted_at = row, place

    def _switch(self, now: GroupType, place: Place) -> Arrival | None:
        """A record of this protocol comes: was the group of the other one until now, with members?

        Kafka removes the one group and writes the other in one step, so the first record of the new one follows at once.
        """
        deleted, deleted_at = self._deleted, self._deleted_at
        is_one_step = place.log_offset == deleted_at.log_offset + 1 and place.time_ms == deleted_at.time_ms
        members: frozenset[str] = frozenset()
        if deleted is not None and is_one_step and deleted.type != now:
            self._deleted = None
            members = frozenset(deleted.members_left or ())
        else:
            self._settle_deletion()
            if self._now is not None and self._now.type != now:
                members = frozenset(self._history.members)
        return Arrival(Cause.DOWNGRADED if now == "classic" else Cause.UPGRADED, members) if members else None

    def _settle_deletion(self) -> None:
        if self._deleted is not None:
            self._history.add(self._deleted)
            self._deleted = None


_OWN = (Arrival, AssignmentSpan, Changes, Generation, MemberInfo, MemberSpan, Place)
_NAMED = (*vars(groups).values(), *vars(coordinator_records).values())
_CLASSES: Mapping[str, type] = {
    each.__name__: each for each in (*_OWN, *(found for found in _NAMED if isinstance(found, type) and is_dataclass(found)))
}
_FIELDS: Mapping[type, Sequence[str]] = {kind: [each.name for each in fields(kind)] for kind in _CLASSES.values()}


def text_of(state: Any) -> str:
    """Return a text that is the same for equal states."""
    return json.dumps(_marked(state), separators=(",", ":"))


def state_of(text: str) -> Any:
    """Return the state that `text_of` wrote."""
    return _READER.decode(text)


_PLAIN = frozenset((type(None), bool, int, str))
"""Kinds of values that JSON has itself: most values, so that they are not asked about one by one in a call of their own."""


def _marked(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    write = _WRITTEN.get(kind)
    return _fields(value) if write is None else write(value)


def _each(values: Iterable[Any]) -> list[Any]:
    return [value if type(value) in _PLAIN else _marked(value) for value in values]


def _fields(value: Any) -> Any:
    kind = type(value)
    return {"class": kind.__name__, "fields": _each([getattr(value, name) for name in _FIELDS[kind]])}


def _in_order(value: Any) -> Any:
    return {type(value).__name__: _each(value)}


def _sorted(value: Any) -> Any:
    kinds = set(map(type, value))
    is_one = len(kinds) == 1 and kinds <= _PLAIN
    return {type(value).__name__: sorted(value) if is_one else sorted(_each(value), key=json.dumps)}


_WRITTEN: Mapping[type, Callable[[Any], Any]] = {
    **dict.fromkeys((list, tuple), _in_order),
    **dict.fromkeys((set, frozenset), _sorted),
    Cause: lambda value: {"cause": value.value},
    bytes: lambda value: {"bytes": value.hex()},
    UUID: lambda value: {"uuid": value.hex},
    dict: lambda value: {"dict": [_each(pair) for pair in value.items()]},
}


def _unmarked(found: dict[str, Any]) -> Any:
    """What a mark stands for; what is in it was read before."""
    name = found.get("class")
    if name is not None:
        return _CLASSES[name](*found["fields"])
    ((kind, value),) = found.items()
    return _READ[kind](value)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "cause": Cause,
    "bytes": bytes.fromhex,
    "uuid": UUID,
    **{kind.__name__: kind for kind in (dict, list, tuple, set, frozenset)},
}
_READER = json.JSONDecoder(object_hook=_unmarked)
