"""Runs of collected offsets, against a set of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.decode.schemas import merge_runs, runs_of

records = st.dictionaries(st.integers(0, 30), st.integers(0, 5))


def runs(log_partition: int, found: dict[int, int]) -> pa.Table:
    return runs_of(log_partition, np.array(list(found), np.int64), np.array(list(found.values()), np.int64))


def expected(log_partition: int, found: dict[int, int]) -> list[dict[str, Any]]:
    firsts = [offset for offset in sorted(found) if offset - 1 not in found]
    lasts = [offset for offset in sorted(found) if offset + 1 not in found]
    return [
        {"log_partition": log_partition, "first_offset": a, "last_offset": b, "first_ms": found[a], "last_ms": found[b]}
        for a, b in zip(firsts, lasts, strict=True)
    ]


@given(records, st.randoms(use_true_random=False))
def test_runs_of_records_in_any_order(found: dict[int, int], random: Any) -> None:
    order = list(found)
    random.shuffle(order)
    assert runs(3, {offset: found[offset] for offset in order}).to_pylist() == expected(3, found)


@given(records, records, st.lists(st.sets(st.integers(0, 30)), max_size=4), st.randoms(use_true_random=False))
def test_runs_of_any_parts_of_a_log_together(
    log: dict[int, int], other: dict[int, int], parts: list[set[int]], random: Any
) -> None:
    tables = [runs(3, {offset: log[offset] for offset in part if offset in log}) for part in parts]
    tables += [runs(3, log), runs(1, other)]
    random.shuffle(tables)
    merged = merge_runs(tables)
    assert merged.to_pylist() == expected(1, other) + expected(3, log)
    assert merge_runs([merged]).equals(merged)
