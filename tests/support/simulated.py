"""Small scenarios for the tests of the simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgctl.simulate.engine.run import complete
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.metrics.result import MetricView
from kgctl.simulate.scenario.application import PollLoop
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.model import Cluster, MemberSet, Scenario, Topic, Traffic
from kgctl.simulate.scenario.quantities import Constant, Distribution

S = 1_000_000
RANGE = {"partition.assignment.strategy": "range"}
COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
CONSUMER = {"group.protocol": "consumer"}
AT_ONCE = Constant(0)


VARYING = ("for", "ready", "detect", "load", "latency", "replacement")


def event(kind: str, target: str, at_s: float = 0, **keys: Any) -> Event:
    """An event by the keys of a file; times are microseconds; ``for_us`` stands for ``for``, ``with_`` for ``with``."""
    names = {"for_us": "for", "with_": "with", "set_": "set"}
    given = {names.get(name, name): value for name, value in keys.items()}
    given |= {name: Constant(given[name]) for name in VARYING if type(given.get(name)) is int}
    return EVENT_KINDS[kind](target=target, at_us=int(at_s * S), **given)


def scenario(
    *events: Event,
    count: int = 4,
    partitions: int = 8,
    config: Mapping[str, str] = RANGE,
    rate: int | None = None,
    warmup_s: int = 20,
    duration_s: int | None = None,
    poll: Distribution = AT_ONCE,
    poll_timeout_us: int | None = None,
    boot_s: int = 1,
    **members: Any,
) -> Scenario:
    """One topic ``t`` and one set of members ``app``; ``rate``: records a second that are written.

    Clients start and brokers write without taking time, and member ids sort as the pods do, unless a test says otherwise.
    """
    exact = {"client_id": "$name", "client_start": AT_ONCE, **members}
    return Scenario(
        name="test",
        warmup_us=warmup_s * S,
        cluster=Cluster(append=AT_ONCE),
        duration_us=None if duration_s is None else duration_s * S,
        topics=(Topic(name="t", partitions=partitions),),
        members=(
            MemberSet(
                name="app",
                count=count,
                boot=Constant(boot_s * S),
                poll_loop=PollLoop(pause=poll, timeout_us=poll_timeout_us),
                config=dict(config),
                **exact,
            ),
        ),
        traffic=() if rate is None else (Traffic(topic="t", rate=((0, rate * S),)),),
        events=events,
    )


def finished(given: Scenario, seed: int) -> Simulation:
    """A run that is over, for tests that look inside the engine."""
    simulation = Simulation(given, seed, read=MetricView)
    complete([simulation])
    return simulation
