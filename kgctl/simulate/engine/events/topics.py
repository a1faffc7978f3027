"""``add_partitions``: a topic grows."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.simulate.engine.events.event_run import Countdown, EventRun
from kgctl.simulate.scenario.model import Topic


def add_partitions(run: EventRun) -> None:
    simulation, name = run.simulation, run.event.target
    present = simulation.image.topics[name].partition_count if name in simulation.image.topics else 0
    wanted = run["to"] if run["to"] is not None else present + run["by"]
    if not present or wanted <= present:  # Kafka refuses it
        run.without_effect()
        return
    simulation.topics.grow(name, wanted)
    run.over()


def set_traffic(run: EventRun) -> None:
    follow(run, run["rate"])


def follow(run: EventRun, steps: Sequence[tuple[int, int]]) -> None:
    """The topic of the event has these rates (time from now, rate); with the last one the event is over."""
    simulation, topic = run.simulation, run.event.target
    countdown = Countdown(len(steps), run.over)

    def step(rate_uhz: int) -> None:
        simulation.topics.set_rate(topic, rate_uhz)
        countdown.one()

    for after_us, rate_uhz in steps:
        if after_us:
            simulation.loop.at(simulation.loop.now_us + after_us, step, rate_uhz)
        else:
            step(rate_uhz)


def create_topic(run: EventRun) -> None:
    if run.event.target in run.simulation.image.topics:
        run.without_effect()
        return
    run.simulation.topics.create(Topic(name=run.event.target, partitions=run["partitions"], replicas=run["replicas"]))
    follow(run, run["rate"] or ())


def delete_topic(run: EventRun) -> None:
    if run.event.target not in run.simulation.image.topics:
        run.without_effect()
        return
    run.simulation.topics.delete(run.event.target)
    run.over()
