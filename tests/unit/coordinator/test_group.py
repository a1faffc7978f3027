"""Streams groups: seen, kept, never changed."""

from __future__ import annotations

import pytest

from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.group import OpaqueGroup
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitValue, OpaqueKey, RecordType
from kgctl.model.error_codes import ErrorCode
from tests.support.coordinator_harness import CoordinatorHarness


def loaded(*record_types: int) -> CoordinatorHarness:
    """A coordinator whose log has these records of the group ``s``."""
    harness = CoordinatorHarness()
    keys = [OpaqueKey(number, bytes([0, number, 0, 1]) + b"s", "s") for number in record_types]
    harness.driver.load([AppendRecord(CoordinatorRecord(key, b"v")) for key in keys])
    return harness


def test_they_are_listed_with_their_type() -> None:
    harness = loaded(RecordType.STREAMS_GROUP_METADATA, RecordType.STREAMS_GROUP_MEMBER_METADATA)
    assert harness.list_groups() == [("s", "streams", "Stable", "streams")]


def test_records_that_belong_to_no_group_are_passed_over() -> None:
    harness = CoordinatorHarness()
    harness.driver.load([AppendRecord(CoordinatorRecord(OpaqueKey(99, b"k"), b"v"))])

    assert harness.list_groups() == []


@pytest.mark.parametrize(
    ("there", "removed"),
    [((17,), [20, 17, 23]), ((17, 20, 23), [20, 17, 23])],
)
def test_an_empty_one_is_deleted_with_kafkas_tombstones(there: tuple[int, ...], removed: list[int]) -> None:
    harness = loaded(*there)

    assert harness.delete_groups("s") == [ErrorCode.NONE]
    keys = [entry.record.key for entry in harness.log[len(there) :] if isinstance(entry.record, CoordinatorRecord)]
    assert keys == [OpaqueKey(number, bytes([0, number, 0, 1]) + b"s", "s") for number in removed]
    assert harness.any_group("s") is None


def test_one_with_members_is_not_deleted() -> None:
    assert loaded(19, 17).delete_groups("s") == [ErrorCode.NON_EMPTY_GROUP]


def test_an_empty_one_ends_with_the_expiry_cycle() -> None:
    streams = loaded(17)
    streams.sleep_ms(600_000)

    assert streams.any_group("s") is None


def test_a_streams_group_takes_commits_from_outside_while_it_is_empty() -> None:
    harness = loaded(17)

    assert harness.commit({"t-0": 1}, group="s") == {"t-0": ErrorCode.NONE}
    assert harness.commit({"t-0": 1}, "m", 3, group="s") == {"t-0": ErrorCode.UNKNOWN_MEMBER_ID}
    assert harness.fetch("t-0", group="s").offsets[0].offset == 1
    assert harness.fetch("t-0", group="s", member_id="m", member_epoch=1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.delete_offsets("t-0", group="s").partitions[0][1] is ErrorCode.NONE
    assert OpaqueGroup("s").expiry_base_ms(OffsetCommitValue(1, commit_timestamp_ms=5)) == 5


def test_offsets_of_a_streams_group_with_members_count_as_in_use() -> None:
    harness = loaded(17, 19)

    assert harness.delete_offsets("t-0", group="s").partitions[0][1] is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_they_are_the_same_after_a_reload() -> None:
    harness = loaded(17, 20)
    before = harness.driver.coordinator.durable()

    harness.driver.reload()

    assert harness.driver.coordinator.durable() == before
