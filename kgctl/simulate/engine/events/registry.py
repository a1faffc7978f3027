"""Which kinds of events there are: a new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.simulate.engine.events import (
    add_partitions,
    crash,
    create_topic,
    delete_topic,
    network,
    pause_process,
    restart,
    rolling_restart,
    scale,
    set_traffic,
    slow,
    stall,
    start,
    stop,
    upgrade,
)
from kgctl.simulate.engine.events.brokers import broker_down, coordinator_move
from kgctl.simulate.engine.events.kind import EventKind

EVENT_KINDS: Mapping[str, EventKind] = {
    kind.name: kind
    for kind in (
        start.KIND,
        stop.KIND,
        crash.KIND,
        restart.KIND,
        rolling_restart.KIND,
        upgrade.KIND,
        scale.KIND,
        stall.KIND,
        slow.KIND,
        pause_process.KIND,
        network.KIND,
        add_partitions.KIND,
        create_topic.KIND,
        delete_topic.KIND,
        set_traffic.KIND,
        broker_down.KIND,
        coordinator_move.KIND,
    )
}
"""Name, which is the kind's key in a scenario file -> kind."""
