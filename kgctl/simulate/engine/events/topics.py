"""``add_partitions``: a topic grows."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.simulate.engine.events.event_run import Countdown, EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.scenario.model import Topic


def add_partitions(run: EventRun) -> None:
    world, name = run.world, run.event.target
    present = world.image.topics[name].partition_count if name in world.image.topics else 0
    wanted = run["to"] if run["to"] is not None else present + run["by"]
    if not present or wanted <= present:  # Kafka refuses it
        run.without_effect()
        return
    world.topics.grow(name, wanted)
    run.over()


ADD_PARTITIONS = EventKind(
    name="add_partitions",
    target=Target.TOPIC,
    help="The topic has more partitions from now on; its traffic is shared out anew. No effect where it has as many already.",
    begin=add_partitions,
    fields=(
        Field(name="to", type=FieldType.COUNT, help="so many partitions"),
        Field(name="by", type=FieldType.COUNT, help="so many more"),
    ),
    one_of=("to", "by"),
)


def set_traffic(run: EventRun) -> None:
    follow(run, run["rate"])


def follow(run: EventRun, steps: Sequence[tuple[int, int]]) -> None:
    """The topic of the event has these rates (time from now, rate); with the last one the event is over."""
    world, topic = run.world, run.event.target
    countdown = Countdown(len(steps), run.over)

    def step(rate_uhz: int) -> None:
        world.topics.set_rate(topic, rate_uhz)
        countdown.one()

    for after_us, rate_uhz in steps:
        if after_us:
            world.loop.at(world.loop.now_us + after_us, step, rate_uhz)
        else:
            step(rate_uhz)


SET_TRAFFIC = EventKind(
    name="set_traffic",
    target=Target.TOPIC,
    help="So many records are written to the topic from now on.",
    begin=set_traffic,
    fields=(Field(name="rate", type=FieldType.RATE, help="records of the whole topic", is_required=True),),
)


def create_topic(run: EventRun) -> None:
    if run.event.target in run.world.image.topics:
        run.without_effect()
        return
    run.world.topics.create(Topic(name=run.event.target, partitions=run["partitions"], replicas=run["replicas"]))
    follow(run, run["rate"] or ())


CREATE_TOPIC = EventKind(
    name="create_topic",
    target=Target.NEW_TOPIC,
    help="A topic that was not there.",
    begin=create_topic,
    fields=(
        Field(name="partitions", type=FieldType.COUNT, help="how many partitions", default=12),
        Field(name="replicas", type=FieldType.COUNT, help="how many replicas", default=3),
        Field(name="rate", type=FieldType.RATE, help="records written to it"),
    ),
)


def delete_topic(run: EventRun) -> None:
    if run.event.target not in run.world.image.topics:
        run.without_effect()
        return
    run.world.topics.delete(run.event.target)
    run.over()


DELETE_TOPIC = EventKind(
    name="delete_topic", target=Target.TOPIC, help="The topic is gone, and its offsets with it.", begin=delete_topic
)
