"""Which kinds of events there are: a new one is a kind in one of the modules beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.simulate.engine.events import brokers, pods, rolling, topics
from kgctl.simulate.engine.events.event_run import EventKind

EVENT_KINDS: Mapping[str, EventKind] = {
    kind.name: kind
    for kind in (
        pods.START,
        pods.STOP,
        pods.CRASH,
        pods.RESTART,
        rolling.ROLLING_RESTART,
        rolling.UPGRADE,
        pods.SCALE,
        pods.STALL,
        pods.SLOW,
        pods.PAUSE_PROCESS,
        pods.NETWORK,
        topics.ADD_PARTITIONS,
        topics.CREATE_TOPIC,
        topics.DELETE_TOPIC,
        topics.SET_TRAFFIC,
        brokers.BROKER_DOWN,
        brokers.COORDINATOR_MOVE,
    )
}
"""Name, which is the kind's key in a scenario file -> kind."""
