"""``stall``: the application does not call poll(); its heartbeats go on."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, in_a_while, processes_of
from kgctl.simulate.engine.trace import PodChanged


def _begin(run: EventRun) -> None:
    duration_us = duration_of(run) or 0
    for process in processes_of(run):
        run.world.log(PodChanged(run.world.log_time, process.pod.name, "stall"))
        process.stall(run.world.loop.now_us + duration_us)
    in_a_while(run, duration_us, run.over)


KIND = EventKind(
    name="stall",
    target=Target.PODS,
    help="The applications are stuck in a batch: no poll(), nothing processed; the heartbeat thread goes on.",
    begin=_begin,
    fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="how long", is_required=True),),
)
