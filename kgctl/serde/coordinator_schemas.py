"""The keys and values of ``__consumer_offsets`` as tables: one row a field, in the order of Kafka's schemas.

Where a default matters for the equality of bytes, the row says so.

Kafka: group-coordinator/src/main/resources/common/message/*.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from kgctl.model import records as model
from kgctl.model.partitions import ZERO_UUID
from kgctl.model.records import RecordType
from kgctl.serde.record_schema import (
    INT8,
    INT32,
    INT64,
    PLAIN,
    Field,
    Layout,
    Structure,
    array,
    blob,
    nullable,
    nullable_string,
    string,
    uuid,
)


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """A value's table. ``written`` is the version that Kafka 4.3 writes, ``flexible_since`` the first with compact encoding."""

    build: Callable[..., Any]
    fields: Sequence[Field]
    newest: int = 0
    written: int = 0
    flexible_since: int = 0


@dataclass(frozen=True, slots=True)
class KeySchema:
    """A key's table; keys are always in plain encoding."""

    build: Callable[..., Any]
    fields: Sequence[Field]


class _TopicPartitions(NamedTuple):
    """An element of ``model.records.TopicPartitions``: a plain pair with names."""

    topic_id: UUID
    partitions: tuple[int, ...]


def _topic_partitions(layout: Layout) -> Structure:
    rows = (Field("topic_id", uuid), Field("partitions", array(INT32)))
    return Structure(_TopicPartitions, rows, layout, values=tuple)


def _assigned_topic_partitions(layout: Layout) -> Structure:
    rows = (
        Field("topic_id", uuid),
        Field("partitions", array(INT32)),
        Field("assignment_epochs", array(INT32), tag=0, default=()),
    )
    return Structure(model.AssignedTopicPartitions, rows, layout)


def _classic_protocol(layout: Layout) -> Structure:
    return Structure(model.ClassicProtocol, (Field("name", string), Field("metadata", blob)), layout)


def _classic_member_metadata(layout: Layout) -> Structure:
    rows = (Field("session_timeout_ms", INT32), Field("supported_protocols", array(_classic_protocol)))
    return Structure(model.ClassicMemberMetadata, rows, layout)


def _group_member(layout: Layout) -> Structure:
    rows = (
        Field("member_id", string),
        Field("group_instance_id", nullable_string, since=3),
        Field("client_id", string),
        Field("client_host", string),
        Field("rebalance_timeout_ms", INT32, since=1),
        Field("session_timeout_ms", INT32),
        Field("subscription", blob),
        Field("assignment", blob),
    )
    return Structure(model.MemberMetadata, rows, layout)


OFFSET_COMMIT_FIELDS = (
    Field("offset", INT64),
    Field("leader_epoch", INT32, since=3),
    Field("metadata", string),
    Field("commit_timestamp_ms", INT64),
    Field("expire_timestamp_ms", INT64, since=1, until=1),
    Field("topic_id", uuid, since=4, tag=0, default=ZERO_UUID),
)
_GROUP_METADATA_FIELDS = (
    Field("protocol_type", string),
    Field("generation", INT32),
    Field("protocol", nullable_string),
    Field("leader", nullable_string),
    Field("current_state_timestamp_ms", INT64, since=2),
    Field("members", array(_group_member)),
)
_CONSUMER_MEMBER_FIELDS = (
    Field("instance_id", nullable_string),
    Field("rack_id", nullable_string),
    Field("client_id", string),
    Field("client_host", string),
    Field("subscribed_topic_names", array(string)),
    Field("subscribed_topic_regex", nullable_string),
    Field("rebalance_timeout_ms", INT32),
    Field("server_assignor", nullable_string),
    # The default of Kafka's schema is an empty structure, so None, the usual value, is written, as one zero byte.
    Field("classic_member_metadata", nullable(_classic_member_metadata), tag=0, default=model.ClassicMemberMetadata(0)),
)

VALUES: Mapping[int, ValueSchema] = {
    RecordType.OFFSET_COMMIT: ValueSchema(model.OffsetCommitValue, OFFSET_COMMIT_FIELDS, newest=4, written=4, flexible_since=4),
    RecordType.GROUP_METADATA: ValueSchema(
        model.GroupMetadataValue, _GROUP_METADATA_FIELDS, newest=4, written=3, flexible_since=4
    ),
    RecordType.CONSUMER_GROUP_METADATA: ValueSchema(
        model.ConsumerGroupMetadataValue,
        (Field("epoch", INT32), Field("metadata_hash", INT64, tag=0, default=0)),
    ),
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: ValueSchema(model.ConsumerGroupMemberMetadataValue, _CONSUMER_MEMBER_FIELDS),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: ValueSchema(
        model.ConsumerGroupTargetAssignmentMetadataValue,
        (Field("assignment_epoch", INT32), Field("assignment_timestamp_ms", INT64, tag=0, default=0)),
    ),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: ValueSchema(
        model.ConsumerGroupTargetAssignmentMemberValue,
        (Field("topic_partitions", array(_topic_partitions)),),
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: ValueSchema(
        model.ConsumerGroupCurrentMemberAssignmentValue,
        (
            Field("member_epoch", INT32),
            Field("previous_member_epoch", INT32),
            Field("state", INT8),
            Field("assigned_partitions", array(_assigned_topic_partitions)),
            Field("partitions_pending_revocation", array(_assigned_topic_partitions)),
        ),
    ),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: ValueSchema(
        model.ConsumerGroupRegularExpressionValue,
        (Field("topics", array(string)), Field("version", INT64), Field("timestamp_ms", INT64)),
    ),
}

_GROUP = (Field("group", string),)
_GROUP_AND_MEMBER = (*_GROUP, Field("member_id", string))
_OFFSET_KEY = (*_GROUP, Field("topic", string), Field("partition", INT32))

KEYS: Mapping[int, KeySchema] = {
    RecordType.LEGACY_OFFSET_COMMIT: KeySchema(model.OffsetCommitKey, _OFFSET_KEY),
    RecordType.OFFSET_COMMIT: KeySchema(model.OffsetCommitKey, _OFFSET_KEY),
    RecordType.GROUP_METADATA: KeySchema(model.GroupMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_METADATA: KeySchema(model.ConsumerGroupMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: KeySchema(model.ConsumerGroupPartitionMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: KeySchema(model.ConsumerGroupMemberMetadataKey, _GROUP_AND_MEMBER),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: KeySchema(model.ConsumerGroupTargetAssignmentMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: KeySchema(
        model.ConsumerGroupTargetAssignmentMemberKey, _GROUP_AND_MEMBER
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: KeySchema(
        model.ConsumerGroupCurrentMemberAssignmentKey, _GROUP_AND_MEMBER
    ),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: KeySchema(
        model.ConsumerGroupRegularExpressionKey, (*_GROUP, Field("regular_expression", string))
    ),
}

OPAQUE_TYPES_WITH_GROUP = frozenset({*range(10, 16), 17, *range(19, 24)})
"""Share and streams groups: kgctl carries these records without looking inside, but their key begins with the group."""

TYPE_OF_KEY: Mapping[type, int] = {
    schema.build: record_type  # type: ignore[misc]  # each build is a class
    for record_type, schema in KEYS.items()
    if record_type != RecordType.LEGACY_OFFSET_COMMIT
}


@cache
def key_structure(record_type: int) -> Structure | None:
    """The codec of a key's fields, after the type; None for a type that kgctl does not interpret."""
    schema = KEYS.get(record_type)
    return None if schema is None else Structure(schema.build, schema.fields, PLAIN)


@cache
def value_structure(record_type: int, version: int) -> Structure | None:
    """The codec of a value in this version, after the version itself; None where there is no such version."""
    schema = VALUES[record_type]
    if not 0 <= version <= schema.newest:
        return None
    return Structure(schema.build, schema.fields, Layout(version, flexible=version >= schema.flexible_since))
