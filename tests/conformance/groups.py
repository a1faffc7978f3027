"""Groups as the cases write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kgctl.coordinator.classic.group import ClassicGroup, ClassicMember
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.streams.group import StreamsGroup
from tests.conformance.notation import assigned, from_topic_ids, subscribed
from tests.conformance.records import classic_view, with_epochs
from tests.conformance.share import share_view
from tests.conformance.streams import streams_view

View = dict[str, Any]
Names = Mapping[UUID, str]


def group_view(coordinator: GroupCoordinator, group_id: str, names: Names) -> View:
    """The group as it is now."""
    group = coordinator.shard.groups.get(group_id)
    if group is None:
        return {"exists": False}
    if isinstance(group, ClassicGroup):
        return _classic(group)
    if isinstance(group, ConsumerGroup):
        return _consumer(group, names)
    if isinstance(group, ShareGroup):
        return share_view(coordinator.shard, group, names)
    assert isinstance(group, StreamsGroup)
    return streams_view(group)


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


def _consumer(group: ConsumerGroup, names: Names) -> View:
    view: View = {
        "exists": True,
        "type": "consumer",
        "state": group.group_state.value,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "protocol_type": "consumer",
        "member_count": len(group.members),
        "members": sorted(group.members),
        "details": [_consumer_member(group, group.members[member_id], names) for member_id in sorted(group.members)],
    }
    if group.regex_subscribers:
        view["regexes"] = {regex: _topics_of_regex(group, regex) for regex in group.regex_subscribers}
    return view


def _topics_of_regex(group: ConsumerGroup, regex: str) -> list[str] | None:
    resolved = group.resolved_regexes.get(regex)
    return None if resolved is None else list(resolved.topics)


def _consumer_member(group: ConsumerGroup, member: ConsumerMember, names: Names) -> View:
    target = tuple((topic_id, tuple(numbers)) for topic_id, numbers in group.target_of(member.member_id).items())
    return {
        "id": member.member_id,
        "instance": member.instance_id,
        "epoch": member.member_epoch,
        "previous_epoch": member.previous_member_epoch,
        "state": member.state.name,
        "assigned": with_epochs(group.partition_form.record_of(member.assigned), names),
        "revoking": with_epochs(group.partition_form.record_of(member.pending_revocation), names),
        "target": from_topic_ids(target, names),
        "topics": sorted(member.topic_set),
        "regex": member.subscribed_regex,
        "assignor": member.server_assignor,
        "rebalance": member.rebalance_timeout_ms,
        "classic": classic_view(member.classic),
    }
