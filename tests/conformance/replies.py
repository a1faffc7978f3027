"""A result becomes the reply as the cases write it: one function for each type of result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupDescribeResult,
    ConsumerGroupHeartbeatResult,
    DeleteGroupsResult,
    DescribeGroupsResult,
    Done,
    HeartbeatResult,
    JoinGroupResult,
    LeaveGroupResult,
    ListGroupsResult,
    OffsetDeleteResult,
    OffsetFetchResult,
    PartitionErrors,
    Result,
    SyncGroupResult,
)
from tests.conformance.notation import assigned, from_topic_ids
from tests.conformance.requests import Step
from tests.conformance.share import SHARE_REPLIES
from tests.conformance.streams import STREAMS_REPLIES

Reply = dict[str, Any]
Names = Mapping[UUID, str]


def _join(result: JoinGroupResult, _: Step, __: Names) -> Reply:
    reply: Reply = {"error": result.error.name, "member": result.member_id}
    if not result.error:
        reply |= {
            "generation": result.generation_id,
            "protocol_type": result.protocol_type,
            "protocol": result.protocol_name,
            "leader": result.leader,
            "skip_assignment": result.skip_assignment,
            "members": sorted(member.member_id for member in result.members),
        }
    return reply


def _sync(result: SyncGroupResult, _: Step, __: Names) -> Reply:
    reply: Reply = {"error": result.error.name}
    if not result.error:
        reply |= {
            "assignment": assigned(result.assignment),
            "protocol": result.protocol_name,
            "protocol_type": result.protocol_type,
        }
    return reply


def _only_error(result: HeartbeatResult | Done, _: Step, __: Names) -> Reply:
    return {"error": result.error.name}


def _leave(result: LeaveGroupResult, step: Step, _: Names) -> Reply:
    if result.error:
        return {"error": result.error.name}
    if step.get("v", 5) < 3:
        return {"error": result.members[0].error.name}
    members = [{"member": m.member_id, "instance": m.group_instance_id, "error": m.error.name} for m in result.members]
    return {"error": "NONE", "members": [{k: v for k, v in member.items() if v is not None} for member in members]}


def _cg_heartbeat(result: ConsumerGroupHeartbeatResult, _: Step, names: Names) -> Reply:
    if result.error:
        return {"error": result.error.name, "message": result.error_message}
    reply: Reply = {"error": "NONE", "message": result.error_message, "member": result.member_id, "epoch": result.member_epoch}
    if result.member_epoch >= 0:
        reply["heartbeat_interval_ms"] = result.heartbeat_interval_ms
        reply["assignment"] = None if result.assignment is None else from_topic_ids(result.assignment, names)
    return reply


def _partitions(result: PartitionErrors | OffsetDeleteResult, _: Step, __: Names) -> Reply:
    error = result.error if isinstance(result, OffsetDeleteResult) else ErrorCode.NONE
    reply: Reply = {"error": error.name}
    if not error:
        reply["partitions"] = {str(partition): failure.name for partition, failure in result.partitions}
    return reply


def _offset_fetch(result: OffsetFetchResult, _: Step, __: Names) -> Reply:
    reply: Reply = {"error": result.error.name}
    if not result.error:
        reply["offsets"] = {str(fetched.partition): fetched.offset for fetched in result.offsets}
        reply["partitions"] = {str(fetched.partition): fetched.error.name for fetched in result.offsets}
        metadata = {str(fetched.partition): fetched.metadata for fetched in result.offsets if fetched.metadata}
        if metadata:
            reply["metadata"] = metadata
    return reply


def _delete_groups(result: DeleteGroupsResult, _: Step, __: Names) -> Reply:
    return {"groups": {group_id: error.name for group_id, error in result.groups}}


def _describe_groups(result: DescribeGroupsResult, _: Step, __: Names) -> Reply:
    groups = [
        {
            "id": group.group_id,
            "error": group.error.name,
            "message": group.error_message,
            "state": group.state,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol_data,
            "members": sorted(member.member_id for member in group.members),
            "with_metadata": any(member.metadata for member in group.members),
            "assignments": {member.member_id: assigned(member.assignment) for member in group.members},
        }
        for group in result.groups
    ]
    return {"groups": groups}


def _describe_consumer_groups(result: ConsumerGroupDescribeResult, _: Step, names: Names) -> Reply:
    groups = [
        {
            "id": group.group_id,
            "error": group.error.name,
            "message": group.error_message,
            "state": group.state,
            "epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignor": group.assignor_name,
            "assignments": {member.member_id: from_topic_ids(member.assignment, names) for member in group.members},
            "targets": {member.member_id: from_topic_ids(member.target_assignment, names) for member in group.members},
            "epochs": {member.member_id: member.member_epoch for member in group.members},
            "member_types": {member.member_id: member.member_type for member in group.members},
        }
        for group in result.groups
    ]
    return {"groups": groups}


def _list_groups(result: ListGroupsResult, _: Step, __: Names) -> Reply:
    groups = [
        {"id": group.group_id, "protocol_type": group.protocol_type, "state": group.state, "type": group.type}
        for group in result.groups
    ]
    return {"groups": sorted(groups, key=lambda group: group["id"])}


_REPLIES: dict[type, Callable[[Any, Step, Names], Reply]] = {
    JoinGroupResult: _join,
    SyncGroupResult: _sync,
    HeartbeatResult: _only_error,
    Done: _only_error,
    LeaveGroupResult: _leave,
    ConsumerGroupHeartbeatResult: _cg_heartbeat,
    PartitionErrors: _partitions,
    OffsetDeleteResult: _partitions,
    OffsetFetchResult: _offset_fetch,
    DeleteGroupsResult: _delete_groups,
    DescribeGroupsResult: _describe_groups,
    ConsumerGroupDescribeResult: _describe_consumer_groups,
    ListGroupsResult: _list_groups,
    **SHARE_REPLIES,
    **STREAMS_REPLIES,
}


def reply_of(result: Result, step: Step, names: Names) -> Reply:
    """What was answered to the step; ``names`` knows every topic id that there ever was."""
    return _REPLIES[type(result)](result, step, names)
