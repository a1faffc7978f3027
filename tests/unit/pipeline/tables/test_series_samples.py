"""Questions to the samples against kafka-lag-exporter's table of points, one question at a time."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor, isnan

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.tables.samples import UNKNOWN, samples
from tests.support.pipeline.history_of import commits, ends, inputs_of, raw

Point = tuple[int, int]


def end_at(points: list[Point], time_ms: int) -> int:
    """Even growth between two points; unknown outside of them."""
    for (left_ms, left), (right_ms, right) in pairwise(points):
        if left_ms <= time_ms < right_ms and right >= left:
            return floor(left + Fraction((right - left) * (time_ms - left_ms), right_ms - left_ms))
    return next((end for at_ms, end in points if at_ms == time_ms), UNKNOWN)


def reached_at(points: list[Point], time_ms: int, offset: int) -> Fraction | None:
    """``LookupTable.lookup``: between the last two points, up to the one behind the moment, that hold the offset between them,
    or along the first one and that one."""
    for (left_ms, left), (right_ms, right) in reversed(list(pairwise(points))):
        if left_ms <= time_ms and left <= offset < right:
            return left_ms + Fraction((offset - left) * (right_ms - left_ms), right - left)
    (first_ms, first), (last_ms, last) = points[0], next((point for point in points if point[0] > time_ms), points[-1])
    if offset < first < last:
        return first_ms - Fraction((first - offset) * (last_ms - first_ms), last - first)
    return None


@st.composite
def logs(draw: st.DrawFn) -> list[Point]:
    times = sorted(draw(st.sets(st.integers(0, 50), min_size=1, max_size=6)))
    lengths = sorted(draw(st.lists(st.integers(0, 20), min_size=len(times), max_size=len(times))))
    return list(zip(times, lengths, strict=True))


@given(logs(), st.integers(-5, 60), st.integers(0, 25))
def test_as_one_by_one(points: list[Point], time_ms: int, offset: int) -> None:
    found = samples(inputs_of(raw(commits((0, 0))), ends(*points) + ends((0, 7), (60, 70), partition=1)))
    sample = found.at(np.array([0]), np.array([time_ms]))
    assert sample[0] == max((index for index, (at_ms, _) in enumerate(points) if at_ms <= time_ms), default=-1)
    assert found.end_at(sample, np.array([time_ms]))[0] == end_at(points, time_ms)
    if sample[0] >= 0:
        reached = found.reached_at(sample, np.array([offset]), np.array([time_ms]))[0]
        expected = reached_at(points, time_ms, offset)
        assert isnan(reached) if expected is None else abs(reached - float(expected)) < 1e-6
