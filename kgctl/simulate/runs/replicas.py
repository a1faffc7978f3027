"""What an autoscaler made of its set of pods, for the picture of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kgctl.simulate.engine.recorder.history import Scaling
from kgctl.simulate.engine.result import RunResult
from kgctl.simulate.report.looks import duration, show
from kgctl.simulate.report.view import Mark, Replicas


def replicas_of(result: RunResult) -> tuple[Replicas, ...]:
    """The set that is autoscaled, if there is one, from the end of the warm-up on."""
    spec = result.world.scenario.autoscale
    if spec is None:
        return ()
    measured = result.metrics.measured
    window = (measured.start_us, measured.end_us)
    pods = [pod for pod in result.world.history.pods if pod.member_set == spec.members]
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
        for each in result.world.history.scalings
    ]


def _value(each: Scaling) -> str:
    if each.metric == "lag-age":
        return duration(each.value)
    return f"{each.value / 10_000:.0f}%" if each.metric == "cpu" else show("lag", each.value)
