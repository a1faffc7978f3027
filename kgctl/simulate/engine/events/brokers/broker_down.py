"""``broker_down``: a broker's process dies."""

from __future__ import annotations

from kgctl.simulate.engine.events.brokers.target import LOAD, broker_of, coordination_of
from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, end_after


def _begin(run: EventRun) -> None:
    coordination, broker = coordination_of(run), broker_of(run)
    if broker is None:
        run.without_effect()
        return
    coordination.fail(broker, duration_of(run, "detect"), run["load"])
    end_after(run, duration_of(run), lambda: coordination.restore(broker))


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
