"""The same records in another order, twice, or with other groups beside them give the same tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.pipeline.tables import points
from tests.support.pipeline.history_of import Sample, commit, inputs_of, members, raw, rows_of

TABLES = ("offset_commits", "lag", "resets", "commit_rate", "status_changes", "coverage")
FEWER = settings(max_examples=max(settings().max_examples // 3, 10))
"""An example builds all tables twice or thrice."""
groups = st.sampled_from("gh")
records = st.one_of(
    st.builds(commit, st.none() | st.integers(0, 400), st.sampled_from("tu"), st.integers(0, 1), groups),
    st.builds(commit, st.integers(0, 400), st.just("t"), st.just(0), groups),
    st.builds(members, st.integers(0, 2), st.integers(0, 5), groups),
)
timed = st.lists(st.tuples(st.integers(-2_000, 30_000), records), max_size=25)
histories = timed.map(
    lambda found: [(max(0, sum(step for step, _ in found[: at + 1])), each) for at, (_, each) in enumerate(found)]
)
samples = st.lists(
    st.tuples(
        st.sampled_from("tu"), st.integers(0, 1), st.integers(0, 300_000), st.none() | st.integers(0, 50), st.integers(0, 500)
    ),
    max_size=15,
)


def all_rows(collected: pa.Table, found: list[Sample]) -> dict[str, list[dict[str, Any]]]:
    inputs = inputs_of(collected, found, window_ms=20_000)
    return {name: rows_of(name, inputs) for name in TABLES}


@FEWER
@given(histories, samples, st.randoms(use_true_random=False))
def test_order_and_duplicates_do_not_matter(found: list[Any], ends: list[Sample], random: Any) -> None:
    collected = raw(found)
    order = [*range(len(found)), *range(0, len(found), 3)]
    random.shuffle(order)
    mixed = list(ends)
    random.shuffle(mixed)
    again = collected.take(pa.array(order, pa.int64()))
    first, second = inputs_of(collected, ends), inputs_of(again, mixed)
    for name in TABLES:
        assert first.table(name).equals(second.table(name)), name


@FEWER
@given(histories, samples)
def test_groups_do_not_touch_each_other(found: list[tuple[int, CoordinatorRecord]], ends: list[Sample]) -> None:
    collected = raw(found)
    together = all_rows(collected, ends)
    is_g = np.array([record.key.group == "g" for _, record in found], np.bool_)
    apart = [all_rows(collected.filter(pa.array(mask)), ends) for mask in (is_g, ~is_g)]
    del together["coverage"]
    assert together == {name: apart[0][name] + apart[1][name] for name in together}


@FEWER
@given(histories, samples, st.integers(1, 4))
def test_the_size_of_a_block_does_not_matter(found: list[Any], ends: list[Sample], rows: int) -> None:
    expected = rows_of("lag", inputs_of(raw(found), ends))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points, "_BLOCK_ROWS", rows)
        assert rows_of("lag", inputs_of(raw(found), ends)) == expected


@FEWER
@given(histories, samples)
def test_what_a_row_says_does_not_depend_on_what_came_later(found: list[Any], ends: list[Sample]) -> None:
    """Resets but those that a later sample proves, and rates of windows that are over, stay as they are."""
    before = rows_of("resets", inputs_of(raw(found[: len(found) // 2]), ends))
    after = rows_of("resets", inputs_of(raw(found), ends))
    assert [row for row in after if row["log_offset"] < len(found) // 2] == before
