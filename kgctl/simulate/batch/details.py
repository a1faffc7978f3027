"""What metrics come from that are no gaps: records that wait, are read twice or are delivered again, rebalances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from kgctl.errors import plural
from kgctl.simulate.batch.reasons import ReasonContext, origin_of, under_way
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.recording.owners import NOBODY, Gap
from kgctl.simulate.recording.recording import Archival, Redelivery
from kgctl.simulate.recording.trace import TraceEvent
from kgctl.simulate.recording.traffic import LinearSeries
from kgctl.simulate.report.outcome import duration
from kgctl.simulate.scenario.checks import NO_FILTERS
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.vocabulary import GivenBack

OF_BACKLOGS = ("lag", "backlog", "latency", "drain_")
"""How metrics of records that wait begin."""


def details(result: RunResult, events: Sequence[TraceEvent], names: Collection[str]) -> Iterator[str]:
    """Tell in lines what metrics of these names come from that are no gaps: records that wait or are read twice, rebalances;
    and of a share group always what came back."""
    if result.recording.share is None and any(name.startswith(OF_BACKLOGS) for name in names):
        yield from _overload(result, events)
    if {"duplicates", "fenced_commits"} & set(names):
        yield from _repeated(result)
    if {"rebalances", "generations", "rounds"} & set(names):
        yield from _set_off(result, events)
    yield from _came_back(result)


_MOST_TOLD = 3
_MOST_REASONS = 5
_SECOND_US = 1_000_000


def _overload(result: RunResult, events: Sequence[TraceEvent]) -> Iterator[str]:
    """Which pods were given more than they process when most records waited, and most of it in which partition."""
    measured, recording = result.metrics.measured, result.recording
    recording.settle_traffic()
    waiting = LinearSeries.merged(recording.ledger.backlog.values()).points(measured.start_us, measured.end_us)
    at_us = max(waiting, key=lambda point: point[1], default=(measured.end_us, 0))[0]
    arrivals = recording.ledger.arrivals
    given: dict[int, dict[str, int]] = {}
    for number in measured.partitions(NO_FILTERS):
        rate_uhz = (arrivals.total_pr(number, at_us) - arrivals.total_pr(number, max(at_us - _SECOND_US, 0))) // _SECOND_US
        owner = measured.owner_at(number, at_us - 1)
        if owner != NOBODY and rate_uhz:
            given.setdefault(owner, {})[str(recording.partitions.names[number])] = rate_uhz
    pods = recording.history.pods
    over = {owner: sum(rates.values()) - (pods[owner].rate_uhz or sum(rates.values())) for owner, rates in given.items()}
    worst = [owner for owner in sorted(over, key=lambda owner: -over[owner]) if over[owner] > 0]
    for owner in worst[:_MOST_TOLD]:
        rates = given[owner]
        hottest = max(rates, key=lambda name: rates[name])
        yield (
            f"{pods[owner].name} is given {_per_s(sum(rates.values()))} at {duration(at_us - recording.start_us)}, of "
            f"{len(rates)} partitions ({hottest}: {_per_s(rates[hottest])}), and processes {_per_s(pods[owner].rate_uhz or 0)}"
        )
    if len(worst) > _MOST_TOLD:
        yield f"and {len(worst) - _MOST_TOLD} more pods are given more than they process"
    then = duration(at_us - recording.start_us)
    for event in under_way(events, at_us - recording.start_us - 1):
        if EVENT_KINDS[event.event_kind].is_lasting:
            yield f"when most records wait, {then}, event {event.event} {event.target} goes on since {duration(event.at_us)}"


def _per_s(rate_uhz: int) -> str:
    return f"{rate_uhz / 1e6:,.6g}/s"


def _repeated(result: RunResult) -> Iterator[str]:
    """Who read most records again, from when on, and which commits had been refused."""
    history, start_us = result.recording.history, result.recording.start_us
    again = [each for each in history.duplicates if each.at_us >= start_us]
    if again:
        by_pod: Counter[int] = Counter()
        for each in again:
            by_pod[each.pod] += each.amount
        (pod, amount), *_ = by_pod.most_common(1)
        first_us = next(each.at_us for each in again if each.pod == pod)
        yield f"{history.pods[pod].name} reads {amount:,} records again, from {duration(first_us - start_us)} on"
    refused = [each for each in history.fenced_commits if each.at_us >= start_us]
    if refused:
        why = ", ".join(f"{error} {count}" for error, count in Counter(each.what for each in refused).most_common(_MOST_TOLD))
        first = f"{duration(refused[0].at_us - start_us)} of {history.pods[refused[0].pod].name}"
        yield f"commits refused: {why}; the first at {first}"


def _set_off(result: RunResult, events: Sequence[TraceEvent]) -> Iterator[str]:
    """What set each rebalance off."""
    recording = result.recording
    start_us = recording.start_us
    unsettled = [times for times in recording.history.unsettled.until(recording.end_us) if times[0] >= start_us]
    gap = Gap(0, start_us, start_us, NOBODY, NOBODY, ())
    told = [origin_of(ReasonContext(result, gap, first - start_us, last - start_us, events)).text for first, last in unsettled]
    told = [each for each in told if each]
    yield from told[:_MOST_TOLD]
    if len(told) > _MOST_TOLD:
        yield f"and {len(told) - _MOST_TOLD} more rebalances"


def _came_back(result: RunResult) -> Iterator[str]:
    """Why records of a share group were delivered again, or given up: who had them, by which rule, who got them; most first."""
    share, start_us = result.recording.share, result.recording.start_us
    if share is None:
        return
    again = [each for each in share.redelivered if each.at_us >= start_us]
    lines = [(sum(each.amount for each in found), _again(result, found)) for found in _alike(again)]
    gone = [each for each in share.archived if each.at_us >= start_us]
    lines += [(sum(each.amount for each in found), _given_up(result, found)) for found in _alike(gone)]
    lines.sort(key=lambda line: -line[0])
    yield from (text for _, text in lines[:_MOST_REASONS])
    if len(lines) > _MOST_REASONS:
        yield f"and {len(lines) - _MOST_REASONS} more reasons for records that were delivered again"


def _alike(found: Sequence[Redelivery | Archival]) -> Iterator[list[Redelivery | Archival]]:
    def key(each: Redelivery | Archival) -> tuple[GivenBack, int]:
        return each.why, each.before

    for _, group in groupby(sorted(found, key=key), key=key):
        yield list(group)


def _again(result: RunResult, found: Sequence[Redelivery | Archival]) -> str:
    first, amount = found[0], sum(each.amount for each in found)
    pods = result.recording.history.pods
    deliveries = "1 delivery" if amount == 1 else f"{amount:,} deliveries"
    had = f"{deliveries} again of what {pods[first.before].name} had ({first.why.label}: {first.why.meaning})"
    return f"{had}: the first, record {_place(result, first)}, to {pods[first.pod].name} at {_at(result, first)}"


def _given_up(result: RunResult, found: Sequence[Redelivery | Archival]) -> str:
    first, amount = found[0], sum(each.amount for each in found)
    name = result.recording.history.pods[first.before].name
    had = f"{plural(amount, 'record')} given up that {name} had last ({first.why.label}: {first.why.meaning})"
    return f"{had}: the first, record {_place(result, first)}, at {_at(result, first)} after {first.deliveries} deliveries"


def _place(result: RunResult, each: Redelivery | Archival) -> str:
    return f"{each.first} of {result.recording.partitions.labels[each.number]}"


def _at(result: RunResult, each: Redelivery | Archival) -> str:
    return duration(each.at_us - result.recording.start_us)
