"""``broker_down``: a broker's process dies."""

from __future__ import annotations

from kgctl.simulate.engine.events.brokers.target import LOAD, broker_of, coordination_of
from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, in_a_while


def _begin(run: EventRun) -> None:
    coordination, broker = coordination_of(run), broker_of(run)
    if broker is None:
        run.without_effect()
        return
    coordination.fail(broker, duration_of(run, "detect"), run["load"])
    duration_us = duration_of(run)
    if duration_us is None:
        run.over()
    else:
        in_a_while(run, duration_us, lambda _: _end(run, broker))


def _end(run: EventRun, broker: int) -> None:
    coordination_of(run).restore(broker)
    run.over()


KIND = EventKind(
    name="broker_down",
    target=Target.BROKER,
    help="A broker's process dies. If it was the group's coordinator, another one reads the group's records and goes on.",
    begin=_begin,
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
