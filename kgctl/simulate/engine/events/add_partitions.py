"""``add_partitions``: a topic grows."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target


def _begin(run: EventRun) -> None:
    world, name = run.world, run.event.target
    present = world.image.topics[name].partition_count if name in world.image.topics else 0
    wanted = run["to"] if run["to"] is not None else present + run["by"]
    if not present or wanted <= present:  # Kafka refuses it
        run.without_effect()
        return
    world.topics.grow(name, wanted)
    run.over()


KIND = EventKind(
    name="add_partitions",
    target=Target.TOPIC,
    help="The topic has more partitions from now on; its traffic is shared out anew. No effect where it has as many already.",
    begin=_begin,
    fields=(
        Field(name="to", type=FieldType.COUNT, help="so many partitions"),
        Field(name="by", type=FieldType.COUNT, help="so many more"),
    ),
    one_of=("to", "by"),
)
