"""Compaction keeps what replay needs, and drops the rest."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.storage.folder import DataFolder, load_coordinator, memory_folder
from kgctl.storage.record_log import DELETE_RETENTION_MS
from tests.support.coordinator_traffic import CONFIG, Step, Traffic, steps
from tests.support.storage import KINDS, commit, contents, delete, group_record, marker, new_folder

LATER = DELETE_RETENTION_MS + 10_000


def offsets_of(folder: DataFolder) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in contents(folder)]


def recorded(coordinator: GroupCoordinator) -> object:
    """What the log holds of the state: a group without a record of its own exists by its offsets alone, here and in Kafka."""
    groups, offsets = cast("tuple[dict[str, Any], tuple[dict[Any, Any], dict[Any, Any]]]", coordinator.durable())
    return {group_id: group for group_id, group in groups.items() if group[1] is not None}, offsets


def reloaded(folder: DataFolder, now_ms: int) -> GroupCoordinator:
    return load_coordinator(folder, CONFIG, lambda prefix: prefix, now_ms)


def test_the_newest_record_of_each_key_stays_at_its_offset(folder: DataFolder) -> None:
    for time in range(3):
        folder.record_log.append([commit("g", 0, time), commit("g", 1, time)], time)

    assert folder.record_log.compact() == 4
    assert [record.offset for record in contents(folder)] == [4, 5]
    assert folder.record_log.compact() == 0


def test_a_tombstone_stays_for_a_day(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), delete("g", 0), commit("g", 1, 1)], 1_000)

    assert folder.record_log.compact(1_000 + DELETE_RETENTION_MS) == 1
    assert folder.record_log.compact(1_001 + DELETE_RETENTION_MS) == 1
    assert [record.offset for record in contents(folder)] == [2]


def test_the_newest_record_of_a_partition_stays_whatever_it_is(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), delete("g", 0)], 1_000)

    assert folder.record_log.compact(LATER) == 1
    assert [record.offset for record in contents(folder)] == [1]
    assert folder.record_log.end_offset(contents(folder)[0].partition) == 2


def test_records_of_an_aborted_transaction_go_and_count_for_nothing(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), commit("g", 0, 2, producer=9), marker(9, committed=False), commit("g", 1, 3)], 1)

    assert folder.record_log.compact() == 2
    assert [record.offset for record in contents(folder)] == [0, 3]


def test_records_of_a_committed_transaction_become_plain_and_their_marker_goes(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), commit("g", 0, 2, producer=9), marker(9), commit("g", 1, 3)], 1)

    assert folder.record_log.compact() == 2
    assert [(record.offset, record.producer_id) for record in contents(folder)] == [(1, None), (3, None)]


def test_nothing_at_or_after_an_open_transaction_is_touched(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), commit("g", 0, 2), commit("g", 1, 3, producer=9), commit("g", 0, 4)], 1)
    folder.record_log.append([commit("g", 0, 5), commit("g", 2, 6, producer=8), marker(8)], 2)

    assert folder.record_log.compact() == 1
    assert [record.offset for record in contents(folder)] == [1, 2, 3, 4, 5, 6]
    folder.record_log.append([marker(9)], 3)
    assert folder.record_log.compact() == 3
    assert [(record.offset, record.producer_id) for record in contents(folder)] == [(2, None), (4, None), (5, None), (7, 9)]


def test_small_steps_do_the_same_and_begin_only_when_it_is_worth_it(folder: DataFolder) -> None:
    for time in range(200):
        folder.record_log.append([commit("g", number, time) for number in range(60)], time)
    more = 0
    while folder.record_log.compact_step(0, 500):
        more += 1
        folder.record_log.append([commit("h", 0, more)], 300)

    assert more > 40
    assert len([record for record in contents(folder) if record.timestamp_ms < 300]) == 60
    assert not folder.record_log.compact_step(0)


@settings(deadline=None)
@given(st.lists(steps, max_size=40), st.lists(steps, max_size=10), st.booleans())
def test_the_state_is_the_same_after_compaction(before: list[Step], after: list[Step], later: bool) -> None:
    folder = memory_folder(4)
    traffic = Traffic(folder.record_log)
    for step in before:
        traffic.run(step)
    ends = [folder.record_log.end_offset(partition) for partition in range(4)]
    folder.record_log.compact(traffic.now_ms + LATER if later else traffic.now_ms)
    assert [folder.record_log.end_offset(partition) for partition in range(4)] == ends
    assert recorded(reloaded(folder, traffic.now_ms)) == recorded(traffic.coordinator)
    for step in after:
        traffic.run(step)
    folder.record_log.compact(traffic.now_ms)

    assert recorded(reloaded(folder, traffic.now_ms)) == recorded(traffic.coordinator)


@example(before=[("txn commit", "g-0", 0, 0, 1), ("delete group", "g-0")], after=[("end", 1, True)])
@settings(deadline=None, max_examples=30)  # each flushes a disk that others use too
@given(st.lists(steps, max_size=40), st.lists(steps, max_size=10))
def test_both_kinds_write_keep_and_compact_the_same(before: list[Step], after: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as path, new_folder("memory", Path(path)) as memory:
        first = Traffic(memory.record_log)
        with new_folder("sqlite", Path(path)) as sqlite:
            second = Traffic(sqlite.record_log)
            for step in before:
                first.run(step)
                second.run(step)
        with new_folder("sqlite", Path(path)) as sqlite:
            assert contents(sqlite) == contents(memory)
            assert recorded(reloaded(sqlite, second.now_ms)) == recorded(first.coordinator)
            assert sqlite.record_log.compact(first.now_ms) == memory.record_log.compact(first.now_ms)
            second.log = sqlite.record_log
            for step in after:
                first.run(step)
                second.run(step)
            assert contents(sqlite) == contents(memory)


@pytest.mark.parametrize("kind", KINDS)
def test_group_records_are_compacted_like_any_other(kind: str, tmp_path: Path) -> None:
    with new_folder(kind, tmp_path) as folder:
        folder.record_log.append([group_record("g", 1), group_record("g", 2), group_record("h", 1), group_record("h", -1)], 1)
        folder.record_log.compact(2)

        assert len(contents(folder)) == 2
