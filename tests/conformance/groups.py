"""Groups as the cases write them.

A classic group is read from the coordinator. A consumer-protocol group is read from its records: everything it consists of is
durable, so what the log holds is what the group must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.member import ClassicMember
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.model.groups import GroupType
from kgctl.model.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from tests.conformance.notation import assigned, from_topic_ids, subscribed
from tests.conformance.records import MEMBER_STATES, classic_view, with_epochs

View = dict[str, Any]
Names = Mapping[UUID, str]
Log = Mapping[Any, Any]
"""The newest value of each key; tombstoned keys are not in it."""


def group_view(coordinator: GroupCoordinator, group_id: str, log: Log, names: Names) -> View:
    """The group as it is now."""
    group = coordinator.shard.groups.get(group_id)
    if group is None:
        return {"exists": False}
    if isinstance(group, ClassicGroup):
        return _classic(group)
    assert group.type is GroupType.CONSUMER
    view = _consumer(group_id, log, names)
    assert group.group_state.value == view["state"], "the group's state is not what its records say"
    return view


def _classic(group: ClassicGroup) -> View:
    return {
        "exists": True,
        "type": "classic",
        "state": group.state.value,
        "generation": group.generation_id,
        "leader": group.leader_id,
        "protocol": group.protocol_name,
        "protocol_type": group.protocol_type or "",
        "member_count": len(group.members),
        "members": sorted(group.members),
        "pending": sorted(group.pending_joins),
        "details": [_classic_member(group, group.members[member_id]) for member_id in sorted(group.members)],
    }


def _classic_member(group: ClassicGroup, member: ClassicMember) -> View:
    waiting = "join" if member.parked_join is not None else None
    view = {
        "id": member.member_id,
        "instance": member.group_instance_id,
        "session": member.session_timeout_ms,
        "rebalance": member.rebalance_timeout_ms,
        "waiting": "sync" if member.parked_sync is not None else waiting,
        "protocols": [protocol.name for protocol in member.protocols],
    }
    if group.protocol_type == "consumer":
        view |= {"topics": subscribed(member.protocols[0].metadata), "assignment": assigned(member.assignment)}
    return view


def _consumer(group_id: str, log: Log, names: Names) -> View:
    metadata = log.get(ConsumerGroupMetadataKey(group_id))
    target = log.get(ConsumerGroupTargetAssignmentMetadataKey(group_id))
    members = sorted(key.member_id for key in log if isinstance(key, ConsumerGroupMemberMetadataKey) and key.group == group_id)
    details = [_consumer_member(group_id, member_id, log, names) for member_id in members]
    epoch = metadata.epoch if metadata else 1
    assignment_epoch = target.assignment_epoch if target else 1
    view: View = {
        "exists": True,
        "type": "consumer",
        "state": _consumer_state(details, epoch, assignment_epoch),
        "epoch": epoch,
        "assignment_epoch": assignment_epoch,
        "protocol_type": "consumer",
        "member_count": len(members),
        "members": members,
        "details": details,
    }
    regexes = {detail["regex"]: None for detail in details if detail["regex"]}
    if regexes:
        view["regexes"] = {regex: _topics_of_regex(group_id, regex, log) for regex in regexes}
    return view


def _topics_of_regex(group_id: str, regex: str, log: Log) -> list[str] | None:
    value = log.get(ConsumerGroupRegularExpressionKey(group_id, regex))
    return None if value is None else list(value.topics)


def _consumer_state(details: list[View], epoch: int, assignment_epoch: int) -> str:
    if not details:
        return "Empty"
    if epoch > assignment_epoch:
        return "Assigning"
    reconciled = all(detail["state"] == "STABLE" and detail["epoch"] == assignment_epoch for detail in details)
    return "Stable" if reconciled else "Reconciling"


def _consumer_member(group_id: str, member_id: str, log: Log, names: Names) -> View:
    member = log[ConsumerGroupMemberMetadataKey(group_id, member_id)]
    current = log.get(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id))
    target = log.get(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))
    return {
        "id": member_id,
        "instance": member.instance_id,
        "epoch": current.member_epoch if current else 0,
        "previous_epoch": current.previous_member_epoch if current else 0,
        "state": MEMBER_STATES[current.state if current else 0],
        "assigned": with_epochs(current.assigned_partitions, names) if current else {},
        "revoking": with_epochs(current.partitions_pending_revocation, names) if current else {},
        "target": from_topic_ids(target.topic_partitions, names) if target else [],
        "topics": list(member.subscribed_topic_names),
        "regex": member.subscribed_topic_regex,
        "assignor": member.server_assignor,
        "rebalance": member.rebalance_timeout_ms,
        "classic": classic_view(member.classic_member_metadata),
    }
