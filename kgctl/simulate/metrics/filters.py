"""What stands in a metric's parentheses: ``unavailable(cause rebalance, not inv/3, after 10m)``."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from kgctl.simulate.scenario.selectors import Selector
from kgctl.simulate.scenario.values.durations import parse_duration
from kgctl.simulate.scenario.values.selectors import parse_selector

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
