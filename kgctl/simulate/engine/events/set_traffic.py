"""``set_traffic``: a topic's rate changes."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target


def _begin(run: EventRun) -> None:
    run.world.topics.set_rate(run.event.target, run["rate"])
    run.over()


KIND = EventKind(
    name="set_traffic",
    target=Target.TOPIC,
    help="So many records are written to the topic from now on.",
    begin=_begin,
    fields=(Field(name="rate", type=FieldType.RATE, help="records of the whole topic", is_required=True),),
)
