"""The tables of streams groups' records (KIP-1071): fields in the order of Kafka 4.3's ``StreamsGroup*Value.json``.

`kgctl.serde.coordinator_records` reads and writes by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgctl.model import streams_records as model
from kgctl.model.streams_topology import CopartitionGroup, DeclaredSubtopology, StreamsTopology, TopicInfo
from kgctl.serde.record_schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
    Field,
    Layout,
    Structure,
    array,
    nullable_in_place,
    nullable_string,
    string,
)


def _task_ids(layout: Layout) -> Structure:
    return Structure(model.TaskIds, (Field("subtopology_id", string), Field("partitions", array(INT32))), layout)


def _assigned_task_ids(layout: Layout) -> Structure:
    fields = (
        Field("subtopology_id", string),
        Field("partitions", array(INT32)),
        Field("assignment_epochs", array(INT32), tag=0, default=()),
    )
    return Structure(model.AssignedTaskIds, fields, layout)


def _pair(layout: Layout) -> Structure:
    fields = (Field("key", string), Field("value", string))
    return Structure(lambda key, value: (key, value), fields, layout, values=tuple)


def _endpoint(layout: Layout) -> Structure:
    return Structure(model.UserEndpoint, (Field("host", string), Field("port", UINT16)), layout)


def _topic_info(layout: Layout) -> Structure:
    fields = (
        Field("name", string),
        Field("partitions", INT32),
        Field("replication_factor", INT16),
        Field("topic_configs", array(_pair)),
    )
    return Structure(TopicInfo, fields, layout)


def _copartition_group(layout: Layout) -> Structure:
    names = ("source_topics", "source_topic_regex", "repartition_source_topics")
    return Structure(CopartitionGroup, tuple(Field(name, array(INT16)) for name in names), layout)


def _subtopology(layout: Layout) -> Structure:
    fields = (
        Field("subtopology_id", string),
        Field("source_topics", array(string)),
        Field("source_topic_regex", array(string)),
        Field("state_changelog_topics", array(_topic_info)),
        Field("repartition_sink_topics", array(string)),
        Field("repartition_source_topics", array(_topic_info)),
        Field("copartition_groups", array(_copartition_group)),
    )
    return Structure(DeclaredSubtopology, fields, layout)


_TASKS = ("active_tasks", "standby_tasks", "warmup_tasks")
STREAMS_VALUES: Mapping[int, tuple[Callable[..., Any], Sequence[Field]]] = {
    17: (
        model.StreamsGroupMetadataValue,
        (
            Field("epoch", INT32),
            Field("metadata_hash", INT64),
            Field("validated_topology_epoch", INT32, tag=0, default=-1),
            Field("last_assignment_configs", array(_pair), tag=1, default=()),
        ),
    ),
    19: (
        model.StreamsGroupMemberMetadataValue,
        (
            Field("instance_id", nullable_string),
            Field("rack_id", nullable_string),
            Field("client_id", string),
            Field("client_host", string),
            Field("rebalance_timeout_ms", INT32),
            Field("topology_epoch", INT32),
            Field("process_id", string),
            Field("user_endpoint", nullable_in_place(_endpoint)),
            Field("client_tags", array(_pair)),
        ),
    ),
    20: (
        model.StreamsGroupTargetAssignmentMetadataValue,
        (Field("assignment_epoch", INT32), Field("assignment_timestamp_ms", INT64, tag=0, default=0)),
    ),
    21: (model.StreamsGroupTargetAssignmentMemberValue, tuple(Field(name, array(_task_ids)) for name in _TASKS)),
    22: (
        model.StreamsGroupCurrentMemberAssignmentValue,
        (
            Field("member_epoch", INT32),
            Field("previous_member_epoch", INT32),
            Field("state", INT8),
            *(Field(name, array(_assigned_task_ids)) for name in _TASKS),
            *(Field(f"{name}_pending_revocation", array(_assigned_task_ids)) for name in _TASKS),
        ),
    ),
    23: (StreamsTopology, (Field("epoch", INT32), Field("subtopologies", array(_subtopology)))),
}
"""Record type -> what a value of it becomes, and its fields; there is one version, 0, in the compact encoding."""
_GROUP = (Field("group", string),)
_GROUP_AND_MEMBER = (*_GROUP, Field("member_id", string))
STREAMS_KEYS: Mapping[int, tuple[Callable[..., Any], Sequence[Field]]] = {
    17: (model.StreamsGroupMetadataKey, _GROUP),
    19: (model.StreamsGroupMemberMetadataKey, _GROUP_AND_MEMBER),
    20: (model.StreamsGroupTargetAssignmentMetadataKey, _GROUP),
    21: (model.StreamsGroupTargetAssignmentMemberKey, _GROUP_AND_MEMBER),
    22: (model.StreamsGroupCurrentMemberAssignmentKey, _GROUP_AND_MEMBER),
    23: (model.StreamsGroupTopologyKey, _GROUP),
}
"""Record type -> what a key of it becomes, and its fields."""
