"""Rules about brokers."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.coordinator.partitioning import replicas_of
from kgctl.simulate.lint.context import Context, Finding


def nobody_takes_over(context: Context) -> Iterator[Finding]:
    """A coordinator without a replica elsewhere."""
    scenario = context.scenario
    leader, *others = replicas_of(scenario.group_id, context.broker, scenario.cluster.brokers)
    if others:
        return
    for index, event in enumerate(scenario.events):
        if event.kind == "broker_down" and event.target in ("coordinator", str(leader)):
            until = "until it is back" if event["for"] is not None else "for the rest of the run"
            yield Finding(("events", index), f"no other broker has the group's records: there is no coordinator {until}")
