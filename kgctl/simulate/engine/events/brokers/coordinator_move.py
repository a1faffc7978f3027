"""``coordinator_move``: the group's partition of ``__consumer_offsets`` gets another leader while the present one lives."""

from __future__ import annotations

from kgctl.simulate.engine.events.brokers.target import COORDINATOR, LOAD, coordination_of
from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, end_after


def _begin(run: EventRun) -> None:
    coordination = coordination_of(run)
    before = coordination.leader
    target = coordination.another() if run.event.target == COORDINATOR else int(run.event.target)
    if target is None or not coordination.move(target, run["load"]):
        run.without_effect()
        return

    def back() -> None:
        if before is not None:
            coordination.move(before, run["load"])

    end_after(run, duration_of(run), back)


KIND = EventKind(
    name="coordinator_move",
    target=Target.BROKER,
    help="The group's coordinator moves to this broker, or (coordinator) to another one, which reads the group's records.",
    begin=_begin,
    fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="until it moves back; without it, it stays there"), LOAD),
)
