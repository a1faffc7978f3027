"""When a group will have caught up: by the last minutes, tried on what came after all minutes before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.answers.forecast import FEWEST, Course, Outlook, Pace, Trials, outlooks, pace_at, tried
from kgctl.pipeline.answers.history import History
from tests.support.pipeline.gold import Row, write_gold

MINUTE_MS = 60_000
OVER = 5


def course(unread: int, changes: Sequence[tuple[int, int, int]]) -> Course:
    """From so much unread on: minutes, records read and written in each of them."""
    read, written, left = [0], [0], [unread]
    for minutes, reads, writes in changes:
        for _ in range(minutes):
            taken = min(reads, left[-1] + writes)
            read.append(read[-1] + taken)
            written.append(written[-1] + writes)
            left.append(left[-1] + writes - taken)
    return Course(read, written, left)


@pytest.mark.parametrize(
    ("pace", "minutes"),
    [
        (Pace(0, 0, 0), 0),
        (Pace(40, 100, 40), 0),
        (Pace(40, 40, 40), 0),
        (Pace(41, 100, 40), 1 / 60),
        (Pace(640, 100, 40), 10),
        (Pace(640, 40, 40), None),
        (Pace(640, 0, 0), None),
        (Pace(1, 0, 0), None),
    ],
)
def test_caught_up_is_no_more_to_read_than_a_minute_writes(pace: Pace, minutes: float | None) -> None:
    assert pace.minutes == (None if minutes is None else pytest.approx(minutes))


def test_a_steady_group_is_told_right_each_time() -> None:
    steady = course(3_000, [(60, 100, 40)])
    assert pace_at(steady, 20, OVER) == Pace(1_800, 100, 40)
    found = tried(steady, OVER)
    assert (found.held, found.count) == (45, 45)


def test_who_stops_reading_has_broken_what_was_said() -> None:
    stops = course(3_000, [(20, 100, 40), (200, 0, 40)])
    assert pace_at(stops, 100, OVER) == Pace(5_000, 0, 40)
    found = tried(stops, OVER)
    assert found.held == 0
    assert found.count == 15 + 3, "said while it read, and while minutes of reading outweigh those without"


def test_what_may_yet_come_true_is_not_counted() -> None:
    assert tried(course(3_000, [(20, 100, 40)]), OVER).count == 0


def test_minutes_of_which_nothing_is_known_are_neither_gone_by_nor_tried() -> None:
    steady = course(3_000, [(60, 100, 40)])
    gap = [None if 20 <= minute < 22 else value for minute, value in enumerate(steady.unread)]
    holed = Course(steady.read, steady.written, gap)
    assert [pace_at(holed, minute, OVER) is None for minute in (19, 20, 21, 22, 26, 27)] == [False, True, True, True, True, False]
    found = tried(holed, OVER)
    assert (found.held, found.count) == (23, 23), "of those before the gap what came is not known"


def test_a_range_is_of_outcomes_that_were_known_then() -> None:
    trials = Trials()
    for minute in range(FEWEST):
        trials.add(minute, said=1, took=3, end=100)
    assert trials.range(FEWEST + 1) == (0.5, 2.0), "the last one is known a minute later"
    assert trials.range(FEWEST + 2) == (3, 3)
    assert (trials.held, trials.count) == (FEWEST, FEWEST), "a minute more than twice as long: minutes' ends are what is seen"


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=12),
    st.integers(0, 2_000),
    st.data(),
)
def test_what_comes_later_changes_no_range(changes: list[tuple[int, int, int]], unread: int, data: st.DataObject) -> None:
    whole = course(unread, changes)
    cut = data.draw(st.integers(1, len(whole.unread) - 1))
    part = Course(whole.read[:cut], whole.written[:cut], whole.unread[:cut])
    before, after = tried(part, OVER), tried(whole, OVER)
    assert before.count <= after.count
    assert before.held <= after.held
    assert before.range(cut - 1) == tried(part, OVER).range(cut - 1)


def lag(minute: int, committed: int, end: int | None, **other: object) -> Row:
    left = None if end is None else end - committed
    row = {"group": "g", "topic": "t", "partition": 0, "time_ms": minute * MINUTE_MS, "kind": "commit"}
    return {**row, "committed_offset": committed, "log_end_offset": end, "lag": left, "lag_ms": None, **other}


def asked(folder: Path, rows: Sequence[Row], minute: int, sampled: Sequence[int], resets: Sequence[Row] = ()) -> Outlook:
    commits = [
        {**row, "log_partition": 0, "log_offset": place, "effect_offset": place, "leader_epoch": -1, "metadata": ""}
        for place, row in enumerate(rows)
    ]
    names = ("group", "topic", "partition", "committed_offset", "time_ms", "log_partition", "log_offset", "effect_offset")
    write_gold(
        folder,
        {
            "lag": rows,
            "offset_commits": [
                {**{name: row[name] for name in names}, "leader_epoch": -1, "metadata": "", "transactional": False}
                | {"commit_timestamp_ms": row["time_ms"]}
                for row in commits
            ],
            "resets": resets,
        },
        sampled_ms=[each * MINUTE_MS for each in sampled],
    )
    (found,) = outlooks(History.open(folder), None, minute * MINUTE_MS, OVER * MINUTE_MS, 0)
    return found


def test_a_group_s_own_history_is_what_is_gone_by(tmp_path: Path) -> None:
    rows = [lag(minute, 100 * minute, 2_000 + 40 * minute) for minute in range(11)]
    found = asked(tmp_path / "w", rows, 10, range(11))
    assert found.pace == Pace(1_400, 100, 40)
    assert found.in_ms == round((1_400 - 40) / 60 * MINUTE_MS)
    assert (found.earliest_ms, found.latest_ms) == (round(found.in_ms / 2), found.in_ms * 2)
    assert (found.unread, found.why) == (1_400, "")


def test_a_jump_is_no_reading(tmp_path: Path) -> None:
    rows = [lag(minute, 10 * minute + (1_000 if minute > 7 else 0), 2_000) for minute in range(11)]
    jump = {"group": "g", "topic": "t", "partition": 0, "time_ms": 8 * MINUTE_MS, "offset_before": 70, "offset_after": 1_080}
    jump |= {"records": 1_010, "evidence": "group_empty", "log_partition": 0, "log_offset": 8, "leader_epoch": -1}
    found = asked(tmp_path / "w", rows, 10, range(11), [jump])
    assert found.pace == Pace(900, 8, 0)


def test_what_was_not_measured_is_not_forecast(tmp_path: Path) -> None:
    rows = [lag(minute, 100 * minute, 2_000 + 40 * minute) for minute in range(11)]
    found = asked(tmp_path / "w", rows, 10, range(5))
    assert (found.pace, found.in_ms, found.why) == (None, None, "not measured in each of the last 5 min")
    found = asked(tmp_path / "x", rows, 60, range(11))
    assert (found.unread, found.in_ms) == (None, None)
    assert found.why.startswith("partition 0: last measured 50 min")
