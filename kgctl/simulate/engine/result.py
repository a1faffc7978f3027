"""What a run gives back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter

from kgctl.coordinator.effects import AppendRecord
from kgctl.simulate.engine.simulation import World
from kgctl.simulate.recording.owners import cause_of


@dataclass(frozen=True, slots=True)
class LaneSegment:
    """Part of a partition's lane: who consumed it, or (``owner`` None) why nobody did. Times are from the end of the warm-up."""

    from_us: int
    to_us: int
    owner: str | None
    cause: str | None


class RunResult:
    """A run that is over. ``stopped`` is "" or the limit that ended it. ``digest``: see `EventLog`."""

    def __init__(self, world: World, seed: int, stopped: str) -> None:
        self.world = world
        self.seed = seed
        self.stopped = stopped
        self.metrics = world.metrics
        self.digest = world.event_log.digest()
        self.events = world.event_log.count
        self.tasks = world.loop.executed

    @property
    def end_us(self) -> int:
        """When it ended, after the end of the warm-up."""
        return self.metrics.measured.end_us - self.metrics.measured.start_us

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """See `MetricView.metric`."""
        return self.metrics.metric(name, filters)

    def summary(self) -> dict[str, float | str | None]:
        """Every metric of a result."""
        return self.metrics.summary()

    def final_assignment(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Pod -> topic -> partitions that it consumes at the end."""
        return self.metrics.measured.assignment()

    def lanes(self, *, with_warmup: bool = False) -> Mapping[str, list[LaneSegment]]:
        """Partition ("topic-0") -> its lane, in order of topics and numbers."""
        measured = self.metrics.measured
        offset = measured.start_us
        window = (0 if with_warmup else offset, measured.end_us)
        table, pods = self.world.partitions, self.world.history.pods
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
        """(time, event, what, target) of the scenario's events, for the reports."""
        offset = self.metrics.measured.start_us
        return [(mark.at_us - offset, mark.name, mark.what, mark.target) for mark in self.world.history.events]

    def records(self) -> list[tuple[int, AppendRecord]]:
        """(time from the run's begin, record) of the coordinator's log, in order; empty unless it was kept."""
        return sorted(self.world.records or (), key=itemgetter(0))
