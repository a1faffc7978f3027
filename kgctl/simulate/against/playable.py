"""What of a scenario can be played with real clients, and which metrics can then be measured."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.simulate.scenario.checks import Check, Compiled
from kgctl.simulate.scenario.event_kinds import EVENT_KINDS, Event, Target
from kgctl.simulate.scenario.expressions import Metric, metrics_of
from kgctl.simulate.scenario.model import MemberSet, Scenario
from kgctl.simulate.scenario.vocabulary import Choice

_MEASURED = """
    unavailable availability max_gap gap_p50 gap_p95 gap_p99 gaps stop_the_world collateral
    partition_gap takeover_min takeover_p50 takeover_max first_owned all_owned callbacks
    generations rebalances rebalance_time rounds time_to_stable stuck_members detection_time discovery_delay
    moves moves_min excess_moves stickiness ping_pong state_moved
    spread max_mean jain kip54 idle_members members copartitioned
    duplicates double_owned fenced_commits errors flaps thrash replicas member_seconds owners state
"""
MEASURED = frozenset(_MEASURED.split())
"""Metrics of a play. The others need to see inside of brokers and clients: lag, latencies, requests, what a timer took out."""

_CLOSES = frozenset({"start", "stop", "restart", "rolling_restart", "upgrade", "scale", "stall", "slow"})
"""Kinds of events after which no process is killed or frozen."""
MOST_PODS = 200


def is_measured(check: Check) -> bool:
    """Whether everything that a check asks can be measured in a play."""
    nodes = [node for node in (check.node, check.when) if node is not None]
    return all(_is_measured(metric) for node in nodes for metric in metrics_of(node))


def _is_measured(metric: Metric) -> bool:
    is_cause, is_step = (any(part.startswith(word) for part in metric.filters) for word in ("cause ", "step "))
    told = metric.name in MEASURED and not is_step and "lag" not in metric.filters
    return told and not (is_cause and metric.name == "rebalances")


def obstacles(scenario: Scenario) -> Iterator[str]:
    """Say what of the scenario cannot be played, a sentence each."""
    for number, event in enumerate(scenario.events, 1):
        yield from (f"event {number}, {event.kind}: {why}" for why in _obstacles(event))
    if scenario.nemesis is not None and "network" in scenario.nemesis.of:
        yield "nemesis: faults of the network are not made against real clients"
    if scenario.autoscale is not None:
        yield "autoscale: an autoscaler goes by lag and load, which a play does not measure while it runs"
    pods = sum(members.count for members in scenario.members)
    if pods > MOST_PODS:
        yield f"{pods} pods are as many processes here; at most {MOST_PODS} are played"
    for members in scenario.members:
        if members.config.get("group.protocol", "classic") not in ("classic", "consumer"):
            yield f"members {members.name}: group.protocol={members.config['group.protocol']} is not played"


def _obstacles(event: Event) -> Iterator[str]:
    if event.kind == "network" or EVENT_KINDS[event.kind].target is Target.BROKER:
        yield "not done to a real cluster"
    if event.selector is not None and event.selector.choice is Choice.LEADER:
        yield "who leads a real group is not known to others"
    conditions = [condition for condition in (event.when, event["abort_if"]) if isinstance(condition, Compiled)]
    if not all(_is_measured(metric) for condition in conditions for metric in metrics_of(condition.node)):
        yield "its condition asks for what a play does not measure"


def can_be_killed(scenario: Scenario, members: MemberSet) -> bool:
    """Whether a pod of this set may need a process of its own, because it is killed or frozen."""
    if scenario.nemesis is not None or not members.leaves_on_stop:
        return True
    return any(event.kind not in _CLOSES and _may_mean(event, members) for event in scenario.events)


def _may_mean(event: Event, members: MemberSet) -> bool:
    if EVENT_KINDS[event.kind].target in (Target.TOPIC, Target.NEW_TOPIC):
        return False
    selector = event.selector
    return selector is None or selector.negated or selector.member_set in (None, members.name)
