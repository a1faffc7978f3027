"""How a server is doing, as plain data: groups, rebalances and whom they wait for, requests, delays, memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from time import monotonic
from typing import Any

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.model.results import RebalanceStatus
from kgctl.server.request_context import Services
from kgctl.server.traffic import Host


def rebalances(services: Services) -> list[RebalanceStatus]:
    """Where each group's rebalance stands that is not over, by group id."""
    runtime = services.runtime
    now_ms = runtime.clock()
    statuses = [runtime.core.rebalance_status(group_id, now_ms) for group_id in runtime.group_ids()]
    return [status for status in statuses if status is not None and status.waiting_for is not None]


def counts(services: Services) -> dict[str, Any]:
    """Groups by type and state, members by type, offsets."""
    statistics = services.runtime.core.statistics()
    return {
        "groups": [{"type": kind, "state": state, "count": count} for (kind, state), count in sorted(statistics.groups.items())],
        "members": dict(statistics.members),
        "offsets": statistics.offsets,
    }


def status(services: Services, host: Host) -> dict[str, Any]:
    """Everything that an operator is told, rebalances under way among it."""
    watch = host.watch
    uptime_s = monotonic() - watch.started_s
    requests = sum(watch.requests.values())
    return {
        "process_id": os.getpid(),
        "uptime_s": round(uptime_s, 1),
        "connections": len(host.connections),
        "requests": requests,
        "requests_by_api": {str(key): count for key, count in sorted(watch.requests.items())},
        "requests_per_s": round(watch.rate(), 1),
        "loop_delay_ms": round(watch.delay_s * 1000, 1),
        "longest_loop_delay_ms": round(watch.longest_delay_s * 1000, 1),
        "longest_hold_ms": round(watch.longest_s * 1000, 1),
        "longest_hold": watch.longest,
        "held_too_long": watch.held_too_long,
        "bytes_in_flight": host.budget.used,
        "memory_bytes": memory_bytes(),
        **counts(services),
        "rebalances": [asdict(rebalance) for rebalance in rebalances(services)],
    }


def memory_bytes() -> int | None:
    """What the process keeps in memory now; None where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file of a user's
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def group_rows(services: Services) -> Iterator[dict[str, Any]]:
    """One row a group, by id: its state, its generation, whom its rebalance waits for."""
    runtime = services.runtime
    now_ms = runtime.clock()
    for group_id in runtime.group_ids():
        group = runtime.core.shard.groups.get(group_id)
        rebalance = runtime.core.rebalance_status(group_id, now_ms)
        if group is None or rebalance is None:
            continue
        waits = rebalance.waiting_for is not None
        yield {
            "group": group_id,
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
