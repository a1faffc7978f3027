"""``create_topic``: a new topic."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.set_traffic import follow
from kgctl.simulate.scenario.model import Topic


def _begin(run: EventRun) -> None:
    if run.event.target in run.world.image.topics:
        run.without_effect()
        return
    run.world.topics.create(Topic(name=run.event.target, partitions=run["partitions"], replicas=run["replicas"]))
    follow(run, run["rate"] or ())


KIND = EventKind(
    name="create_topic",
    target=Target.NEW_TOPIC,
    help="A topic that was not there.",
    begin=_begin,
    fields=(
        Field(name="partitions", type=FieldType.COUNT, help="how many partitions", default=12),
        Field(name="replicas", type=FieldType.COUNT, help="how many replicas", default=3),
        Field(name="rate", type=FieldType.RATE, help="records written to it"),
    ),
)
