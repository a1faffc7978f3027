"""``coordinator_move``: the group's partition of ``__consumer_offsets`` gets another leader while the present one lives."""

from __future__ import annotations

from kgctl.simulate.engine.events.brokers.target import COORDINATOR, LOAD, coordination_of
from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, in_a_while


def _begin(run: EventRun) -> None:
    coordination = coordination_of(run)
    before = coordination.leader
    target = coordination.another() if run.event.target == COORDINATOR else int(run.event.target)
    if target is None or not coordination.move(target, run["load"]):
        run.without_effect()
        return
    duration_us = duration_of(run)
    if duration_us is None:
        run.over()
    else:
        in_a_while(run, duration_us, lambda _: _end(run, before))


def _end(run: EventRun, before: int | None) -> None:
    if before is not None:
        coordination_of(run).move(before, run["load"])
    run.over()


KIND = EventKind(
    name="coordinator_move",
    target=Target.BROKER,
    help="The group's coordinator moves to this broker, or (coordinator) to another one, which reads the group's records.",
    begin=_begin,
    fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="until it moves back; without it, it stays there"), LOAD),
)
