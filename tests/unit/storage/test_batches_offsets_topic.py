"""The record log as the topic ``__consumer_offsets``, read by a client's decoder that nobody here wrote."""

from __future__ import annotations

from dataclasses import replace

from aiokafka.record.memory_records import MemoryRecords

from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.values import partition_for
from kgctl.serde.record_batch import check_batch, iterate_batches, iterate_records, parse_marker
from kgctl.storage.batches import read_batches
from kgctl.storage.folder import DataFolder
from tests.support.storage import commit, contents, delete, marker

AT = partition_for("g", 4)


def seen(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """What another client's code reads."""
    records = MemoryRecords(data)
    found = []
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(record.offset, record.timestamp, record.key, record.value) for record in batch]
    return found


def test_plain_records_come_in_one_batch(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), delete("g", 0), commit("g", 1, 2)], 1_000)
    folder.record_log.append([commit("g", 0, 3)], 2_000)
    data = read_batches(folder.record_log, AT, 0, 1 << 20)

    assert len(list(iterate_batches(data))) == 1
    assert seen(data) == [(r.offset, r.timestamp_ms, r.key, r.value) for r in contents(folder)]


def test_reading_begins_at_the_offset_and_ends_with_the_bytes(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", number, 1) for number in range(1_200)], 1)
    first = read_batches(folder.record_log, AT, 10, 1)
    whole = read_batches(folder.record_log, AT, 0, 1 << 20)
    some = read_batches(folder.record_log, AT, 0, len(whole) - 1)

    assert next(record[0] for record in seen(first)) == 10
    assert [record[0] for record in seen(whole)] == list(range(1_200))
    assert [record[0] for record in seen(some)] == list(range(1_000))
    assert read_batches(folder.record_log, AT, 1_200, 1_000) == b""


def test_transactions_come_as_kafka_has_them(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), commit("g", 1, 2, producer=9), commit("g", 2, 3, producer=9)], 1)
    folder.record_log.append([commit("g", 0, 4, producer=8), marker(9), commit("g", 0, 5)], 2)
    data = read_batches(folder.record_log, AT, 0, 1 << 20)
    batches = list(iterate_batches(data))

    assert [(h.is_transactional, h.is_control, h.producer_id, h.record_count) for _, h in batches] == [
        (False, False, -1, 1),
        (True, False, 9, 2),
        (True, False, 8, 1),
        (True, True, 9, 1),
        (False, False, -1, 1),
    ]
    assert parse_marker(data, batches[3][0]) == TransactionMarker(9, 0, committed=True)
    assert [header.base_offset for _, header in batches] == [0, 1, 3, 4, 5]


def test_offsets_that_compaction_removed_are_gaps(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 1), commit("g", 1, 1), commit("g", 0, 2), commit("g", 2, 1)], 1)
    folder.record_log.compact()
    data = read_batches(folder.record_log, AT, 0, 1 << 20)

    assert [record.offset for record in iterate_records(data)] == [1, 2, 3]
    assert [record[0] for record in seen(read_batches(folder.record_log, AT, 2, 1 << 20))] == [2, 3]


def test_every_batch_is_whole(folder: DataFolder) -> None:
    effects = [commit("g", number % 7, number) for number in range(1_300)]
    folder.record_log.append([replace(effect, member_id="m") for effect in effects], 5)
    data = read_batches(folder.record_log, AT, 0, 1 << 20)
    batches = list(iterate_batches(data))
    assert batches
    for position, header in batches:
        assert check_batch(data[position : position + header.size_bytes]) == header
