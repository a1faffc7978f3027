"""What an autoscaler made of its set of pods, for the picture of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kgctl.model.groups import TopicPartition
from kgctl.simulate.metrics.result import LaneSegment, RunResult
from kgctl.simulate.recording.history import Scaling
from kgctl.simulate.recording.traffic import UNIT_PR
from kgctl.simulate.report.metric_labels import duration, show
from kgctl.simulate.report.outcome import LagSeries, Lane, Mark, Picture, Replicas, Segment


def replicas_of(result: RunResult) -> tuple[Replicas, ...]:
    """The set that is autoscaled, if there is one, from the end of the warm-up on."""
    spec = result.recording.scenario.autoscale
    if spec is None:
        return ()
    measured = result.metrics.measured
    window = (measured.start_us, measured.end_us)
    pods = [pod for pod in result.recording.history.pods if pod.member_set == spec.members]
    wanted = _counts((each for pod in pods for each in measured.clip(pod.wanted.until(window[1]), window)), window)
    running = _counts((each for pod in pods for each in measured.clip(pod.running.until(window[1]), window)), window)
    return (Replicas(spec.members, wanted, running),)


def _counts(intervals: Iterable[tuple[int, int]], window: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """(time, how many from then on); times from the end of the warm-up."""
    changes = Counter({window[0]: 0})
    for first, last in intervals:
        changes[first] += 1
        changes[last] -= 1
    found: list[tuple[int, int]] = []
    number = 0
    for at_us in sorted(changes):
        number += changes[at_us]
        if at_us < window[1] and (not found or found[-1][1] != number):
            found.append((at_us - window[0], number))
    return tuple(found)


def scaling_marks(result: RunResult) -> list[Mark]:
    """Each change: ``worker 8 to 16 (lag 14,200)``."""
    offset = result.metrics.measured.start_us
    return [
        Mark(each.at_us - offset, f"{each.members} {each.before} to {each.replicas} ({each.metric} {_value(each)})")
        for each in result.recording.history.scalings
    ]


def _value(each: Scaling) -> str:
    if each.metric == "lag-age":
        return duration(each.value)
    return f"{each.value / 10_000:.0f}%" if each.metric == "cpu" else show("lag", each.value)


_MOST_POINTS = 4_000


def picture_of(result: RunResult) -> Picture:
    """From the end of the warm-up to the end of the run."""
    doubles = _doubles(result)
    lanes = tuple(
        Lane(topic, number, tuple(_with_doubles([*map(_segment, segments)], doubles.get(TopicPartition(topic, number), ()))))
        for (topic, number), segments in ((_split(name), segments) for name, segments in result.lanes().items())
    )
    return Picture(result.seed, 0, result.end_us, lanes, tuple(_marks(result)), tuple(_lag(result)), replicas_of(result))


def _split(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def _segment(segment: LaneSegment) -> Segment:
    owners = () if segment.owner is None else (segment.owner,)
    return Segment(segment.from_us, segment.to_us, owners, segment.cause or "")


def _doubles(result: RunResult) -> dict[TopicPartition, list[tuple[int, int, str]]]:
    """Partition -> (from, to, older owner) of the times in which it had two consumers."""
    recording, offset = result.recording, result.recording.start_us
    end_us = result.metrics.measured.end_us
    still = [(number, since_us, end_us, pod) for number, pod, since_us in recording.owners.older_consumers()]
    found: dict[TopicPartition, list[tuple[int, int, str]]] = {}
    for number, from_us, to_us, pod in (*recording.owners.double_owned, *still):
        entry = (max(from_us - offset, 0), to_us - offset, recording.history.pods[pod].name)
        if entry[0] < entry[1]:
            found.setdefault(recording.partitions.names[number], []).append(entry)
    return found


def _with_doubles(segments: list[Segment], doubles: Iterable[tuple[int, int, str]]) -> list[Segment]:
    """The lane with the older consumers put beside the newer ones."""
    for from_us, to_us, older in doubles:
        segments = [piece for segment in segments for piece in _beside(segment, from_us, to_us, older)]
    return segments


def _beside(segment: Segment, from_us: int, to_us: int, older: str) -> list[Segment]:
    first, last = max(segment.from_us, from_us), min(segment.to_us, to_us)
    if first >= last or not segment.owners or older in segment.owners:
        return [segment]
    pieces = [
        Segment(segment.from_us, first, segment.owners, segment.cause),
        Segment(first, last, (older, *segment.owners), segment.cause),
        Segment(last, segment.to_us, segment.owners, segment.cause),
    ]
    return [piece for piece in pieces if piece.from_us < piece.to_us]


def _marks(result: RunResult) -> list[Mark]:
    """The scenario's events, and each process that was started or went away after the warm-up, in order of time."""
    events = [
        Mark(at_us, f"{event} {target}" if what == "begins" else f"{event} {target} {what}")
        for at_us, event, what, target in result.events_marks()
    ]
    begun = {(mark.at_us, mark.text) for mark in events}
    events = [
        mark for mark in events if (mark.at_us, mark.text.removesuffix(" ends")) not in begun or not mark.text.endswith(" ends")
    ]
    marks = [*events, *scaling_marks(result), *_process_marks(result)]
    return sorted((mark for mark in marks if 0 <= mark.at_us <= result.end_us), key=lambda mark: mark.at_us)


def _process_marks(result: RunResult) -> list[Mark]:
    offset, end_us = result.metrics.measured.start_us, result.metrics.measured.end_us
    marks = []
    for pod in result.recording.history.pods:
        for first, last in pod.running.until(end_us):
            marks += [Mark(first - offset, f"{pod.name} starts")] * (first > offset)
            marks += [Mark(last - offset, f"{pod.name} goes")] * (last < end_us)
    return marks


def _lag(result: RunResult) -> list[LagSeries]:
    """What was written and not yet read, by topic: the lag without the teeth that periodic commits give it."""
    measured = result.metrics.measured
    found = []
    for topic, series in result.recording.ledger.backlog.items():
        points = _thinned(series.points(measured.start_us, measured.end_us))
        if any(amount for _, amount in points):
            found.append(
                LagSeries(topic, tuple((at_us - measured.start_us, max(amount, 0) / UNIT_PR) for at_us, amount in points))
            )
    return found


def _thinned(points: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Of very many points, the lowest and the highest of each small stretch: the line looks the same."""
    if len(points) <= _MOST_POINTS:
        return points
    size = -(-len(points) * 2 // _MOST_POINTS)
    kept: list[tuple[int, int]] = [points[0]]
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return [*kept, points[-1]]
