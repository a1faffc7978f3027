"""Which broker an event means."""

from __future__ import annotations

from kgctl.simulate.engine.coordination import Coordination
from kgctl.simulate.engine.events.event_run import EventRun, duration_of, end_after

COORDINATOR = "coordinator"


def coordination_of(run: EventRun) -> Coordination:
    """The run's brokers, which nobody has looked at before the first such event."""
    driver = run.simulation.broker
    if driver.coordination is None:
        driver.coordination = Coordination(run.simulation)
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
