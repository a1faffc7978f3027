"""Steps over sorted rows, against the obvious loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.tables.series import begins, last_at_or_before, running_max, window_counts

numbers = st.integers(-3, 3) | st.sampled_from([-(2**62), 2**62, 1_780_000_000_000])
rows = st.lists(st.tuples(st.integers(0, 3) | st.sampled_from([2**40]), numbers), max_size=12)


def split(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([a for a, _ in found], np.int64), np.array([b for _, b in found], np.int64)


@given(rows)
def test_running_max(found: list[tuple[int, int]]) -> None:
    run, values = split(sorted(found, key=lambda row: row[0]))
    expected = [max(values[i] for i in range(at + 1) if run[i] == run[at]) for at in range(len(run))]
    assert running_max(values, run).tolist() == expected


@given(rows, rows)
def test_last_at_or_before(table: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    keys, values = split(sorted(table))
    key, value = split(asked)
    expected = [
        max((i for i in range(len(keys)) if keys[i] == k and values[i] <= v), default=-1) for k, v in zip(key, value, strict=True)
    ]
    assert last_at_or_before(keys, values, key, value).tolist() == expected


@given(rows)
def test_begins(found: list[tuple[int, int]]) -> None:
    expected = [at == 0 or found[at] != found[at - 1] for at in range(len(found))]
    assert begins(*split(found)).tolist() == expected


@given(st.lists(st.booleans(), min_size=1), st.data())
def test_window_counts(flags: list[bool], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(flags) - 1))
    last = data.draw(st.integers(max(first - 1, 0), len(flags) - 1))
    counted = window_counts(np.array(flags), np.array([first]), np.array([last]))
    assert counted.tolist() == [sum(flags[first : last + 1])]
