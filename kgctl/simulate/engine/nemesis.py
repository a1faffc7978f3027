"""Seeded random faults, until a time; then calm, in which everything has to get well again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kgctl.simulate.engine.events.kind import EventRun
from kgctl.simulate.engine.events.registry import EVENT_KINDS
from kgctl.simulate.scenario.distributions import Distribution, Exponential, Uniform
from kgctl.simulate.scenario.model import SECOND_US, Event, Nemesis
from kgctl.simulate.scenario.selectors import Choice, Selector

if TYPE_CHECKING:
    from kgctl.simulate.engine.world import World

_LENGTHS: Mapping[str, Distribution] = {
    "crash": Uniform(0, 120 * SECOND_US),
    "stop": Uniform(0, 120 * SECOND_US),
    "restart": Uniform(0, 30 * SECOND_US),
    "stall": Uniform(5 * SECOND_US, 420 * SECOND_US),
    "slow": Uniform(10 * SECOND_US, 300 * SECOND_US),
    "pause_process": Uniform(SECOND_US, 90 * SECOND_US),
    "network": Uniform(SECOND_US, 90 * SECOND_US),
}
FAULTS = tuple(_LENGTHS)
"""The kinds that a nemesis can draw."""
_MORE: Mapping[str, Mapping[str, Any]] = {"slow": {"factor": 10_000_000}, "network": {"partition": True}}


def unleash(world: World, nemesis: Nemesis) -> None:
    """Put the faults into the loop, one after the other. They end before ``until_us`` or are cut short there."""
    rng = world.randomness.stream("nemesis")
    gap = Exponential(nemesis.mean_interval_us)
    until_us = world.scenario.warmup_us + nemesis.until_us
    world.faults_until_us = until_us

    def strike(_: object) -> None:
        now_us = world.loop.now_us
        kind = nemesis.of[int(rng.random() * len(nemesis.of))]
        candidates = [pod for pod in world.pods if pod.process is not None]
        if candidates:
            pod = candidates[int(rng.random() * len(candidates))]
            length_us = min(_LENGTHS[kind].sample(rng), until_us - now_us)
            selector = Selector(
                text=f"{pod.members.name}/{pod.index}",
                member_set=pod.members.name,
                choice=Choice.RANGE,
                first=pod.index,
                last=pod.index,
            )
            event = Event(
                kind=kind,
                target=selector.text,
                selector=selector,
                name=f"nemesis {kind}",
                parameters={"for": length_us, **_MORE.get(kind, {})},
            )
            world.log_event(event, "begins")
            EVENT_KINDS[kind].begin(EventRun(world, event, EVENT_KINDS[kind], lambda: None))
        next_us = now_us + gap.sample(rng)
        if next_us < until_us:
            world.loop.at(next_us, strike)

    first_us = world.scenario.warmup_us + gap.sample(rng)
    if first_us < until_us:
        world.loop.at(first_us, strike)
