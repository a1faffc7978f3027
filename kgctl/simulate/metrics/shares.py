"""What becomes of the records of a share group: delivered again, given up, held for too long. Amounts are records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from kgctl.simulate.metrics.measured import Measured, statistic_of
from kgctl.simulate.metrics.records import amount_of
from kgctl.simulate.scenario.checks import Filters
from kgctl.simulate.scenario.metric import COUNT, DELIVERIES, RECORDS, SECONDS, SHARE, TIME, WHERE, metric
from kgctl.simulate.scenario.vocabulary import GivenBack

if TYPE_CHECKING:
    from kgctl.simulate.recording.recording import Archival, Redelivery, Return, ShareHistory

_E = TypeVar("_E", bound="Redelivery | Return | Archival")
_WHY = tuple(why.label for why in GivenBack)


def _history(run: Measured) -> ShareHistory:
    history = run.recording.share
    assert history is not None
    return history


def _meant(run: Measured, found: Iterable[_E], filters: Filters) -> list[_E]:
    """Return those within the window, of the topics, pods and reasons that are named."""
    first, last = run.window(filters)
    numbers, cause, selector = frozenset(run.partitions(filters)), filters.cause, filters.selector
    return [
        each
        for each in found
        if first <= each.at_us <= last
        and each.number in numbers
        and (cause is None or each.why.label == cause)
        and (selector is None or run.is_meant(each.pod, filters))
    ]


def _distinct(found: Sequence[Redelivery]) -> int:
    """Return how many records these are, each counted once."""
    records = {(each.number, offset) for each in found for offset in range(each.first, each.last + 1)}
    return len(records)


@metric(
    RECORDS,
    ("cause", *WHERE),
    label="redelivered",
    hint="records delivered twice or more",
    causes=_WHY,
    place=6,
    about=DELIVERIES,
)
def redelivered(run: Measured, filters: Filters) -> float:
    """Records that were delivered again, each counted once; ``cause``: why they had come back."""
    return _distinct(_meant(run, _history(run).redelivered, filters))


@metric(RECORDS, ("cause", *WHERE), causes=_WHY, about=DELIVERIES)
def redeliveries(run: Measured, filters: Filters) -> float:
    """Deliveries that are not the first of their record."""
    return sum(each.amount for each in _meant(run, _history(run).redelivered, filters))


@metric(COUNT, WHERE, about=DELIVERIES)
def most_deliveries(run: Measured, filters: Filters) -> float:
    """How often the record was delivered that was delivered most often."""
    counts = (each.deliveries for each in _meant(run, _history(run).redelivered, filters))
    return max(chain(counts, (1,) if _history(run).delivered else ()), default=0)


@metric(
    RECORDS,
    ("cause", *WHERE),
    label="archived",
    hint="records given up, which nobody processed",
    causes=_WHY,
    place=7,
    about=DELIVERIES,
    is_grave=True,
)
def archived(run: Measured, filters: Filters) -> float:
    """Records that are given up: at the delivery limit, by how they came back last, or as the application rejects them."""
    return sum(each.amount for each in _meant(run, _history(run).archived, filters))


@metric(
    RECORDS,
    WHERE,
    label="lock time-outs",
    hint="records held for longer than their lock",
    place=8,
    about=DELIVERIES,
    is_grave=True,
)
def lock_timeouts(run: Measured, filters: Filters) -> float:
    """Records whose lock timed out while a member had them, once for each time."""
    history = _history(run)
    ended: list[Return | Archival] = [*_meant(run, history.returned, filters), *_meant(run, history.archived, filters)]
    return sum(each.amount for each in ended if each.why is GivenBack.TIMED_OUT)


@metric(RECORDS, WHERE, label="late acknowledgements", about=DELIVERIES)
def refused_acknowledgements(run: Measured, filters: Filters) -> float:
    """Records that were acknowledged in vain: they were not the member's any more."""
    return run.total(_history(run).refused, filters)


@metric(RECORDS, WHERE, is_better_higher=True, about=DELIVERIES)
def acknowledged(run: Measured, filters: Filters) -> float:
    """Records that were accepted."""
    return run.total(_history(run).acknowledged, filters)


@metric(RECORDS, ("topic", "at", "mean", "peak", *TIME), about=DELIVERIES)
def in_flight(run: Measured, filters: Filters) -> float:
    """Records that members have, fetched and not acknowledged: at the end, at a time, or their mean or peak."""
    return amount_of(run, "in_flight", _history(run).in_flight.items, filters)


@metric(
    SECONDS,
    ("percentile", "mean", "max", "min", "topic", *TIME),
    label="time in flight",
    about=DELIVERIES,
)
def in_flight_time(run: Measured, filters: Filters) -> float | None:
    """From a record's delivery to its acknowledgement: the median, or another statistic. None: none was acknowledged."""
    first, last = run.window(filters)
    lengths: Counter[int] = Counter()
    for at_us, topic, found in _history(run).held:
        if first <= at_us <= last and (not filters.topics or topic in filters.topics):
            lengths += found
    return statistic_of(lengths, filters)


@metric(
    SHARE,
    ("selector", *TIME),
    label="without work",
    hint="consumers that waited for records",
    about=DELIVERIES,
)
def without_work(run: Measured, filters: Filters) -> float | None:
    """The share of the consumers' time in which poll() waited for records."""
    window, waiting, running = run.window(filters), _history(run).waiting, 0
    waited = 0
    for pod in run.pods(filters):
        running += sum(last - first for first, last in run.clip(run.history.pods[pod].running.until(window[1]), window))
        if pod in waiting:
            waited += sum(last - first for first, last in run.clip(waiting[pod].until(window[1]), window))
    return waited / running if running else None
