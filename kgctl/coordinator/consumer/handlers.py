"""Where the rest of the coordinator meets consumer-protocol groups: everything it calls of this package, and nothing else.

Records are replayed by `kgctl.coordinator.consumer.replay`, which stands apart because the shard itself needs it.
"""

from __future__ import annotations

from kgctl.coordinator.consumer.classic_member import heartbeat, join_group, leave_group, sync_group
from kgctl.coordinator.consumer.describe import check_group, handle_consumer_group_describe, rebalance_status
from kgctl.coordinator.consumer.heartbeat import handle_consumer_group_heartbeat
from kgctl.coordinator.consumer.subscription import handle_regex_resolved, on_topics_changed
from kgctl.coordinator.consumer.timers import CONSUMER_TIMERS
from kgctl.coordinator.consumer.timers import wake_group as wake

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
