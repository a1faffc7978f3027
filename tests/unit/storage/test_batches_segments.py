"""Segment files in the shape in which Kafka leaves them, and everything that a copy of them can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.model.values import partition_for
from kgctl.storage.batches import ImportSummary, import_segments, read_batches
from kgctl.storage.folder import DataFolder, memory_folder
from tests.support.storage import commit, contents, delete, entry, group_record, marker

GROUPS = ("group-a", "group-b")
AT = partition_for("group-a", 4)


def written(path: Path, *, batches_a_file: int = 2) -> DataFolder:
    """A log directory as a broker has it; what it was made of is the answer."""
    source = memory_folder(4)
    for time in range(10, 15):
        source.record_log.append([commit("group-a", time % 3, time), commit("group-b", 0, time, producer=9)], time)
    source.record_log.append([delete("group-a", 0), marker(9), group_record("group-b", 3)], 20)
    for partition in range(4):
        if source.record_log.end_offset(partition):
            write_segments(path / f"__consumer_offsets-{partition}", source, partition, batches_a_file)
    return source


def write_segments(folder: Path, source: DataFolder, partition: int, batches_a_file: int) -> None:
    folder.mkdir(parents=True)
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    end = source.record_log.end_offset(partition)
    for start in range(0, end, batches_a_file):
        records = b"".join(read_one(source, partition, offset) for offset in range(start, min(start + batches_a_file, end)))
        (folder / f"{start:020}.log").write_bytes(records)
        (folder / f"{start:020}.index").write_bytes(b"not a log")


def read_one(source: DataFolder, partition: int, offset: int) -> bytes:
    """A batch of a single record."""
    data = read_batches(source.record_log, partition, offset, 1)
    size = int.from_bytes(data[8:12], "big") + 12
    assert size == len(data) or data[57:61] == b"\x00\x00\x00\x01"
    return data[:size]


def test_a_log_directory_is_loaded_record_for_record(tmp_path: Path, folder: DataFolder) -> None:
    source = written(tmp_path / "logs")
    summary = import_segments(tmp_path / "logs", folder.record_log)

    assert summary == ImportSummary(2, len(contents(source)))
    for partition in range(4):
        assert list(folder.record_log.read(partition)) == list(source.record_log.read(partition))
    assert folder.path is None or list(folder.commit_log.read("group-b")) == [entry("group-b", 0, 14, 20)]
    folder.record_log.append([commit("group-a", 0, 99)], 30)
    assert contents(folder)[-1].offset == source.record_log.end_offset(AT)


def test_a_single_partitions_folder_is_loaded(tmp_path: Path, folder: DataFolder) -> None:
    source = written(tmp_path)
    import_segments(tmp_path / f"__consumer_offsets-{AT}", folder.record_log)

    assert contents(folder) == list(source.record_log.read(AT))


def last_file(path: Path) -> Path:
    return max((path / f"__consumer_offsets-{AT}").glob("*.log"))


def first_file(path: Path) -> Path:
    return min((path / f"__consumer_offsets-{AT}").glob("*.log"))


@pytest.mark.parametrize("tail", [b"\x00" * 100, b"\x01\x02", b"\x00" * 8 + b"\x00\x00\x10\x00" + b"\x07" * 60], ids=str)
def test_a_copy_taken_in_the_midst_of_a_write_ends_before_it(tmp_path: Path, folder: DataFolder, tail: bytes) -> None:
    source = written(tmp_path)
    last_file(tmp_path).write_bytes(last_file(tmp_path).read_bytes() + tail)
    import_segments(tmp_path, folder.record_log)

    assert list(folder.record_log.read(AT)) == list(source.record_log.read(AT))


def refusal(path: Path, folder: DataFolder) -> KgctlError:
    before = contents(folder)
    with pytest.raises(KgctlError) as error:
        import_segments(path, folder.record_log)
    assert contents(folder) == before
    return error.value


@pytest.mark.parametrize("damage", ["cut off", "flipped", "old format"])
def test_damage_anywhere_else_is_named_with_its_place_and_nothing_is_loaded(
    tmp_path: Path, folder: DataFolder, damage: str
) -> None:
    written(tmp_path)
    data = bytearray(first_file(tmp_path).read_bytes())
    if damage == "cut off":
        del data[-1]
    else:
        data[16 if damage == "old format" else -1] ^= 1
    first_file(tmp_path).write_bytes(data)
    error = refusal(tmp_path, folder)

    assert isinstance(error, StorageError)
    assert f"{first_file(tmp_path)}: at byte" in error.message


def test_a_record_that_cannot_be_read_is_named(tmp_path: Path, folder: DataFolder) -> None:
    from kgctl.serde.record_batch import Record, build_batch

    path = tmp_path / "__consumer_offsets-1"
    path.mkdir()
    (path / "0.log").write_bytes(build_batch([Record(5, 1, b"\x00\x01\x00", b"")]))

    assert "offset 5 of partition 1" in refusal(tmp_path, folder).message


def test_records_under_a_codec_that_is_not_there_are_named(tmp_path: Path, folder: DataFolder) -> None:
    from google_crc32c import value as crc32c

    from kgctl.serde.record_batch import Record, build_batch

    data = bytearray(build_batch([Record(5, 1, b"\x00\x01", b"")]))
    data[22] |= 2
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    path = tmp_path / "__consumer_offsets-1"
    path.mkdir()
    (path / "0.log").write_bytes(data)

    assert "snappy" in refusal(tmp_path, folder).message


def test_a_folder_without_partitions_is_not_found(tmp_path: Path, folder: DataFolder) -> None:
    (tmp_path / "t-0").mkdir()

    assert isinstance(refusal(tmp_path, folder), NotFoundError)
    assert isinstance(refusal(tmp_path / "none", folder), NotFoundError)


def test_a_cluster_with_another_number_of_partitions_is_recognised(tmp_path: Path) -> None:
    written(tmp_path)
    few, many = memory_folder(1), memory_folder(50)

    assert isinstance(refusal(tmp_path, few), UsageError)
    assert "another number" in refusal(tmp_path, many).message


def test_a_log_that_has_records_is_left_alone(tmp_path: Path, folder: DataFolder) -> None:
    written(tmp_path)
    folder.record_log.append([commit("group-a", 0, 1)], 1)

    assert isinstance(refusal(tmp_path, folder), RefusedError)
