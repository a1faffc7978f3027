"""A run with its metrics. Their names and formulas do not change between versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from typing import ParamSpec

from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.engine import run as engine
from kgctl.simulate.metrics import availability, records
from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.recording.owners import cause_of
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.scenario.checks import FilterNames, Filters, are_elsewhere, parse_filters
from kgctl.simulate.scenario.metric import MetricKind, metric_kinds


class MetricView:
    """The metrics of one run, so far or whole. Asking changes nothing."""

    def __init__(self, recording: Recording) -> None:
        self.measured = Measured(recording)
        self._names = FilterNames.of((recording.scenario,))
        self._parsed: dict[tuple[str, ...], Filters] = {}
        self._elsewhere: dict[tuple[MetricKind, Filters], bool] = {}

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """The value; None where there is none. Seconds, records and shares as numbers; infinite for "never".

        Raises:
            UsageError: there is no such metric, or a filter is none.
        """
        kind = metric_kinds().get(name)
        if kind is None:
            raise UsageError(f"unknown metric {name!r}")
        parsed = self.filters(tuple(filters))
        if not self.measured.knows(kind) or not self.measured.has(parsed) or self._are_elsewhere(kind, parsed):
            return None
        return kind.compute(self.measured, parsed)

    def _are_elsewhere(self, kind: MetricKind, filters: Filters) -> bool:
        if not filters.words:
            return False
        key = kind, filters
        if key not in self._elsewhere:
            self._elsewhere[key] = are_elsewhere(filters, kind, self._names)
        return self._elsewhere[key]

    def at(self, name: str, filters: Collection[str], at_us: int) -> float | str | None:
        """A metric that takes ``at``, as it was at this time after the warm-up."""
        parsed = replace(self.filters(tuple(filters)), at_us=at_us)
        value: float | str | None = metric_kinds()[name].compute(self.measured, parsed)
        return value

    def bends(self, from_us: int, to_us: int) -> list[int]:
        """The times between two, after the warm-up, between which sums of records grow or shrink evenly."""
        start_us = self.measured.start_us
        return [at_us - start_us for at_us in records.bends(self.measured, start_us + from_us, start_us + to_us)]

    def known(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """As `metric`; None also of times, pods and topics that the run has not had."""
        kind = metric_kinds().get(name)
        if kind is not None and not self.measured.reaches(self.filters(tuple(filters)), kind):
            return None
        return self.metric(name, filters)

    def filters(self, parts: tuple[str, ...]) -> Filters:
        """The filters of these texts. Raises `UsageError`."""
        parsed = self._parsed.get(parts)
        if parsed is None:
            try:
                parsed = parse_filters(parts, topics=self._names.topics, member_sets=self._names.member_sets)
            except ValueError as error:
                raise UsageError(str(error)) from None
            self._parsed[parts] = parsed
        return parsed

    def summary(self) -> dict[str, float | str | None]:
        """Return every metric of a result, without filters."""
        kinds = metric_kinds().items()
        return {name: self.metric(name) for name, kind in kinds if kind.is_summary and self.measured.knows(kind)}


@frozen_in_order
class LaneSegment:
    """Part of a partition's lane: who consumed it, or (``owner`` None) why nobody did. Times are from the end of the warm-up."""

    from_us: int
    to_us: int
    owner: str | None
    cause: str | None


class RunResult:
    """A run that is over, measured. ``stopped`` is "" or the limit that ended it; ``digest`` is that of its event log."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.seed = recording.seed
        self.metrics = MetricView(recording)
        self.digest, self.events, self.tasks, self.stopped = recording.ending

    @property
    def end_us(self) -> int:
        """Return when it ended, after the end of the warm-up."""
        return self.recording.end_us - self.recording.start_us

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """Return a metric's value, as `MetricView.known` does."""
        return self.metrics.known(name, filters)

    def summary(self) -> dict[str, float | str | None]:
        """Return every metric of a result."""
        return self.metrics.summary()

    def final_assignment(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Return pod -> topic -> partitions that it consumes at the end."""
        return self.metrics.measured.assignment()

    def longest_gaps(self) -> Mapping[str, float]:
        """Return partition ("topic-0") -> its longest gap in seconds, the longest first; none of those without a gap."""
        labels = self.recording.partitions.labels
        found = sorted(availability.longest_gaps(self.metrics.measured).items(), key=lambda entry: (-entry[1], entry[0]))
        return {labels[number]: length_us / 1_000_000 for number, length_us in found if length_us}

    def lanes(self, *, with_warmup: bool = False) -> Mapping[str, list[LaneSegment]]:
        """Return partition ("topic-0") -> its lane, in order of topics and numbers."""
        measured = self.metrics.measured
        offset = measured.start_us
        window = (0 if with_warmup else offset, measured.end_us)
        table, pods = self.recording.partitions, self.recording.history.pods
        return {
            str(table.names[number]): [
                LaneSegment(first - offset, last - offset, pods[value].name, None)
                if value >= 0
                else LaneSegment(first - offset, last - offset, None, cause_of(value).label)
                for first, last, value in measured.segments(number, window)
            ]
            for number in sorted(range(len(table)), key=lambda number: table.names[number])
            if table.counted[number]
        }

    def events_marks(self) -> list[tuple[int, str, str, str]]:
        """Return (time, event, what, target) of the scenario's events, for the reports."""
        offset = self.recording.start_us
        return [(mark.at_us - offset, mark.event, mark.what, mark.target) for mark in self.recording.history.events]

    def records(self) -> list[tuple[int, AppendRecord]]:
        """Return (time from the run's begin, record) of the coordinator's log, in order; empty unless it was kept."""
        return self.recording.log()


_How = ParamSpec("_How")


def _measured(record: Callable[_How, Recording]) -> Callable[_How, RunResult]:
    @wraps(record)
    def measure(*args: _How.args, **how: _How.kwargs) -> RunResult:
        how.setdefault("read", MetricView)
        return RunResult(record(*args, **how))

    return measure


run = _measured(engine.run)
"""Run one variant with one seed, as `kgctl.simulate.engine.run.run` does, and measure it."""
