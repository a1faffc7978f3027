"""Where the rest of the coordinator meets consumer-protocol groups: everything it calls of this package, and nothing else.

`group` is always a group of type consumer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kgctl.coordinator.group import Group
from kgctl.coordinator.refusals import refuse
from kgctl.coordinator.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    RegexResolved,
    SyncGroup,
)
from kgctl.coordinator.results import Done, JoinGroupResult, RebalanceStatus
from kgctl.coordinator.timers import Timer, TimerKind
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import MetadataImage

if TYPE_CHECKING:
    from kgctl.coordinator.shard import Shard

CONSUMER_REPLAYERS: dict[type, Callable[[Shard, Any, Any], None]] = {}
"""Key class -> how a record of it changes the state."""

CONSUMER_TIMERS: dict[TimerKind, Callable[[Shard, Timer], None]] = {}
"""Timer kind -> what happens when it fires."""


def join_group(shard: Shard, _group: Group, request: JoinGroup) -> None:
    """JoinGroup to a group that has members."""
    shard.reply(request.request_id, JoinGroupResult(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))


def sync_group(shard: Shard, _group: Group, request: SyncGroup) -> None:
    """SyncGroup of a member that uses the classic protocol."""
    shard.reply(request.request_id, refuse(request, ErrorCode.UNKNOWN_MEMBER_ID))


def heartbeat(shard: Shard, _group: Group, request: Heartbeat) -> None:
    """Heartbeat of a member that uses the classic protocol."""
    shard.reply(request.request_id, refuse(request, ErrorCode.UNKNOWN_MEMBER_ID))


def leave_group(shard: Shard, _group: Group, request: LeaveGroup) -> None:
    """LeaveGroup, of members of either protocol."""
    shard.reply(request.request_id, refuse(request, ErrorCode.UNKNOWN_MEMBER_ID))


def handle_consumer_group_heartbeat(shard: Shard, request: ConsumerGroupHeartbeat) -> None:
    """ConsumerGroupHeartbeat: to a consumer group, to none, or to a classic one, which it may replace or upgrade."""
    shard.reply(request.request_id, refuse(request, ErrorCode.GROUP_ID_NOT_FOUND))


def handle_consumer_group_describe(shard: Shard, request: ConsumerGroupDescribe) -> None:
    """ConsumerGroupDescribe."""
    shard.reply(request.request_id, refuse(request, ErrorCode.GROUP_ID_NOT_FOUND))


def handle_regex_resolved(shard: Shard, request: RegexResolved) -> None:
    """The driver has resolved the regular expressions of a group."""
    shard.reply(request.request_id, Done(error=ErrorCode.GROUP_ID_NOT_FOUND))


def on_topics_changed(shard: Shard, old: MetadataImage) -> None:
    """`Shard.image` is new; ``old`` is what it was. Offsets of deleted topics have been seen to."""


def wake(shard: Shard, group: Group) -> None:
    """The log is loaded: arm the group's timers."""


def rebalance_status(_shard: Shard, group: Group, _now_ms: int) -> RebalanceStatus:
    """Where the group's reconciliation stands at this time."""
    return RebalanceStatus(group_id=group.group_id, state=group.group_state.value, generation_id=0)


def check_group(shard: Shard, group: Group) -> None:
    """Hold the group to its invariants; `InvariantViolation` where one is broken."""
