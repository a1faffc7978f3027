"""Which samples tell of the time before them, by which clock records count, and up to when rows are for good."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.tables.registry import BEGIN_MS
from kgctl.pipeline.tables.rounds import LONGEST, clocks, is_soon, settled_until

MINUTE_MS = 60_000
windows = st.integers(0, 30)


@given(st.sets(windows, min_size=1), windows, st.integers(0, 40))
def test_no_sample_to_come_counts_for_what_is_settled(found: set[int], window: int, later: int) -> None:
    """Rows before `settled_until` stay, whatever is sampled behind the last round, or in it."""
    rounds = np.array(sorted(found))
    settled_ms = settled_until(rounds, 30 * MINUTE_MS)
    sampled = int(rounds[-1]) + later
    after = np.unique(np.append(rounds, sampled))
    counts = is_soon(after, np.array([window * MINUTE_MS]), np.array([sampled * MINUTE_MS]))[0]

    assert not (window * MINUTE_MS < settled_ms and sampled > window and counts)


def test_a_log_that_is_left_out_is_awaited_for_two_rounds() -> None:
    rounds = np.array([0, 5, 6, 7, 20])
    at = np.array([0])
    told = {minute: bool(is_soon(rounds, at, np.array([minute * MINUTE_MS]))[0]) for minute in (0, 5, 6, 7, 20)}
    assert told == {0: True, 5: True, 6: True, 7: False, 20: False}
    assert settled_until(rounds, 20 * MINUTE_MS) == 7 * MINUTE_MS
    assert not is_soon(np.array([0, LONGEST + 1]), at, np.array([(LONGEST + 1) * MINUTE_MS]))[0], "nothing was sampled for hours"


def test_records_that_claim_to_be_old_count_as_of_a_window_before_the_newest() -> None:
    times = np.array([1_000_000, 1_300_000, 1_000_500, 1_290_000, 90_000_000, 1_300_001])
    counted, _, newest_ms = clocks(times, BEGIN_MS, BEGIN_MS)

    assert counted.tolist() == [1_000_000, 1_300_000, 1_240_000, 1_290_000, 90_000_000, 1_300_001]
    assert newest_ms == 1_300_000, "a time that the next record is far from moves no clock"


@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=12), st.integers(0, 12))
def test_clocks_go_on_wherever_they_were_cut(times: list[int], cut: int) -> None:
    whole, high, newest_ms = clocks(np.array(times), BEGIN_MS, BEGIN_MS)
    first, rest = np.array(times[:cut], np.int64), np.array(times[cut:], np.int64)
    counted, known, between_ms = clocks(first, BEGIN_MS, BEGIN_MS)
    last_ms = int(first[-1]) if len(first) else BEGIN_MS
    more, known_more, end_ms = clocks(rest, between_ms, last_ms)

    assert np.concatenate([counted, more]).tolist() == whole.tolist()
    assert np.concatenate([known, known_more]).tolist() == high.tolist()
    assert (end_ms if len(rest) else between_ms) == newest_ms
