"""Rules about traffic."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.simulate.lint.context import Context, Finding
from kgctl.simulate.scenario.model import ONE_PER_SECOND_UHZ


def more_traffic_than_the_members_can_take(context: Context) -> Iterator[Finding]:
    """Lag that never ends."""
    scenario = context.scenario
    rates = [members.rate_uhz for members in scenario.members if members.start is not None and members.count]
    if not rates or None in rates:
        return
    most = {scenario.autoscale.members: scenario.autoscale.maximum} if scenario.autoscale is not None else {}
    counts = {members.name: most.get(members.name, members.count) for members in scenario.members if members.start is not None}
    capacity = sum((members.rate_uhz or 0) * counts.get(members.name, 0) for members in scenario.members)
    last = sum(traffic.steps[-1][1] for traffic in scenario.traffic if traffic.steps)
    last += sum(traffic.wave.mean_uhz for traffic in scenario.traffic if traffic.wave is not None)
    if last > capacity:
        yield Finding(
            ("traffic",),
            f"{last // ONE_PER_SECOND_UHZ}/s are written in the end and {capacity // ONE_PER_SECOND_UHZ}/s can be processed: "
            "the lag has no end",
        )


def rates_without_traffic(context: Context) -> Iterator[Finding]:
    """Members that process nothing: lag and duplicates are all 0."""
    scenario = context.scenario
    for members in scenario.members:
        if members.rate_uhz is not None and not context.writes:
            yield Finding(("members", members.name, "rate"), "there is no traffic to process: lag and duplicates stay 0")
            return
