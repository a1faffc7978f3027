"""What must hold between two calls of the coordinator. If it does not: `InvariantViolation`, a bug, with the group's story."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kgctl.coordinator.classic.group import DEAD, PREPARING_REBALANCE, STATE, ClassicGroup
from kgctl.coordinator.consumer import handlers
from kgctl.coordinator.group import Group
from kgctl.coordinator.shard import Shard
from kgctl.model.groups import GroupType


def check_shard(shard: Shard) -> None:
    """Check every group, and that committed offsets have one. Raises `InvariantViolation`."""
    for group_id in shard.offsets.group_ids():
        if group_id not in shard.groups and group_id not in shard.forgotten:
            raise shard.violation(group_id, "there are offsets but no group")
    for group_id, group in shard.groups.items():
        if group_id != group.group_id:
            raise shard.violation(group_id, f"it is registered under another id than its own, {group.group_id!r}")
        check_group(shard, group)


def check_group(shard: Shard, group: Group) -> None:
    """Check one group by the rules of its type. Raises `InvariantViolation`."""
    check = CHECKS.get(group.type)
    if check is not None:
        check(shard, group)


def check_classic(shard: Shard, group: ClassicGroup) -> None:
    """Check a classic group: its counts, the facts of its state, its timers."""
    if group.state is DEAD:
        return
    for what in (*_broken_counts(group), *_broken_facts(group), *_broken_timers(shard, group)):
        raise shard.violation(group.group_id, what)


def _broken_counts(group: ClassicGroup) -> Iterator[str]:
    """The numbers and maps kept beside the members agree with them."""
    members = group.members.values()
    if group.parked_joins != sum(member.parked_join is not None for member in members):
        yield "the number of parked joins is wrong"
    if group.static_members != {m.group_instance_id: m.member_id for m in members if m.group_instance_id is not None}:
        yield "the static members are not those among the members"
    supported = {name: count for name, count in group.supported_protocols.items() if count}
    if supported != _supported(group):
        yield "the counts of supported protocols are wrong"
    if any(member_id in group.members for member_id in group.pending_joins):
        yield "a member is pending as well"
    if (group.leader_id is None) == bool(members) or (group.leader_id is not None and group.leader_id not in group.members):
        yield f"the leader {group.leader_id!r} is no member, or there is none"


def _supported(group: ClassicGroup) -> dict[str, int]:
    counts: dict[str, int] = {}
    for member in group.members.values():
        for name in member.protocol_names:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _broken_facts(group: ClassicGroup) -> Iterator[str]:
    """Yield what contradicts the state's entry in STATE."""
    facts = STATE[group.state]
    members = group.members.values()
    if members and not facts.may_have_members:
        yield f"it has members in {group.state}"
    if any(member.parked_join is not None for member in members) and not facts.may_park_joins:
        yield f"a JoinGroup is parked in {group.state}"
    if any(member.parked_sync is not None for member in members) and not facts.may_park_syncs:
        yield f"a SyncGroup is parked in {group.state}"
    if facts.has_protocol != (group.protocol_name is not None) and group.state is not PREPARING_REBALANCE:
        yield f"its protocol is {group.protocol_name!r} in {group.state}"
    if facts.has_protocol and not members:
        yield f"it has no members in {group.state}"


def _broken_timers(shard: Shard, group: ClassicGroup) -> Iterator[str]:
    """Timers exist for exactly those that need one: a member that is spared while its request is parked may have none."""
    timers, odd = shard.timers, group.group_id in shard.upgraded
    needed = ((group.join_timer, STATE[group.state].has_join_timer), (group.sync_timer, bool(group.pending_syncs)))
    for key, is_needed in needed:
        if (key in timers) != is_needed and (is_needed or not odd):
            yield f"the {key.kind} timer is wrong in {group.state}"
    for member in group.members.values():
        if member.session_timer not in timers and (member.is_new or not member.is_waiting) and not odd:
            yield f"member {member.member_id!r} has no session timer"
    for member_id in group.pending_joins:
        if group.session_timer(member_id) not in timers:
            yield f"pending id {member_id!r} has no timer"


CHECKS: dict[GroupType, Callable[[Shard, Any], None]] = {
    GroupType.CLASSIC: check_classic,
    GroupType.CONSUMER: handlers.check_group,
}
"""Group type -> its checks."""
