"""The record log, over both implementations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import ConsumerGroupMetadataKey, CoordinatorRecord, OffsetCommitKey, TransactionMarker
from kgctl.model.values import partition_for
from kgctl.serde.coordinator_records import RecordEncodeError, encode_key, encode_record
from kgctl.storage.folder import DataFolder
from kgctl.storage.record_log import StoredRecord
from tests.support.storage import commit, contents, delete, entry, group_record, marker

A, B = "group-a", "group-b"
A_AT, B_AT = partition_for(A, 4), partition_for(B, 4)


def test_records_go_to_the_partition_of_their_group_in_kafkas_bytes(folder: DataFolder) -> None:
    effects = [commit(A, 0, 5), commit(B, 0, 6), delete(A, 0), group_record(A, 3)]
    folder.record_log.append(effects, 1_000)
    expected = [
        StoredRecord(at, offset, 1_000, *encode_record(effect.record))
        for effect, at, offset in zip(effects, (A_AT, B_AT, A_AT, A_AT), (0, 0, 1, 2), strict=True)
        if isinstance(effect.record, CoordinatorRecord)
    ]

    assert A_AT != B_AT
    assert contents(folder) == expected
    assert [record.decode() for record in contents(folder)] == [effect.record for effect in effects]
    assert (folder.record_log.end_offset(A_AT), folder.record_log.end_offset(B_AT)) == (3, 1)


def test_one_partition_is_read_from_an_offset_on(folder: DataFolder) -> None:
    for offset in range(5):
        folder.record_log.append([commit(A, 0, offset), commit(B, 0, offset)], offset)
    records = [record for record in contents(folder) if record.partition == A_AT]

    assert list(folder.record_log.read(A_AT)) == records
    assert list(folder.record_log.read(A_AT, 2)) == records[2:]
    assert list(folder.record_log.read(A_AT, 1, 2)) == records[1:3]
    assert list(folder.record_log.read(A_AT, 5)) == []
    assert list(folder.record_log.read(max_records=3)) == contents(folder)[:3]


def test_an_empty_log_has_nothing(folder: DataFolder) -> None:
    folder.record_log.append([], 1)

    assert contents(folder) == []
    assert (folder.record_log.end_offset(0), folder.record_log.partition_count) == (0, 4)
    assert folder.record_log.compact() == 0


def test_a_marker_goes_to_each_partition_where_its_producer_has_offsets_pending(folder: DataFolder) -> None:
    folder.record_log.append([commit(A, 0, 1, producer=9), commit(B, 0, 2, producer=9), commit(A, 1, 3, producer=8)], 1_000)
    folder.record_log.append([marker(9)], 2_000)
    end = TransactionMarker(9, 0, committed=True)

    assert contents(folder)[3:] == [
        StoredRecord(A_AT, 2, 2_000, None, None, 9, 0, commits=True),
        StoredRecord(B_AT, 1, 2_000, None, None, 9, 0, commits=True),
    ]
    assert [(r.is_marker, r.producer_id) for r in contents(folder)] == [
        (False, 9), (False, 9), (False, 8), (True, 9), (True, 9)
    ]  # fmt: skip
    assert contents(folder)[3].decode() == end


def test_a_marker_that_nobody_waits_for_is_not_written(folder: DataFolder) -> None:
    folder.record_log.append([marker(9)], 1)

    assert contents(folder) == []


def test_what_cannot_be_written_leaves_the_log_as_it_was(folder: DataFolder) -> None:
    with pytest.raises(RecordEncodeError):
        folder.record_log.append([commit(A, 0, 1), commit("g" * 40_000, 0, 1)], 1)
    folder.record_log.append([commit(A, 0, 2)], 2)

    assert [(record.offset, record.timestamp_ms) for record in contents(folder)] == [(0, 2)]
    assert folder.path is None or list(folder.commit_log.read()) == [entry(A, 0, 2, 2)]


def test_placed_records_keep_their_offsets(folder: DataFolder) -> None:
    key, value = encode_record(CoordinatorRecord(ConsumerGroupMetadataKey(A), None))
    records = [StoredRecord(2, 10, 5, key, value), StoredRecord(2, 17, 6, key, value), StoredRecord(1, 3, 7, key, value)]
    folder.record_log.write(records)

    assert contents(folder) == records
    assert [folder.record_log.end_offset(partition) for partition in range(4)] == [0, 4, 18, 0]


def test_placed_records_must_ascend(folder: DataFolder) -> None:
    record = StoredRecord(2, 10, 5, encode_key(OffsetCommitKey(A, "t", 0)), None)
    with pytest.raises(ValueError, match="offset 10 of partition 2"):
        folder.record_log.write([record, replace(record, offset=10)])

    assert contents(folder) == []


def test_placed_transactions_reach_the_commit_log_at_their_marker(folder: DataFolder) -> None:
    pending = commit(A, 0, 7).record
    assert isinstance(pending, CoordinatorRecord)
    key, value = encode_record(pending)
    folder.record_log.write([StoredRecord(A_AT, 4, 100, key, value, 9, 0), StoredRecord(A_AT, 5, 200, None, None, 9, 0, True)])

    assert folder.path is None or list(folder.commit_log.read()) == [entry(A, 0, 7, 200)]


def test_opaque_effects_do_not_need_a_group(folder: DataFolder) -> None:
    from kgctl.model.coordinator_records import OpaqueKey

    folder.record_log.append([AppendRecord(CoordinatorRecord(OpaqueKey(99, b"\x00\x63x"), b"\x00\x07"))], 1)

    assert contents(folder) == [StoredRecord(0, 0, 1, b"\x00\x63x", b"\x00\x07")]
