"""The number of pods over time in one line of a terminal: a bar for each slice of time."""

from __future__ import annotations

from itertools import pairwise

from kgctl.simulate.report.view import Picture, Replicas

BARS = "▁▂▃▄▅▆▇█"


def pod_row(replicas: Replicas, picture: Picture, columns: int) -> str:
    """As high as the most pods that were wanted in the slice, the highest of all in full."""
    most = max((number for _, number in replicas.wanted), default=0)
    length = picture.to_us - picture.from_us
    edges = [picture.from_us + length * column // columns for column in range(columns + 1)]
    return "".join(_bar(_most(replicas, first, last), most) for first, last in pairwise(edges))


def pod_legend(replicas: Replicas) -> str:
    """What the bars stand for."""
    numbers = [number for _, number in replicas.wanted] or [0]
    return f"pods of {replicas.members}: {min(numbers)} to {max(numbers)}, {BARS[-1]} = {max(numbers)}"


def _most(replicas: Replicas, first: int, last: int) -> int:
    """The highest number within a slice, the one that it begins with included."""
    before = [number for at_us, number in replicas.wanted if at_us <= first][-1:]
    within = [number for at_us, number in replicas.wanted if first < at_us < last]
    return max([*before, *within], default=0)


def _bar(number: int, most: int) -> str:
    if not number:
        return " "
    return BARS[max(-(-number * len(BARS) // most) - 1, 0)]
