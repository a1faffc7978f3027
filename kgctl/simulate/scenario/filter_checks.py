"""Filters of metrics, looked at before anything runs: what no metric of that name can mean is a mistake of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgctl.simulate.scenario.checks import Check
from kgctl.simulate.scenario.expressions.nodes import Metric, metrics_of
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.wording import did_you_mean

_TAKE_WORDS = ("partition", "error", "series", "api", "event")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What filters may name, of all variants together."""

    topics: tuple[str, ...]
    member_sets: tuple[str, ...]

    @classmethod
    def of(cls, scenarios: Sequence[Scenario]) -> Surroundings:
        """Topics, also those that events create, and sets of members."""
        topics = [topic.name for each in scenarios for topic in each.topics]
        created = [event.target for each in scenarios for event in each.events if event.kind == "create_topic"]
        sets = [members.name for each in scenarios for members in each.members]
        return cls(tuple(dict.fromkeys([*topics, *created])), tuple(dict.fromkeys(sets)))


def wrong_filters(check: Check, around: Surroundings) -> Iterator[str]:
    """What is wrong with the filters of a check, in words."""
    for node in (check.node, check.when):
        for metric in metrics_of(node) if node is not None else ():
            yield from wrong_filters_of(metric, around)


def wrong_filters_of(metric: Metric, around: Surroundings) -> Iterator[str]:
    """What is wrong with the filters of one metric, in words."""
    from kgctl.simulate.engine.recorder.causes import Cause
    from kgctl.simulate.metrics.filters import parse_filters
    from kgctl.simulate.metrics.rebalances import rebalance_causes
    from kgctl.simulate.metrics.registry import METRICS

    try:
        filters = parse_filters(metric.filters, topics=around.topics, member_sets=around.member_sets)
    except ValueError as error:
        yield f"{metric.name}: {error}"
        return
    kinds = METRICS[metric.name].filters
    causes = [cause.label for cause in Cause]
    if metric.name == "unavailable" and filters.cause is not None and filters.cause not in causes:
        yield f"{metric.name}: there is no cause {filters.cause!r}{did_you_mean(filters.cause, causes, list_up_to=12)}"
    if metric.name == "rebalances" and filters.cause is not None and filters.cause not in (known := rebalance_causes()):
        yield f"{metric.name}: there is no cause {filters.cause!r}{did_you_mean(filters.cause, known, list_up_to=12)}"
    selected = filters.selector.member_set if filters.selector is not None else None
    if selected is not None and selected not in around.member_sets:
        yield f"{metric.name}: there is no set of members {selected!r}{did_you_mean(selected, around.member_sets, list_up_to=12)}"
    if filters.words and not any(kind in kinds for kind in _TAKE_WORDS):
        known = (*around.topics, *around.member_sets)
        yield f"{metric.name}: {filters.words[0]!r} is no filter of it{did_you_mean(filters.words[0], known, list_up_to=12)}"
