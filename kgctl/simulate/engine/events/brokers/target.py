"""Which broker an event means."""

from __future__ import annotations

from kgctl.simulate.engine.broker.coordination import Coordination
from kgctl.simulate.engine.events.kind import EventRun, Field, FieldType
from kgctl.simulate.scenario.distributions import Constant

COORDINATOR = "coordinator"
LOAD = Field(
    name="load",
    type=FieldType.DISTRIBUTION,
    help="how long the new coordinator reads its log, 100 ms if not given",
    default=Constant(100_000),
)


def coordination_of(run: EventRun) -> Coordination:
    """The run's brokers, which nobody has looked at before the first such event."""
    driver = run.world.broker
    if driver.coordination is None:
        driver.coordination = Coordination(run.world)
    return driver.coordination


def broker_of(run: EventRun) -> int | None:
    """The broker that is meant at this moment; None: the coordinator's, and there is none."""
    target = run.event.target
    return coordination_of(run).leader if target == COORDINATOR else int(target)
