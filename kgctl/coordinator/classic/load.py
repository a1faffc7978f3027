"""A classic group when its coordinator takes it over, and when the coordinator gives it up.

Kafka: GroupMetadataManager#onLoaded, #onUnloaded and #replay of a GroupMetadata record.
"""

from __future__ import annotations

from kgctl.coordinator.classic.generation import compute_subscribed_topics
from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.member import ClassicMember
from kgctl.coordinator.classic.rebalance import extend_session, refuse_join, start_rebalance
from kgctl.coordinator.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from kgctl.coordinator.requests import JoinProtocol
from kgctl.coordinator.results import SyncGroupResult
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.records import MemberMetadata


def restore(group: ClassicGroup) -> None:
    """Take members, generation and leader from the record: the last generation that was complete counts again.

    A member supports only the protocol that was elected; a rebalance timeout that the record lacks is the session timeout.
    """
    value = group.recorded
    if value is None:
        return
    group.protocol_type = value.protocol_type or None
    for recorded in value.members:
        group.add_member(_restored_member(group, recorded, value.protocol or ""), value.protocol_type)
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    group.state = group.previous_state = STABLE if value.members else EMPTY
    group.state_timestamp_ms = None if value.current_state_timestamp_ms == -1 else value.current_state_timestamp_ms
    group.subscribed_topics = compute_subscribed_topics(group)


def _restored_member(group: ClassicGroup, recorded: MemberMetadata, protocol: str) -> ClassicMember:
    timeout_ms = recorded.session_timeout_ms if recorded.rebalance_timeout_ms == -1 else recorded.rebalance_timeout_ms
    return ClassicMember(
        member_id=recorded.member_id,
        group_instance_id=recorded.group_instance_id,
        client_id=recorded.client_id,
        client_host=recorded.client_host,
        rebalance_timeout_ms=timeout_ms,
        session_timeout_ms=recorded.session_timeout_ms,
        protocols=(JoinProtocol(name=protocol, metadata=recorded.subscription),),
        session_timer=group.session_timer(recorded.member_id),
        assignment=recorded.assignment,
    )


def wake(shard: Shard, group: ClassicGroup) -> None:
    """The log is loaded: every session starts anew; a group above the limit has to shrink."""
    restore(group)
    for member in group.members.java_values():
        extend_session(shard, member)
    if len(group.members) > shard.config.group_max_size:
        start_rebalance(shard, group)


def retire(shard: Shard, group: ClassicGroup) -> None:
    """The coordinator gives the group up: whoever waits is told to look for another coordinator."""
    state = group.state
    group.transition_to(DEAD, shard.now_ms)
    for member in group.members.java_values():
        if state is PREPARING_REBALANCE:
            refuse_join(shard, group, member, ErrorCode.NOT_COORDINATOR, member.member_id)
        elif state in (COMPLETING_REBALANCE, STABLE) and member.parked_sync is not None:
            shard.reply(member.parked_sync, SyncGroupResult(error=ErrorCode.NOT_COORDINATOR))
            member.parked_sync = None
