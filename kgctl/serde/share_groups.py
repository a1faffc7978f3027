"""The tables of share groups' records (KIP-932): fields in the order of Kafka 4.3's ``ShareGroup*Value.json``.

`kgctl.serde.coordinator_records` reads and writes by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from kgctl.model import share_records as model
from kgctl.serde.record_schema import INT8, INT32, INT64, Field, Layout, Structure, array, nullable_string, string, uuid


class _TopicPartitions(NamedTuple):
    topic_id: UUID
    partitions: tuple[int, ...]


_PARTITIONS = Field("partitions", array(INT32))
_NAMED = (Field("topic_id", uuid), Field("topic_name", string))


def _topic_partitions(layout: Layout) -> Structure:
    return Structure(_TopicPartitions, (Field("topic_id", uuid), _PARTITIONS), layout, values=tuple)


def _named_partitions(layout: Layout) -> Structure:
    return Structure(model.NamedTopicPartitions, (*_NAMED, _PARTITIONS), layout)


def _named_topic(layout: Layout) -> Structure:
    return Structure(model.NamedTopic, _NAMED, layout)


SHARE_VALUES: Mapping[int, tuple[Callable[..., Any], Sequence[Field]]] = {
    10: (
        model.ShareGroupMemberMetadataValue,
        (
            Field("rack_id", nullable_string),
            Field("client_id", string),
            Field("client_host", string),
            Field("subscribed_topic_names", array(string)),
        ),
    ),
    11: (model.ShareGroupMetadataValue, (Field("epoch", INT32), Field("metadata_hash", INT64))),
    12: (
        model.ShareGroupTargetAssignmentMetadataValue,
        (Field("assignment_epoch", INT32), Field("assignment_timestamp_ms", INT64, tag=0, default=0)),
    ),
    13: (model.ShareGroupTargetAssignmentMemberValue, (Field("topic_partitions", array(_topic_partitions)),)),
    14: (
        model.ShareGroupCurrentMemberAssignmentValue,
        (
            Field("member_epoch", INT32),
            Field("previous_member_epoch", INT32),
            Field("state", INT8),
            Field("assigned_partitions", array(_topic_partitions)),
        ),
    ),
    15: (
        model.ShareGroupStatePartitionMetadataValue,
        (
            Field("initializing_topics", array(_named_partitions)),
            Field("initialized_topics", array(_named_partitions)),
            Field("deleting_topics", array(_named_topic)),
        ),
    ),
}
"""Record type -> what a value of it becomes, and its fields; there is one version, 0, in the compact encoding."""
_GROUP = (Field("group", string),)
_GROUP_AND_MEMBER = (*_GROUP, Field("member_id", string))
SHARE_KEYS: Mapping[int, tuple[Callable[..., Any], Sequence[Field]]] = {
    10: (model.ShareGroupMemberMetadataKey, _GROUP_AND_MEMBER),
    11: (model.ShareGroupMetadataKey, _GROUP),
    12: (model.ShareGroupTargetAssignmentMetadataKey, _GROUP),
    13: (model.ShareGroupTargetAssignmentMemberKey, _GROUP_AND_MEMBER),
    14: (model.ShareGroupCurrentMemberAssignmentKey, _GROUP_AND_MEMBER),
    15: (model.ShareGroupStatePartitionMetadataKey, _GROUP),
}
"""Record type -> what a key of it becomes, and its fields."""
