"""Where the rest of the coordinator meets consumer-protocol groups: everything it calls of this package, and nothing else.

Records are replayed by `kgctl.coordinator.consumer.replay`, which stands apart because the shard itself needs it.
"""

from __future__ import annotations

from kgctl.coordinator.consumer.assignment.regexes import handle_regex_resolved
from kgctl.coordinator.consumer.assignment.topics import on_topics_changed
from kgctl.coordinator.consumer.describe import handle_consumer_group_describe, rebalance_status
from kgctl.coordinator.consumer.invariants import check_group
from kgctl.coordinator.consumer.membership.heartbeat import handle_consumer_group_heartbeat
from kgctl.coordinator.consumer.membership.timers import CONSUMER_TIMERS
from kgctl.coordinator.consumer.membership.timers import wake_group as wake
from kgctl.coordinator.consumer.migration.classic_member import heartbeat, join_group, leave_group, sync_group

__all__ = [
    "CONSUMER_TIMERS",
    "check_group",
    "handle_consumer_group_describe",
    "handle_consumer_group_heartbeat",
    "handle_regex_resolved",
    "heartbeat",
    "join_group",
    "leave_group",
    "on_topics_changed",
    "rebalance_status",
    "sync_group",
    "wake",
]
