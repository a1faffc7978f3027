"""Fewer points that still show what stands out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.report.figures import extremes

VALUES = st.lists(st.one_of(st.none(), st.integers(0, 1000)), min_size=1, max_size=200)


def thinned(values: list[int | None], most: int) -> list[int]:
    numbers = np.array([0 if value is None else value for value in values], np.int64)
    return [int(place) for place in extremes(numbers, np.array([value is not None for value in values]), most)]


@given(VALUES, st.integers(8, 60))
def test_ends_highest_and_gaps_are_kept(values: list[int | None], most: int) -> None:
    kept = thinned(values, most)
    shown = [values[i] for i in kept]

    assert kept == sorted(set(kept))
    assert (kept[0], kept[-1]) == (0, len(values) - 1)
    assert len(kept) <= most
    assert (None in shown) == (None in values)
    known = [value for value in values if value is not None]
    assert max((value for value in shown if value is not None), default=None) == max(known, default=None)


def test_few_points_are_all_drawn() -> None:
    assert thinned([3, None, 1], 8) == [0, 1, 2]
