"""Offsets at a moment of the past."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.answers.history import CollectedRun, History
from kgctl.pipeline.answers.series import CommitAt, Exactness, commits_at, offsets_at
from kgctl.pipeline.decode.schemas import OFFSET_COMMITS
from tests.support.pipeline.gold import Row, commit, run, write_gold

WHOLE = [run(0, 1000, 0, 100_000)]
Known = dict[tuple[str, str, int], Row]


def at(folder: Path, at_ms: int, groups: Sequence[str] | None = None) -> list[CommitAt]:
    return offsets_at(History.open(folder), groups, at_ms)


def shown(found: Sequence[CommitAt]) -> list[tuple[Any, ...]]:
    return [(each.topic, each.partition, each.offset, each.exactness.value) for each in found]


def test_last_commit_before_the_moment_counts(tmp_path: Path) -> None:
    rows = [
        commit("payments", "orders", 0, 10, 100, 1, metadata="a", leader_epoch=3),
        commit("payments", "orders", 0, 20, 200, 2),
        commit("payments", "orders", 1, 7, 150, 3),
    ]
    write_gold(tmp_path, {"offset_commits": rows, "coverage": WHOLE})

    assert at(tmp_path, 99) == []
    assert at(tmp_path, 100) == [CommitAt("payments", "orders", 0, 10, "a", 3, 100, Exactness.EXACT)]
    assert shown(at(tmp_path, 199)) == [("orders", 0, 10, "exact"), ("orders", 1, 7, "exact")]
    assert at(tmp_path, 200)[0] == CommitAt("payments", "orders", 0, 20, "", None, 200, Exactness.EXACT)


def test_deleted_commit_is_none_until_there_is_another(tmp_path: Path) -> None:
    rows = [commit("g", "t", 0, 10, 100, 1), commit("g", "t", 0, None, 200, 2), commit("g", "t", 0, 3, 300, 3)]
    write_gold(tmp_path, {"offset_commits": rows, "coverage": WHOLE})

    assert [shown(at(tmp_path, time_ms)) for time_ms in (150, 250, 350)] == [[("t", 0, 10, "exact")], [], [("t", 0, 3, "exact")]]


def test_place_in_the_log_decides_where_clocks_went_back(tmp_path: Path) -> None:
    rows = [commit("g", "t", 0, 10, 300, 1), commit("g", "t", 0, 20, 200, 2)]
    write_gold(tmp_path, {"offset_commits": rows, "coverage": WHOLE})

    assert [shown(at(tmp_path, time_ms)) for time_ms in (250, 300)] == [[("t", 0, 20, "exact")]] * 2


def test_transaction_counts_from_its_end_and_its_last_record_wins(tmp_path: Path) -> None:
    rows = [
        commit("g", "t", 0, 10, 500, 1, effect_offset=9, transactional=True),
        commit("g", "t", 0, 11, 500, 2, effect_offset=9, transactional=True),
        commit("g", "t", 0, 5, 400, 4),
    ]
    write_gold(tmp_path, {"offset_commits": rows, "coverage": WHOLE})

    assert [shown(at(tmp_path, time_ms)) for time_ms in (499, 500)] == [[("t", 0, 5, "exact")], [("t", 0, 11, "exact")]]


def test_hole_between_commit_and_moment_leaves_a_doubt(tmp_path: Path) -> None:
    rows = [commit("g", "t", 0, 10, 100, 1), commit("g", "t", 1, 20, 500, 8)]
    runs = [run(0, 3, 50, 200), run(7, 9, 400, 600)]
    write_gold(tmp_path, {"offset_commits": rows, "coverage": runs})

    assert shown(at(tmp_path, 199)) == [("t", 0, 10, "exact")]
    assert shown(at(tmp_path, 200)) == [("t", 0, 10, "compacted"), ("t", 1, None, "unknown")]
    assert shown(at(tmp_path, 500)) == [("t", 0, 10, "compacted"), ("t", 1, 20, "exact")]
    assert shown(at(tmp_path, 9999)) == [("t", 0, 10, "compacted"), ("t", 1, 20, "exact")]


def test_deletion_before_a_hole_leaves_a_doubt(tmp_path: Path) -> None:
    runs = [run(0, 3, 50, 200), run(7, 9, 400, 600)]
    write_gold(tmp_path, {"offset_commits": [commit("g", "t", 0, None, 100, 1)], "coverage": runs})

    assert [shown(at(tmp_path, time_ms)) for time_ms in (150, 300)] == [[], [("t", 0, None, "unknown")]]


def test_log_without_its_beginning_says_nothing_of_what_came_before(tmp_path: Path) -> None:
    write_gold(tmp_path, {"offset_commits": [commit("g", "t", 0, 10, 100, 6)], "coverage": [run(5, 9, 50, 200)]})

    assert shown(at(tmp_path, 99)) == [("t", 0, None, "unknown")]
    assert shown(at(tmp_path, 100)) == [("t", 0, 10, "exact")]


def test_rows_come_sorted_from_all_partitions_and_files(tmp_path: Path) -> None:
    first = [commit("b", "t", 10, 1, 1, 1), commit("b", "t", 9, 1, 1, 2), commit("b", "s", 0, 1, 1, 3)]
    write_gold(tmp_path, {"offset_commits": first, "coverage": WHOLE}, partition=3, files=2)
    write_gold(tmp_path, {"offset_commits": [commit("a", "t", 0, 1, 1, 1)], "coverage": WHOLE}, partition=4)

    keys = [(each.group, each.topic, each.partition) for each in at(tmp_path, 9)]

    assert keys == [("a", "t", 0), ("b", "s", 0), ("b", "t", 9), ("b", "t", 10)]
    assert {each.group for each in at(tmp_path, 9, ["b", "nosuch"])} == {"b"}


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Commits as a log may have them, in any order of the file, with holes, transactions and a clock that goes back."""
    times = draw(st.lists(st.integers(0, 30), min_size=1, max_size=25))
    rows = []
    for log_offset, time_ms in enumerate(times):
        group, topic = draw(st.sampled_from("ab")), draw(st.sampled_from("st"))
        offset = draw(st.one_of(st.none(), st.integers(0, 99)))
        late = draw(st.sampled_from([0, 0, 100 + log_offset // 4]))
        rows.append(commit(group, topic, draw(st.integers(0, 1)), offset, time_ms, log_offset, effect_offset=late or log_offset))
    return draw(st.permutations(rows))


@given(logs(), st.integers(-1, 31))
def test_answer_is_that_of_reading_the_log_record_by_record(rows: list[Row], at_ms: int) -> None:
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=OFFSET_COMMITS)
    found = commits_at(table, [CollectedRun(0, 1000, 0, 100_000)], at_ms)

    known: Known = {}
    for row in sorted(rows, key=lambda row: (row["effect_offset"], row["log_offset"])):
        if row["time_ms"] <= at_ms:
            known[row["group"], row["topic"], row["partition"]] = row
    expected = [
        CommitAt(*key, row["committed_offset"], row["metadata"], None, row["time_ms"], Exactness.EXACT)
        for key, row in sorted(known.items())
        if row["committed_offset"] is not None
    ]
    assert sorted(found, key=lambda each: (each.group, each.topic, each.partition)) == expected


@pytest.mark.parametrize("groups", [["payments"], ["payments", "other"], None])
def test_groups_that_are_not_asked_for_are_left_out(tmp_path: Path, groups: list[str] | None) -> None:
    rows = [commit(group, "t", 0, 1, 1, number) for number, group in enumerate(["other", "payments", "q"])]
    write_gold(tmp_path, {"offset_commits": rows, "coverage": WHOLE})

    assert [each.group for each in at(tmp_path, 9, groups)] == sorted(groups or ["other", "payments", "q"])
