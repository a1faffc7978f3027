"""Topics, over both implementations."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from kgctl.errors import NotFoundError, RefusedError, UsageError
from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.serde.record_batch import (
    CorruptBatchError,
    Record,
    build_batch,
    build_marker,
    iterate_batches,
    iterate_records,
    parse_header,
    rebuilt,
)
from kgctl.storage.files import TOPICS_FILE
from kgctl.storage.folder import DataFolder, open_folder
from kgctl.storage.record_log import MAX_PARTITIONS, TopicStore

ID = UUID(int=1)
T0 = TopicPartition("t", 0)
BASE_OFFSET = 1_000_000


@pytest.fixture
def topics(folder: DataFolder) -> TopicStore:
    folder.topics.create_topics([TopicMetadata("t", ID, 2)])
    return folder.topics


def batch(*timestamps: int) -> bytes:
    """A batch as a producer sends it, offsets counted from some number of its own."""
    return build_batch([Record(BASE_OFFSET + i, time, b"k", b"v" * 10) for i, time in enumerate(timestamps)], leader_epoch=-1)


def offsets_of(data: bytes) -> list[int]:
    return [record.offset for position, _ in iterate_batches(data) for record in iterate_records(data, position)]


def test_topics_are_listed_by_name(topics: TopicStore) -> None:
    topics.create_topics([TopicMetadata("a", UUID(int=2), 1)])

    assert list(topics.topics().items()) == [
        ("a", TopicMetadata("a", UUID(int=2), 1)),
        ("t", TopicMetadata("t", ID, 2)),
    ]


def test_a_name_that_is_taken_is_refused(topics: TopicStore) -> None:
    with pytest.raises(RefusedError, match="topic t exists already"):
        topics.create_topics([TopicMetadata("t", ID, 1)])


def test_a_topic_has_at_least_one_partition(topics: TopicStore) -> None:
    with pytest.raises(UsageError, match="at least one"):
        topics.create_topics([TopicMetadata("z", ID, 0)])


def test_partitions_are_added_and_never_taken_away(topics: TopicStore) -> None:
    topics.append_batch(T0, batch(1), 0)
    topics.set_partition_counts({"t": 3})
    with pytest.raises(UsageError, match="cannot become 2"):
        topics.set_partition_counts({"t": 2})
    with pytest.raises(UsageError, match=f"at most {MAX_PARTITIONS}"):
        topics.set_partition_counts({"t": 2**31 - 1})

    assert dict(topics.topics()) == {"t": TopicMetadata("t", ID, 3)}

    assert (topics.log_offsets(T0), topics.log_offsets(TopicPartition("t", 2))) == ((0, 1), (0, 0))


def test_topics_are_made_together_or_not_at_all(topics: TopicStore) -> None:
    for bad in (TopicMetadata("b", UUID(int=9), 2**31 - 1), TopicMetadata("t", UUID(int=9), 1), TopicMetadata("a", ID, 1)):
        with pytest.raises((UsageError, RefusedError)):
            topics.create_topics([TopicMetadata("a", UUID(int=8), 1), bad])

    assert list(topics.topics()) == ["t"]


def test_a_topic_of_many_partitions_costs_as_much_as_a_small_one(topics: TopicStore) -> None:
    tracemalloc.start()
    topics.create_topics([TopicMetadata("large", UUID(int=8), MAX_PARTITIONS)])
    topics.append_batch(TopicPartition("large", MAX_PARTITIONS - 1), batch(1), 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert topics.log_offsets(TopicPartition("large", MAX_PARTITIONS - 1)) == (0, 1)
    assert peak < 1_000_000


def test_a_folder_with_an_oversized_topic_opens_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_folder(tmp_path, create=True) as folder:
        folder.topics.create_topics([TopicMetadata("t", ID, 1), TopicMetadata("m", UUID(int=2), 1)])
    with closing(sqlite3.connect(tmp_path / TOPICS_FILE)) as connection, connection:
        connection.execute("UPDATE topic SET partition_count = 2147483647 WHERE name = 'm'")
    connection.close()

    with open_folder(tmp_path, create=False) as folder:
        assert (list(folder.topics.topics()), dict(folder.topics.oversized_topics())) == (["t"], {"m": 2**31 - 1})
        assert "topic m has 2147483647 partitions" in caplog.text
        folder.topics.delete_topics(["m"])
    with open_folder(tmp_path, create=False) as folder:
        assert dict(folder.topics.oversized_topics()) == {}


def test_a_deleted_topic_is_gone_and_its_name_free_again(topics: TopicStore) -> None:
    topics.append_batch(T0, batch(1), 0)
    topics.delete_topics(["t"])
    assert dict(topics.topics()) == {}
    topics.create_topics([TopicMetadata("t", UUID(int=3), 1)])

    assert (topics.log_offsets(T0), topics.read_batches(T0, 0, 1_000)) == ((0, 0), b"")


@pytest.mark.parametrize("partition", [TopicPartition("x", 0), TopicPartition("t", 2), TopicPartition("t", -1)], ids=str)
def test_a_partition_that_does_not_exist_is_not_found(topics: TopicStore, partition: TopicPartition) -> None:
    for call in (
        lambda: topics.append_batch(partition, batch(1), 0),
        lambda: topics.read_batches(partition, 0, 1),
        lambda: topics.log_offsets(partition),
        lambda: topics.set_log_start(partition, 0),
        lambda: topics.offset_for_timestamp(partition, 0),
        lambda: topics.offset_of_max_timestamp(partition),
    ):
        with pytest.raises(NotFoundError) as found:
            call()
        assert (found.value.topic, found.value.partition) == (partition.topic, partition.partition)


@pytest.mark.parametrize("call", ["delete_topic", "set_partition_count"])
def test_a_topic_that_does_not_exist_is_not_found(topics: TopicStore, call: str) -> None:
    with pytest.raises(NotFoundError, match="topic x does not exist"):
        topics.delete_topics(["x"]) if call == "delete_topic" else topics.set_partition_counts({"x": 9})


def test_batches_get_their_offsets_and_keep_their_bytes(topics: TopicStore) -> None:
    first, second = batch(1, 2, 3), batch(4)
    assert [topics.append_batch(T0, first, 0), topics.append_batch(T0, second, 0)] == [0, 3]
    data = topics.read_batches(T0, 0, 10_000)

    assert topics.log_offsets(T0) == (0, 4)
    assert offsets_of(data) == [0, 1, 2, 3]
    assert data[16 : len(first)] == first[16:]
    assert data[12:16] == b"\x00\x00\x00\x00"


def test_reading_starts_with_the_batch_that_holds_the_offset(topics: TopicStore) -> None:
    for _ in range(100):
        topics.append_batch(T0, batch(1, 2, 3), 0)
    size = len(batch(1, 2, 3))

    assert offsets_of(topics.read_batches(T0, 4, 1)) == [3, 4, 5]
    assert offsets_of(topics.read_batches(T0, 3, 2 * size)) == [3, 4, 5, 6, 7, 8]
    assert offsets_of(topics.read_batches(T0, 0, 1 << 20)) == list(range(300))
    assert (topics.read_batches(T0, 300, 1_000), topics.read_batches(T0, 999, 1_000)) == (b"", b"")


def test_batches_are_written_anew_at_their_places(topics: TopicStore) -> None:
    for _ in range(4):
        topics.append_batch(T0, batch(1, 2, 3), 0)
    first = topics.read_batches(T0, 0, 1)
    header, records = parse_header(first), list(iterate_records(first))

    topics.rewrite_batches(T0, {0: rebuilt(header, records[1:2], None), 3: None, 6: None, 77: None})
    assert offsets_of(topics.read_batches(T0, 0, 1 << 20)) == [1, 9, 10, 11]
    assert offsets_of(topics.read_batches(T0, 2, 1)) == [1]
    assert offsets_of(topics.read_batches(T0, 3, 1)) == offsets_of(topics.read_batches(T0, 8, 1)) == [9, 10, 11]
    assert topics.log_offsets(T0) == (0, 12)
    assert topics.append_batch(T0, batch(1), 0) == 12
    assert topics.offset_for_timestamp(T0, 2) == (1, 2)


def test_partitions_that_were_written_to(topics: TopicStore) -> None:
    topics.append_batch(TopicPartition("t", 1), batch(1), 0)
    topics.log_offsets(T0)
    assert list(topics.written_partitions("t")) == [("t", 1)]


def test_a_transaction_marker_is_a_batch_like_any_other(topics: TopicStore) -> None:
    topics.append_batch(T0, batch(1), 0)
    topics.append_batch(T0, build_marker(TransactionMarker(5, 0, committed=True), 0, 2), 0)

    assert topics.log_offsets(T0) == (0, 2)


@pytest.mark.parametrize(
    "data", [b"", b"x" * 100, batch(1)[:-1] + b"?", batch(1) + batch(2)], ids=["empty", "noise", "checksum", "two batches"]
)
def test_what_is_no_batch_is_refused(topics: TopicStore, data: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        topics.append_batch(T0, data, 0)

    assert topics.log_offsets(T0) == (0, 0)


def test_a_batch_with_gaps_is_refused(topics: TopicStore) -> None:
    gappy = build_batch([Record(0, 1, None, None), Record(5, 1, None, None)])

    with pytest.raises(CorruptBatchError, match="gaps"):
        topics.append_batch(T0, gappy, 0)


def test_the_first_record_at_or_after_a_time(topics: TopicStore) -> None:
    for timestamps in ((10, 20), (15, 5), (40, 30)):
        topics.append_batch(T0, batch(*timestamps), 0)

    assert [topics.offset_for_timestamp(T0, time) for time in (0, 10, 11, 21, 31, 41)] == [
        (0, 10), (0, 10), (1, 20), (4, 40), (4, 40), None
    ]  # fmt: skip
    assert topics.offset_of_max_timestamp(T0) == (4, 40)


def test_an_empty_log_has_no_times(topics: TopicStore) -> None:
    assert (topics.offset_for_timestamp(T0, 0), topics.offset_of_max_timestamp(T0)) == (None, None)


def test_a_batch_that_cannot_be_looked_into_counts_as_one_record(topics: TopicStore) -> None:
    from google_crc32c import value as crc32c

    packed = bytearray(batch(10, 20))
    packed[22] |= 4
    packed[17:21] = crc32c(bytes(packed[21:])).to_bytes(4, "big")
    topics.append_batch(T0, batch(1), 0)
    topics.append_batch(T0, bytes(packed), 0)

    assert [topics.offset_for_timestamp(T0, time) for time in (1, 15, 21)] == [(0, 1), (1, 20), None]


def test_the_log_start_moves_forwards_only(topics: TopicStore) -> None:
    for _ in range(3):
        topics.append_batch(T0, batch(1, 2), 0)
    topics.set_log_start(T0, 3)
    assert (topics.log_offsets(T0), offsets_of(topics.read_batches(T0, 3, 1))) == ((3, 6), [2, 3])
    topics.set_log_start(T0, 1)
    assert (topics.log_offsets(T0), topics.offset_for_timestamp(T0, 0)) == ((3, 6), (3, 2))
    topics.set_log_start(T0, 99)

    assert (topics.log_offsets(T0), topics.read_batches(T0, 6, 10), topics.offset_for_timestamp(T0, 0)) == ((6, 6), b"", None)
    assert topics.append_batch(T0, batch(3), 0) == 6


def test_batch_behind_the_logs_end_leaves_a_gap_as_compaction_does(topics: TopicStore) -> None:
    topics.append_batch(T0, batch(5), 0, at=41)
    topics.append_batch(T0, batch(6), 0, at=7)

    assert topics.log_offsets(T0) == (0, 43)
    assert offsets_of(topics.read_batches(T0, 0, 1_000)) == [41, 42]
    assert offsets_of(topics.read_batches(T0, 42, 1_000)) == [42]
    assert topics.offset_for_timestamp(T0, 6) == (42, 6)


def test_the_size_is_that_of_the_batches(topics: TopicStore) -> None:
    topics.append_batch(T0, batch(1), 0)
    topics.append_batch(T0, batch(1, 2), 0)

    sizes = (topics.log_size(T0), topics.log_size(TopicPartition("t", 1)))
    topics.set_log_start(T0, 1)

    assert sizes == (len(batch(1)) + len(batch(1, 2)), 0)
    assert topics.log_size(T0) == len(batch(1, 2))
