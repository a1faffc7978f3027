"""What each kind of event does: a new one is a function in one of the modules beside this one and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kgctl.simulate.engine.events import brokers, pods, rolling, topics
from kgctl.simulate.engine.events.event_run import EventRun

BEGIN: Mapping[str, Callable[[EventRun], None]] = {
    "start": pods.start,
    "stop": pods.stop,
    "crash": pods.crash,
    "restart": pods.restart,
    "rolling_restart": rolling.roll,
    "upgrade": rolling.roll,
    "scale": pods.scale,
    "stall": pods.stall,
    "slow": pods.slow,
    "pause_process": pods.pause_process,
    "network": pods.network,
    "add_partitions": topics.add_partitions,
    "create_topic": topics.create_topic,
    "delete_topic": topics.delete_topic,
    "set_traffic": topics.set_traffic,
    "broker_down": brokers.broker_down,
    "coordinator_move": brokers.coordinator_move,
}
"""Kind -> what begins it, and sees to it that `EventRun.over` is called once."""
