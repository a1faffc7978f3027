"""How a server is doing, as plain data: groups, rebalances and whom they wait for, requests, delays, memory."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from kgctl.coordinator.classic.group import ClassicGroup, ClassicMember
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.model.requests import RebalanceStatus
from kgctl.server.pieces import Work
from kgctl.server.request_context import Services
from kgctl.server.traffic import Host


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which groups an operator asks for: these, or all; only those with a rebalance under way; with their members."""

    groups: tuple[str, ...] = ()
    only_rebalancing: bool = False
    with_members: bool = False


def rebalances(services: Services) -> Work[list[RebalanceStatus]]:
    """Where each group's rebalance stands that is not over, by group id."""
    core, now_ms = services.runtime.core, services.runtime.clock()
    found = []
    for group_id in sorted(core.shard.groups):
        yield None
        status = core.rebalance_status(group_id, now_ms)
        if status is not None and status.waiting_for is not None:
            found.append(status)
    return found


def _counts(services: Services) -> Work[dict[str, Any]]:
    """Groups by type and state, members by type, offsets."""
    core = services.runtime.core
    groups: Counter[tuple[str, str]] = Counter()
    members: Counter[str] = Counter()
    for group_id in list(core.shard.groups):
        yield None
        group = core.shard.groups.get(group_id)
        if group is not None:
            groups[group.type.value, group.group_state.value] += 1
            members[group.type.value] += group.member_count
    return {
        "groups": [{"type": kind, "state": state, "count": count} for (kind, state), count in sorted(groups.items())],
        "members": dict(members),
        "offsets": len(core.shard.offsets),
    }


def status(services: Services, host: Host) -> Work[dict[str, Any]]:
    """Everything that an operator is told, rebalances under way among it."""
    watch = host.watch
    uptime_s = monotonic() - watch.started_s
    counts = yield from _counts(services)
    under_way = yield from rebalances(services)
    return {
        "process_id": os.getpid(),
        "uptime_s": round(uptime_s, 1),
        "connections": len(host.connections),
        "requests": sum(watch.requests.values()),
        "requests_by_api": {str(key): count for key, count in sorted(watch.requests.items())},
        "requests_per_s": round(watch.rate(), 1),
        "loop_delay_ms": round(watch.delay_s * 1000, 1),
        "longest_loop_delay_ms": round(watch.longest_delay_s * 1000, 1),
        "longest_hold_ms": round(watch.longest_s * 1000, 1),
        "longest_hold": watch.longest,
        "held_too_long": watch.held_too_long,
        "bytes_in_flight": host.budget.used,
        "memory_bytes": memory_bytes(),
        **counts,
        "rebalances": [asdict(rebalance) for rebalance in under_way],
    }


def memory_bytes() -> int | None:
    """What the process keeps in memory now; None where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file of a user's
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def group_rows(services: Services, wanted: Wanted) -> Work[list[dict[str, Any]]]:
    """One row a group, by id: its state, its generation, whom its rebalance waits for; its members where they are wanted."""
    core, now_ms = services.runtime.core, services.runtime.clock()
    rows = []
    for group_id in wanted.groups or sorted(core.shard.groups):
        yield None
        group, rebalance = core.shard.groups.get(group_id), core.rebalance_status(group_id, now_ms)
        if group is None or rebalance is None or (wanted.only_rebalancing and rebalance.waiting_for is None):
            continue
        row = _row(group, rebalance, now_ms)
        if wanted.with_members:
            row["member_rows"] = yield from _members(services, group)
        rows.append(row)
    return rows


def _row(group: Any, rebalance: RebalanceStatus, now_ms: int) -> dict[str, Any]:
    waits = rebalance.waiting_for is not None
    return {
        "group": group.group_id,
        "type": group.type.value,
        "state": group.group_state.value,
        "members": group.member_count,
        "generation": group.generation_id if isinstance(group, ClassicGroup) else _epoch(group),
        "leader": group.leader_id if isinstance(group, ClassicGroup) else None,
        "protocol": group.protocol_name if isinstance(group, ClassicGroup) else None,
        "in_state_since_ms": group.state_timestamp_ms if isinstance(group, ClassicGroup) else None,
        "waiting_for": rebalance.waiting_for,
        "awaited": [member.member_id for member in rebalance.awaited] if waits else [],
        "rebalance_started_ms": rebalance.started_ms if waits else None,
        "left_ms": max(0, rebalance.deadline_ms - now_ms) if waits and rebalance.deadline_ms is not None else None,
        "is_stuck": rebalance.is_stuck,
    }


def _epoch(group: Any) -> int | None:
    return group.group_epoch if isinstance(group, ConsumerGroup) else None


def _members(services: Services, group: Any) -> Work[list[dict[str, Any]]]:
    """One row a member. The last sign of life is what its session counts from; None where a longer time runs (a new member)."""
    timers, rows, now_ms = services.runtime.core.shard.timers, [], services.runtime.clock()
    for member_id in sorted(getattr(group, "members", ())):
        yield None
        member = group.members.get(member_id)
        if member is None:
            continue
        if isinstance(member, ClassicMember):
            deadline_ms, timeout_ms = timers.deadline_ms(member.session_timer), member.session_timeout_ms
        else:
            deadline_ms = timers.deadline_ms(TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member_id))
            own = services.runtime.core.shard.group_config(group.group_id).consumer_session_timeout_ms
            timeout_ms = own if member.classic is None else member.classic.session_timeout_ms
        rows.append(
            {
                "member": member_id,
                "instance": getattr(member, "group_instance_id", None) or getattr(member, "instance_id", None),
                "client": member.client_id,
                "host": member.client_host,
                "last_heartbeat_ms": None
                if deadline_ms is None or deadline_ms - timeout_ms > now_ms
                else deadline_ms - timeout_ms,
                "session_ends_ms": deadline_ms,
                "is_waiting": bool(getattr(member, "is_waiting", False)),
            }
        )
    return rows
