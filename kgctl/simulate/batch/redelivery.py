"""Why records of a share group were delivered again, or given up: who had them, by which rule they came back, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.recording.shares import Archival, Redelivery
from kgctl.simulate.report.outcome import duration
from kgctl.simulate.scenario.vocabulary import GivenBack

_MOST_TOLD = 5


def came_back(result: RunResult) -> Iterator[str]:
    """Tell in lines, those of most records first, what came back from which pod and who got it then."""
    share, start_us = result.recording.share, result.recording.start_us
    if share is None:
        return
    again = [each for each in share.redelivered if each.at_us >= start_us]
    lines = [(sum(each.amount for each in found), _again(result, found)) for found in _alike(again)]
    gone = [each for each in share.archived if each.at_us >= start_us]
    lines += [(sum(each.amount for each in found), _given_up(result, found)) for found in _alike(gone)]
    lines.sort(key=lambda line: -line[0])
    yield from (text for _, text in lines[:_MOST_TOLD])
    if len(lines) > _MOST_TOLD:
        yield f"and {len(lines) - _MOST_TOLD} more reasons for records that were delivered again"


def _alike(found: Sequence[Redelivery | Archival]) -> Iterator[list[Redelivery | Archival]]:
    def key(each: Redelivery | Archival) -> tuple[GivenBack, int]:
        return each.why, each.before

    for _, group in groupby(sorted(found, key=key), key=key):
        yield list(group)


def _again(result: RunResult, found: Sequence[Redelivery | Archival]) -> str:
    first, amount = found[0], sum(each.amount for each in found)
    pods = result.recording.history.pods
    had = f"{amount:,} deliveries again of what {pods[first.before].name} had ({first.why.label}: {first.why.meaning})"
    return f"{had}: the first, record {_place(result, first)}, to {pods[first.pod].name} at {_at(result, first)}"


def _given_up(result: RunResult, found: Sequence[Redelivery | Archival]) -> str:
    first, amount = found[0], sum(each.amount for each in found)
    name = result.recording.history.pods[first.before].name
    had = f"{amount:,} records given up that {name} had last ({first.why.label}: {first.why.meaning})"
    return f"{had}: the first, record {_place(result, first)}, at {_at(result, first)} after {first.deliveries} deliveries"


def _place(result: RunResult, each: Redelivery | Archival) -> str:
    return f"{each.first} of {result.recording.partitions.labels[each.number]}"


def _at(result: RunResult, each: Redelivery | Archival) -> str:
    return duration(each.at_us - result.recording.start_us)
