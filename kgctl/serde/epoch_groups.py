"""Records of share groups (KIP-932) and streams groups (KIP-1071), as the history reads them.

They say what records of the consumer protocol say too: an epoch,
the members, the epoch of their target, what each of them has; so they are read into those records' keys and values. What only
they have (processes, endpoints, standby tasks) is left out: a value that is read here is not to be written again.

Kafka 4.3: ``ShareGroup*Value.json``, ``StreamsGroup*Value.json``, ``GroupCoordinatorRecordHelpers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple
from uuid import UUID

from kgctl.model import coordinator_records as model
from kgctl.model.coordinator_records import OpaqueKey, RecordKey, RecordType, RecordValue
from kgctl.model.streams_records import AssignedTaskIds
from kgctl.model.values import frozen_in_order
from kgctl.serde.coordinator_records import (
    KEYS,
    VALUES,
    KeySchema,
    UnknownValueVersionError,
    decode_key,
    decode_record,
    value_structure,
)
from kgctl.serde.record_schema import (
    INT8,
    INT32,
    INT64,
    PLAIN,
    Field,
    Layout,
    Reader,
    Structure,
    array,
    nullable_string,
    string,
    uuid,
)


class TopicNamesValue(NamedTuple):
    """What topics are called, by id: of a share group's record of the partitions whose state is kept."""

    topics: tuple[tuple[UUID, str], ...]


class CurrentTasksValue(NamedTuple):
    """The active tasks of a streams group's member; standby and warm-up tasks do not read for the group.

    ``state``: numbered as in the consumer protocol, 0 STABLE, 1 UNREVOKED_TASKS, 2 UNRELEASED_TASKS; the record begins at 1.
    """

    member_epoch: int
    state: int
    tasks: tuple[AssignedTaskIds, ...]


@frozen_in_order
class GroupRecord:
    """What a coordinator's record says, of a group of any type: a key with its value, or with None: a tombstone."""

    key: RecordKey
    value: RecordValue | TopicNamesValue | CurrentTasksValue | None


@frozen_in_order
class _Schema:
    """``value`` makes the value, of ``fields``; it has one version, 0, and the compact encoding; None: not looked into."""

    type: Literal["share", "streams"]
    key: KeySchema
    value: Callable[..., Any] | None = None
    fields: Sequence[Field] = ()


def _topic_partitions(build: Callable[..., Any], *more: Field) -> Callable[[Layout], Structure]:
    return lambda layout: Structure(build, (Field("topic_id", uuid), *more, Field("partitions", array(INT32))), layout)


def _named_topic(layout: Layout) -> Structure:
    return Structure(lambda topic_id, topic_name: (topic_id, topic_name), _NAMED, layout)


def _named_partitions(layout: Layout) -> Structure:
    fields = (*_NAMED, Field("partitions", array(INT32)))
    return Structure(lambda topic_id, topic_name, partitions: (topic_id, topic_name), fields, layout)  # noqa: ARG005 - not needed


def _names(initializing_topics: Any, initialized_topics: Any, deleting_topics: Any) -> TopicNamesValue:
    return TopicNamesValue((*initializing_topics, *initialized_topics, *deleting_topics))


_NAMED = (Field("topic_id", uuid), Field("topic_name", string))
_EPOCH = (Field("epoch", INT32), Field("metadata_hash", INT64))
_MEMBER_EPOCHS = (Field("member_epoch", INT32), Field("previous_member_epoch", INT32), Field("state", INT8))
_SHARE_MEMBER = (
    Field("rack_id", nullable_string),
    Field("client_id", string),
    Field("client_host", string),
    Field("subscribed_topic_names", array(string)),
)
_SHARE_STATE = (
    Field("initializing_topics", array(_named_partitions)),
    Field("initialized_topics", array(_named_partitions)),
    Field("deleting_topics", array(_named_topic)),
)


def _streams_member(
    *, instance_id: str | None, rack_id: str | None, client_id: str, client_host: str, rebalance_timeout_ms: int, **_: Any
) -> model.ConsumerGroupMemberMetadataValue:
    return model.ConsumerGroupMemberMetadataValue(
        instance_id, rack_id, client_id, client_host, rebalance_timeout_ms=rebalance_timeout_ms
    )


def _target_tasks(**_: Any) -> model.ConsumerGroupTargetAssignmentMemberValue:
    return model.ConsumerGroupTargetAssignmentMemberValue()


def _current_tasks(
    *,
    member_epoch: int,
    state: int,
    active_tasks: tuple[AssignedTaskIds, ...],
    active_tasks_pending_revocation: tuple[AssignedTaskIds, ...],
    **_: Any,
) -> CurrentTasksValue:
    return CurrentTasksValue(member_epoch, state - 1, (*active_tasks_pending_revocation, *active_tasks))


def _as(
    group_type: Literal["share", "streams"],
    of_consumers: RecordType,
    fields: Sequence[Field] | None = None,
    value: Callable[..., Any] | None = None,
) -> _Schema:
    """A record that says what this one of a consumer group says: it has its key, and its fields and value if none are given."""
    if of_consumers not in VALUES:
        return _Schema(group_type, KEYS[of_consumers], value, fields or ())
    theirs = VALUES[of_consumers]
    return _Schema(group_type, KEYS[of_consumers], value or theirs.build, theirs.fields if fields is None else fields)


def _of_tasks(of_consumers: RecordType, own: RecordType, value: Callable[..., Any]) -> _Schema:
    return _as("streams", of_consumers, VALUES[own].fields, value)


SCHEMAS: Mapping[int, _Schema] = {
    RecordType.SHARE_GROUP_MEMBER_METADATA: _as("share", RecordType.CONSUMER_GROUP_MEMBER_METADATA, _SHARE_MEMBER),
    RecordType.SHARE_GROUP_METADATA: _as("share", RecordType.CONSUMER_GROUP_METADATA, _EPOCH),
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: _as("share", RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA),
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: _as("share", RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER),
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _as(
        "share",
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        (*_MEMBER_EPOCHS, Field("assigned_partitions", array(_topic_partitions(model.AssignedTopicPartitions)))),
    ),
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: _as(
        "share", RecordType.CONSUMER_GROUP_PARTITION_METADATA, _SHARE_STATE, _names
    ),
    RecordType.STREAMS_GROUP_METADATA: _as("streams", RecordType.CONSUMER_GROUP_METADATA, _EPOCH),
    RecordType.STREAMS_GROUP_MEMBER_METADATA: _of_tasks(
        RecordType.CONSUMER_GROUP_MEMBER_METADATA, RecordType.STREAMS_GROUP_MEMBER_METADATA, _streams_member
    ),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: _as("streams", RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: _of_tasks(
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, _target_tasks
    ),
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: _of_tasks(
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, _current_tasks
    ),
    RecordType.STREAMS_GROUP_TOPOLOGY: _Schema("streams", KEYS[RecordType.STREAMS_GROUP_TOPOLOGY]),
}


@cache
def structure_of(record_type: int, version: int) -> Structure | None:
    """The codec of a value of any group's record, after its version; None where there is no such version."""
    schema = SCHEMAS.get(record_type)
    if schema is None or schema.value is None:
        return value_structure(record_type, version)
    return Structure(schema.value, schema.fields, Layout(0, flexible=True)) if version == 0 else None


@cache
def _key_structure(record_type: int) -> Structure:
    key = SCHEMAS[record_type].key
    return Structure(key.build, key.fields, PLAIN)


def interpreted_key(raw: bytes) -> RecordKey:
    """Return what a record's key says, of a share or streams group as a key of the consumer protocol.

    Raises `RecordDecodeError`, and KeyError for a type of record that nobody writes yet.
    """
    record_type = int.from_bytes(raw[:2], "big", signed=True)
    if record_type in SCHEMAS:
        found: RecordKey = _key_structure(record_type).read(Reader(raw, 2))
        return found
    plain = decode_key(raw)
    if isinstance(plain, OpaqueKey):
        raise KeyError(plain.record_type)
    return plain


def interpreted(record_type: int, key: bytes, value: bytes | None) -> GroupRecord:
    """Return a record of any group, those of `SCHEMAS` in the terms of the consumer protocol.

    Raises `RecordDecodeError`.
    """
    schema = SCHEMAS.get(record_type)
    if schema is None:
        plain = decode_record(key, value)
        return GroupRecord(plain.key, plain.value)
    found = interpreted_key(key)
    if value is None or schema.value is None:
        return GroupRecord(found, value)
    structure = structure_of(record_type, int.from_bytes(value[:2], "big", signed=True))
    if structure is None:
        raise UnknownValueVersionError(f"a version of record type {record_type} that nobody writes yet")
    return GroupRecord(found, structure.read(Reader(value, 2)))
