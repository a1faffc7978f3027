"""``add_partitions``: a topic grows."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target


def _begin(run: EventRun) -> None:
    world = run.world
    present = world.image.topics[run.event.target].partition_count
    world.topics.grow(run.event.target, run["to"] if run["to"] is not None else present + run["by"])
    run.over()


KIND = EventKind(
    name="add_partitions",
    target=Target.TOPIC,
    help="The topic has more partitions from now on; its traffic is shared out anew.",
    begin=_begin,
    fields=(
        Field(name="to", type=FieldType.COUNT, help="so many partitions"),
        Field(name="by", type=FieldType.COUNT, help="so many more"),
    ),
    one_of=("to", "by"),
)
