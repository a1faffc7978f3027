"""The commit log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.model.groups import TopicPartition
from kgctl.storage.folder import DataFolder
from tests.support.storage import commit, delete, entry, group_record, marker, new_folder

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[DataFolder]:
    with new_folder("sqlite", tmp_path) as opened:
        yield opened


def test_commits_and_deletes_are_told_with_their_member(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 5, member="m-1"), commit("g", 1, 6)], 1_000)
    folder.record_log.append([group_record("g", 1), delete("g", 0)], 2_000)
    folder.record_log.append([commit("g", 0, 9, member="")], 3_000)

    assert list(folder.commit_log.read()) == [
        entry("g", 0, 5, 1_000, member="m-1"),
        entry("g", 1, 6, 1_000),
        entry("g", 0, None, 2_000),
        entry("g", 0, 9, 3_000),
    ]


def test_history_is_filtered(folder: DataFolder) -> None:
    for time in range(5):
        folder.record_log.append([commit("g", 0, time), commit("g", 1, time), commit("h", 0, time, topic="u")], time)
    log = folder.commit_log

    assert list(log.read("h")) == [entry("h", 0, time, time, topic="u") for time in range(5)]
    assert list(log.read("g", since_ms=3)) == [entry("g", p, time, time) for time in (3, 4) for p in (0, 1)]
    assert list(log.read("g", until_ms=1)) == [entry("g", p, 0, 0) for p in (0, 1)]
    assert list(log.read("nobody")) == []


def test_offsets_at_a_past_moment(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 1, 10), commit("g", 0, 20)], 1_000)
    folder.record_log.append([commit("g", 0, 21), commit("h", 0, 99)], 2_000)
    folder.record_log.append([delete("g", 1)], 3_000)
    log = folder.commit_log

    assert dict(log.offsets_at("g", 999)) == {}
    assert list(log.offsets_at("g", 1_000).items()) == [(T0, entry("g", 0, 20, 1_000)), (T1, entry("g", 1, 10, 1_000))]
    assert dict(log.offsets_at("g", 2_500)) == {T0: entry("g", 0, 21, 2_000), T1: entry("g", 1, 10, 1_000)}
    assert dict(log.offsets_at("g", 3_000)) == {T0: entry("g", 0, 21, 2_000)}
    assert dict(log.offsets_at("nobody", 3_000)) == {}


def test_compaction_leaves_the_commit_log_alone(folder: DataFolder) -> None:
    for time in range(10):
        folder.record_log.append([commit("g", 0, time)], time)

    assert folder.record_log.compact() == 9
    assert list(folder.commit_log.read("g")) == [entry("g", 0, time, time) for time in range(10)]


def test_a_transactional_commit_counts_from_its_marker_on(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 5, producer=9, member="m-1")], 1_000)
    assert list(folder.commit_log.read()) == []
    folder.record_log.append([marker(9)], 2_000)

    assert list(folder.commit_log.read()) == [entry("g", 0, 5, 2_000, member="m-1")]


def test_an_aborted_transaction_never_counts(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 5, producer=9)], 1_000)
    folder.record_log.append([marker(9, committed=False), marker(9)], 2_000)

    assert list(folder.commit_log.read()) == []


def test_a_later_plain_commit_or_delete_overtakes_a_pending_one(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 5, producer=9), commit("g", 1, 5, producer=9), commit("g", 2, 5, producer=9)], 1_000)
    folder.record_log.append([commit("g", 0, 6), delete("g", 1)], 1_500)
    folder.record_log.append([marker(9)], 2_000)

    assert list(folder.commit_log.read(since_ms=1_500)) == [
        entry("g", 0, 6, 1_500),
        entry("g", 1, None, 1_500),
        entry("g", 2, 5, 2_000),
    ]


def test_a_history_longer_than_a_page_is_whole(folder: DataFolder) -> None:
    for start in range(0, 4_500, 500):
        folder.record_log.append([commit("g", number, 1) for number in range(start, start + 500)], start)

    assert [found.partition for found in folder.commit_log.read("g")] == list(range(4_500))
    assert len(list(folder.record_log.read())) == 4_500
