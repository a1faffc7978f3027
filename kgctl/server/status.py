"""How the coordinator is doing, as plain data: counts, and each rebalance that is under way."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kgctl.model.results import RebalanceStatus
from kgctl.server.request_context import Services


def rebalances(services: Services) -> list[RebalanceStatus]:
    """Where each group's rebalance stands that is not over, by group id."""
    runtime = services.runtime
    now_ms = runtime.clock()
    statuses = [runtime.core.rebalance_status(group_id, now_ms) for group_id in runtime.group_ids()]
    return [status for status in statuses if status is not None and status.waiting_for is not None]


def status(services: Services, connections: int) -> dict[str, Any]:
    """Counts of groups by type and state, of members and offsets, and the rebalances."""
    statistics = services.runtime.core.statistics()
    return {
        "connections": connections,
        "groups": [{"type": kind, "state": state, "count": count} for (kind, state), count in sorted(statistics.groups.items())],
        "members": dict(statistics.members),
        "offsets": statistics.offsets,
        "rebalances": [asdict(rebalance) for rebalance in rebalances(services)],
    }
