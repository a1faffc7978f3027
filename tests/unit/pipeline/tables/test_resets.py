"""Jumps that reading does not explain, and what speaks for each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from tests.support.pipeline.history_of import columns, commit, commits, ends, members, table

S = 1000
A, B = UUID(int=1), UUID(int=2)
STEADY = tuple((number * 5 * S, number * 100) for number in range(12))
"""Twenty records a second, up to 1,100 at 55 s."""


def resets(records: Any, samples: Any = ()) -> list[tuple[Any, ...]]:
    return columns(table("resets", records, samples), "time_ms", "offset_before", "offset_after", "kind", "evidence")


def test_a_whole_row() -> None:
    assert table("resets", commits((0, 100), (5 * S, 40))) == [
        {
            "group": "g",
            "topic": "t",
            "partition": 0,
            "time_ms": 5 * S,
            "offset_before": 100,
            "offset_after": 40,
            "kind": "backward",
            "records": -60,
            "log_offset": 1,
            "evidence": "went_back",
        }
    ]


def test_reading_is_none() -> None:
    samples = ends(*((time_ms, offset + 50) for time_ms, offset in STEADY))
    assert resets([(0, members(1, 1)), *commits(*STEADY)], samples) == []


def test_the_same_offset_again_is_none() -> None:
    assert resets(commits((0, 5), (1, 5))) == []


def test_the_group_was_empty() -> None:
    records = [(0, members(1, 1)), *commits((1, 10)), (2, members(0, 2)), *commits((3, 50)), *commits((4, 20))]
    assert resets(records) == [(3, 10, 50, "forward", "group_empty"), (4, 50, 20, "backward", "group_empty")]


def test_every_step_of_tools_in_an_empty_group_is_one() -> None:
    """To the earliest, to the latest, back and forth by undo: nobody was there to read."""
    offsets = (0, 140, 100, 140, 141)
    tools = [(3 + number, commit(offset)) for number, offset in enumerate(offsets)]
    records = [(0, members(1, 1)), *commits((1, 100)), (2, members(0, 2)), *tools, (9, members(1, 3)), *commits((10, 150))]
    assert [row[1:3] for row in resets(records)] == list(pairwise((100, *offsets)))
    (rate,) = table("commit_rate", records)
    assert rate["records_consumed"] == 9, "what the member read when it was back"


def test_a_consumer_that_assigns_its_partitions_itself_reads_when_it_has_gone_on_long_enough() -> None:
    """It commits to a group that has no member; a step back is none of reading."""
    emptied = [(0, members(1, 1)), *commits((1, 0)), (2, members(0, 2))]
    own = [(3 + number, commit(number + 1)) for number in range(30)]
    assert [row[2] for row in resets([*emptied, *own])] == list(range(1, 21))
    again = [*own, (40, commit(3)), *((41 + number, commit(4 + number)) for number in range(30))]
    assert [row[2] for row in resets([*emptied, *again])] == [*range(1, 21), 3, *range(4, 24)]
    other_stretch = [*own, (40, members(1, 3)), (41, members(0, 4)), (42, commit(50))]
    assert [row[2] for row in resets([*emptied, *other_stretch])] == [*range(1, 21), 50]


def test_a_group_that_was_empty_when_the_history_began() -> None:
    assert resets([(0, members(0, 7)), *commits((1, 10), (2, 20))]) == [(2, 10, 20, "forward", "group_empty")]
    assert resets([*commits((1, 10)), (2, members(0, 7)), *commits((3, 20))]) == [(3, 10, 20, "forward", "group_empty")]


def test_a_group_that_never_had_a_member_is_not_empty() -> None:
    assert resets([(0, members(0, 0)), *commits((1, 10), (2, 20))]) == []
    assert resets(commits((1, 10), (2, 20))) == []


def test_a_group_with_members_again_reads() -> None:
    records = [(0, members(1, 1)), *commits((1, 10)), (2, members(0, 2)), (3, members(2, 3)), *commits((4, 20))]
    assert resets(records) == []


def test_another_groups_members_do_not_count() -> None:
    assert resets([*commits((1, 10)), (2, members(0, 7, group="f")), (2, members(0, 7, group="h")), *commits((3, 20))]) == []


@pytest.mark.parametrize(
    ("samples", "evidence"),
    [
        (ends((0, 100), (10 * S, 199)), "past_log_end"),
        (ends((0, 100), (10 * S, 200)), None),
        (ends((5 * S, 199), (10 * S, 300)), "past_log_end"),
        (ends((7 * S, 199)), "past_log_end"),
        (ends((0, 100)), None),  # nothing is known about the end then
        (ends((10 * S, 199), partition=1), None),
        (ends((10 * S, 199), topic="s") + ends((10 * S, 200)), None),
    ],
)
def test_past_the_end_of_the_log(samples: Any, evidence: str | None) -> None:
    found = resets(commits((1 * S, 100), (5 * S, 200)), samples)
    assert found == ([] if evidence is None else [(5 * S, 100, 200, "forward", evidence)])


def test_the_log_was_cut_off() -> None:
    samples = ends((0, 500), (10 * S, 30), (20 * S, 40))
    assert resets(commits((1 * S, 400), (11 * S, 30)), samples) == [(11 * S, 400, 30, "backward", "log_truncated")]


def test_the_start_of_the_log_went_by() -> None:
    samples = ends((0, 500), start=0) + ends((100 * S, 900), (200 * S, 950), start=600)
    assert resets(commits((1 * S, 100), (150 * S, 610)), samples) == [(150 * S, 100, 610, "forward", "log_start_moved")]
    assert resets(commits((1 * S, 600), (150 * S, 610)), samples) == []
    assert resets(commits((1 * S, 100), (50 * S, 610)), samples) == [], "by the last sample before, 100 was still there"


def test_the_topic_was_created_anew() -> None:
    records = [(0, commit(10, topic_id=A)), (1, commit(20, topic_id=B)), (2, commit(5, topic_id=A)), (3, commit(9))]
    assert resets(records) == [(1, 10, 20, "forward", "topic_recreated"), (2, 20, 5, "backward", "topic_recreated")]


def test_faster_than_anybody_reads() -> None:
    jump = 60 * S, 1_100 + 5 * 1_000_000 + 5
    assert resets(commits(*STEADY, jump)) == [(60 * S, 1_100, jump[1], "forward", "faster_than_consumption")]
    assert resets(commits(*STEADY, (60 * S, 1_100 + 5 * 1_000_000))) == []
    assert resets(commits(*STEADY[:10], jump)) == [], "too little is known of the group"


def test_who_was_that_fast_before_may_be_again() -> None:
    fast = tuple((number * S, number * 900_000) for number in range(12))
    assert resets(commits(*fast, (13 * S, 30_000_000))) == []


def test_catching_up_is_reading() -> None:
    assert resets(commits(*STEADY, (3_600 * S, 1_100 + 72_000), (3_601 * S, 1_100 + 500_000))) == []


def test_all_that_speaks_for_it_is_named() -> None:
    records = [(0, members(1, 1)), *commits((1 * S, 10)), (2 * S, members(0, 2)), *commits((3 * S, 999))]
    assert resets(records, ends((0, 100), (4 * S, 100))) == [(3 * S, 10, 999, "forward", "group_empty,past_log_end")]


def test_after_a_removal_nothing_is_compared() -> None:
    assert resets(commits((0, 100), (1, None), (2, 5))) == []


def test_nothing() -> None:
    assert resets([], ends((0, 1))) == []
