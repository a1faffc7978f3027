"""Which broker an event means."""

from __future__ import annotations

from kgctl.simulate.engine.coordination import Coordination
from kgctl.simulate.engine.events.event_run import EventKind, EventRun, Field, FieldType, Target, duration_of, end_after
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


def broker_down(run: EventRun) -> None:
    coordination, broker = coordination_of(run), broker_of(run)
    if broker is None:
        run.without_effect()
        return
    coordination.fail(broker, duration_of(run, "detect"), run["load"])
    end_after(run, duration_of(run), lambda: coordination.restore(broker))


BROKER_DOWN = EventKind(
    name="broker_down",
    target=Target.BROKER,
    help="A broker's process dies. If it was the group's coordinator, another one reads the group's records and goes on.",
    begin=broker_down,
    fields=(
        Field(name="for", type=FieldType.DISTRIBUTION, help="until it is there again; without it, it stays away"),
        Field(
            name="detect",
            type=FieldType.DISTRIBUTION,
            help="until the controller has noticed; if not given as with Kafka's broker.session.timeout.ms, some 7 to 10 s",
        ),
        LOAD,
    ),
)


def coordinator_move(run: EventRun) -> None:
    coordination = coordination_of(run)
    before = coordination.leader
    target = coordination.another() if run.event.target == COORDINATOR else int(run.event.target)
    if target is None or not coordination.move(target, run["load"]):
        run.without_effect()
        return

    def back() -> None:
        if before is not None:
            coordination.move(before, run["load"])

    end_after(run, duration_of(run), back)


COORDINATOR_MOVE = EventKind(
    name="coordinator_move",
    target=Target.BROKER,
    help="The group's coordinator moves to this broker, or (coordinator) to another one, which reads the group's records.",
    begin=coordinator_move,
    fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="until it moves back; without it, it stays there"), LOAD),
)
