"""``set_traffic``: a topic's rate changes."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import Countdown


def _begin(run: EventRun) -> None:
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


KIND = EventKind(
    name="set_traffic",
    target=Target.TOPIC,
    help="So many records are written to the topic from now on.",
    begin=_begin,
    fields=(Field(name="rate", type=FieldType.RATE, help="records of the whole topic", is_required=True),),
)
