"""The rules for many windows at once against the same rules for one, written as Burrow has them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.tables.lag import STATUSES, Entries, Moments, statuses


class Offset(NamedTuple):
    """Burrow's ``ConsumerOffset``."""

    time_ms: int
    offset: int
    lag: int | None


def burrow(offsets: list[Offset], now_ms: int, current_lag: int, *, log_was_reached: bool) -> str:
    """``calculatePartitionStatus`` of Burrow's caching evaluator, in its order, with an allowed lag of 0.

    Two differences: a lone commit says nothing, and four lags do not show that it grows.
    """
    if current_lag <= 0 or len(offsets) < 2:
        return "OK"
    first, last = offsets[0], offsets[-1]
    if now_ms - last.time_ms > last.time_ms - first.time_ms and not log_was_reached:
        return "STOP"
    for index in range(1, len(offsets)):
        before = offsets[index - 1].offset
        if offsets[index].offset < before and all(later.offset < before for later in offsets[index:]):
            return "REWIND"
    if any(each.lag is not None and each.lag <= 0 for each in offsets):
        return "OK"
    if all(each.offset == first.offset for each in offsets):
        return "STALL"
    lags = [each.lag for each in offsets if each.lag is not None]
    if len(lags) >= 5 and lags == sorted(lags):
        return "WARN"
    return "OK"


runs = st.lists(
    st.lists(
        st.builds(Offset, st.integers(0, 20), st.integers(0, 4), st.none() | st.integers(-1, 4)), min_size=1, max_size=25
    ).map(
        lambda run: [each._replace(time_ms=time_ms) for each, time_ms in zip(run, sorted(e.time_ms for e in run), strict=True)]
    ),
    min_size=1,
    max_size=4,
)


@given(runs, st.data())
def test_every_window_is_judged_as_alone(found: list[list[Offset]], data: st.DataObject) -> None:
    flat = [(number, each) for number, run in enumerate(found) for each in run]
    entries = Entries(
        np.array([number for number, _ in flat]),
        np.array([each.time_ms for _, each in flat]),
        np.array([each.offset for _, each in flat]),
        np.array([each.lag or 0 for _, each in flat]),
        np.array([each.lag is not None for _, each in flat]),
    )
    asked = data.draw(
        st.lists(st.tuples(st.integers(0, len(flat) - 1), st.integers(0, 60), st.integers(-1, 3), st.booleans()), max_size=8)
    )
    moments = Moments(
        np.array([entry for entry, *_ in asked], np.int64),
        np.array([now_ms for _, now_ms, *_ in asked], np.int64),
        np.array([lag for *_, lag, _ in asked], np.int64),
        np.array([reached for *_, reached in asked], np.bool_),
        np.zeros(len(asked), np.int64),
    )
    expected = []
    for entry, now_ms, lag, reached in asked:
        window = [each for number, each in flat[: entry + 1] if number == flat[entry][0]][-10:]
        expected.append(burrow(window, now_ms, lag, log_was_reached=reached))
    assert [STATUSES[each] for each in statuses(entries, moments)] == expected
