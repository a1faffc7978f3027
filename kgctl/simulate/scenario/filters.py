"""What stands in a metric's parentheses: ``unavailable(cause rebalance, not inv/3, after 10m)``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from kgctl.simulate.scenario.checks import Check
from kgctl.simulate.scenario.expressions import Metric, metrics_of
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.quantities import parse_duration
from kgctl.simulate.scenario.selectors import Selector, parse_selector
from kgctl.simulate.scenario.vocabulary import METRIC_SPECS, Cause, rebalance_causes
from kgctl.simulate.scenario.wording import did_you_mean

STATISTICS = ("mean", "max", "min", "worst", "total", "peak")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """All that there may be; times are microseconds after the end of the warm-up. ``words`` is what is none of the rest."""

    cause: str | None = None
    selector: Selector | None = None
    topics: tuple[str, ...] = ()
    before_us: int | None = None
    after_us: int | None = None
    at_us: int | None = None
    at_end: bool = False
    statistic: str | None = None
    percentile: float | None = None
    share: float | None = None
    words: tuple[str, ...] = ()

    @property
    def word(self) -> str | None:
        """The first of the words."""
        return self.words[0] if self.words else None


NO_FILTERS = Filters()


def parse_filters(parts: Collection[str], *, topics: Collection[str] = (), member_sets: Collection[str] = ()) -> Filters:
    """The filters that these texts are. Raises ValueError for a time or a selector that is none."""
    filters = NO_FILTERS
    for part in parts:
        filters = _with(filters, part.strip(), topics, member_sets)
    return filters


def _with(  # noqa: PLR0911  # one for each kind of filter
    filters: Filters, part: str, topics: Collection[str], member_sets: Collection[str]
) -> Filters:
    head, _, rest = part.partition(" ")
    if head == "cause" and rest:
        return replace(filters, cause=rest.strip())
    if head in ("before", "after", "at") and rest:
        if rest.strip() == "end":
            return replace(filters, at_end=True)
        return replace(filters, **{f"{head}_us": parse_duration(rest.strip())})  # type: ignore[arg-type]
    if part == "end":
        return replace(filters, at_end=True)
    if part in STATISTICS:
        return replace(filters, statistic=part)
    if (found := _PERCENTILE.fullmatch(part)) is not None:
        return replace(filters, percentile=float(found[1]))
    if (found := _SHARE.fullmatch(part)) is not None:
        return replace(filters, share=float(found[1]) / 100)
    if part in topics:
        return replace(filters, topics=(*filters.topics, part))
    if head == "not" or "/" in part or part in member_sets:
        return replace(filters, selector=parse_selector(part))
    return replace(filters, words=(*filters.words, part))


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

    try:
        filters = parse_filters(metric.filters, topics=around.topics, member_sets=around.member_sets)
    except ValueError as error:
        yield f"{metric.name}: {error}"
        return
    kinds = METRIC_SPECS[metric.name].filters
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
