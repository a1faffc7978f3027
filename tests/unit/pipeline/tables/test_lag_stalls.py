"""Burrow's rules, as of each moment of the past."""

from __future__ import annotations

from typing import Any

from kgctl.pipeline.tables.lag import STATUSES
from kgctl.pipeline.tables.lag import stalls as stretches
from kgctl.pipeline.tables.series import NONE
from tests.support.pipeline.history_of import columns, commits, ends, inputs_of, raw, table

S = 1000


def stalls(records: Any, samples: Any, window_ms: int = 10 * S) -> list[tuple[Any, ...]]:
    found = stretches(inputs_of(raw(records), samples, window_ms))
    ends_ms = [None if to_ms == NONE else to_ms for to_ms in found.to_ms.tolist()]
    return list(zip(found.from_ms.tolist(), ends_ms, (STATUSES[each] for each in found.status), strict=True))


def every(step_s: int, count: int, value: Any, first_s: int = 0) -> tuple[tuple[int, int], ...]:
    return tuple(((first_s + number * step_s) * S, value(number)) for number in range(count))


def growing(count: int, per_step: int = 100, base: int = 1000) -> list[Any]:
    """A log that grows, sampled every ten seconds."""
    return ends(*every(10, count, lambda number: base + number * per_step))


def test_who_keeps_up_is_fine() -> None:
    assert stalls(commits(*every(10, 12, lambda number: 1000 + number * 100)), growing(13)) == []


def test_who_is_behind_and_comes_closer_is_fine() -> None:
    assert stalls(commits(*every(10, 12, lambda number: number * 150)), growing(12)) == []


def test_the_lag_only_grows() -> None:
    """WARN: Burrow's rule 3 of its wiki: the consumer is moving, and too slow."""
    assert stalls(commits(*every(10, 12, lambda number: number * 50)), growing(12)) == [(40 * S, None, "WARN")]


def test_a_lag_that_stays_the_same_does_not_shrink() -> None:
    assert stalls(commits(*every(10, 12, lambda number: number * 100)), growing(12)) == [(40 * S, None, "WARN")]


def test_commits_that_do_not_move() -> None:
    """STALL: rule 2: the same offset again and again, with records unread."""
    assert stalls(commits(*every(10, 12, lambda _: 500)), growing(12)) == [(10 * S, None, "STALL")]


def test_commits_that_do_not_move_with_nothing_unread() -> None:
    assert stalls(commits(*every(10, 12, lambda _: 1000)), ends(*every(10, 12, lambda _: 1000))) == []


def test_who_was_up_to_date_within_ten_commits_is_fine() -> None:
    """Rule 1: lag was 0 at some moment of the window; ten commits later it was not."""
    offsets = (1000, *(1000 + 50 * number for number in range(1, 14)))
    assert stalls(commits(*every(10, 14, lambda number: offsets[number])), growing(14)) == [(100 * S, None, "WARN")]


def test_commits_stop() -> None:
    """STOP: rule 4: longer since the last commit (90 s) than the last ten took (90 s), and more and more unread."""
    assert stalls(commits(*every(10, 10, lambda number: 1000 + number * 100)), growing(25)) == [(190 * S, None, "STOP")]


def test_commits_stop_with_nothing_unread() -> None:
    samples = ends(*every(10, 30, lambda number: min(1000 + number * 100, 1900)))
    assert stalls(commits(*every(10, 10, lambda number: 1000 + number * 100)), samples) == []


def test_a_log_that_was_at_the_commit_until_recently() -> None:
    """Not STOP before each of the last ten samples of the log is past the commit."""
    samples = ends(*every(10, 40, lambda number: min(1000 + number * 100, 1900) if number < 25 else 2000))
    assert stalls(commits(*every(10, 10, lambda number: 1000 + number * 100)), samples) == [(340 * S, None, "STOP")]


def test_it_goes_on() -> None:
    records = commits(*every(10, 10, lambda number: 1000 + number * 100), (250 * S, 3500))
    assert stalls(records, growing(27)) == [(190 * S, 250 * S, "STOP")]


def test_rewound() -> None:
    """REWIND until the offset is back where it was, or nobody remembers."""
    offsets = [900, 1000, 1100, 200, 500, 800, 1100, 1700, 1800]
    assert stalls(commits(*every(10, 9, lambda number: offsets[number])), growing(9)) == [(30 * S, 60 * S, "REWIND")]


def test_rewound_and_ten_commits_later_forgotten() -> None:
    offsets = [1000, *(10 * number for number in range(12))]
    found = stalls(commits(*every(10, 13, lambda number: offsets[number])), growing(13))
    assert found == [(10 * S, 100 * S, "REWIND"), (100 * S, None, "WARN")]


def test_a_few_lags_do_not_show_that_it_grows() -> None:
    assert stalls(commits(*every(10, 4, lambda number: number * 50)), growing(4)) == []


def test_a_lone_commit_says_nothing() -> None:
    assert stalls(commits((0, 5)), growing(20)) == []


def test_commits_of_a_second_count_as_one() -> None:
    """Ten commits in ten milliseconds would be a stop eleven milliseconds later."""
    burst = [(number, 10 * number) for number in range(100)]
    assert stalls(commits(*burst, (10 * S, 2000)), ends(*every(10, 2, lambda number: 1000 + 1000 * number))) == []


def test_removed_offsets_end_it() -> None:
    records = commits(*every(10, 5, lambda _: 500), (45 * S, None), (60 * S, 500), (70 * S, 500))
    assert stalls(records, growing(8)) == [(10 * S, 45 * S, "STALL"), (70 * S, None, "STALL")]


def test_without_samples_nothing_is_judged() -> None:
    assert stalls(commits(*every(10, 12, lambda _: 500)), []) == []


def test_groups_are_judged_alone() -> None:
    records = commits(*every(10, 3, lambda _: 500)) + commits(*every(10, 3, lambda _: 500), group="h", partition=1)
    rows = table("status_changes", records, growing(3))
    assert columns(rows, "group", "topic", "partition", "status") == [("g", "t", 0, "STALL")]
