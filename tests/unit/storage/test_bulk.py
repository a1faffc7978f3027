"""Reading a data folder in bulk, from outside."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kgctl.errors import KgctlError, NotFoundError, StorageError, UsageError
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.serde.record_batch import Record, build_batch
from kgctl.storage.bulk import BulkReader, LogBound, LogEndColumns
from kgctl.storage.files import COORDINATOR_FILE, TOPICS_FILE
from kgctl.storage.folder import DataFolder, open_folder
from kgctl.storage.record_log import StoredRecord
from tests.support.storage import TOPIC_ID, commit, delete, is_open, marker


def filled(path: Path) -> DataFolder:
    """A folder with commits, a transaction, a tombstone and a topic with records; open."""
    folder = open_folder(path, create=True, offsets_partitions=3)
    for number in range(40):
        folder.record_log.append([commit(f"g{number % 7}", number % 3, number)], 1_000 + number)
    folder.record_log.append([commit("g1", 0, 99, producer=5), delete("g2", 0)], 2_000)
    folder.record_log.append([marker(5)], 2_001)
    folder.topics.create_topics([TopicMetadata("t", TOPIC_ID, 2)])
    for time in (100, 150, 1_100, 1_150, 5_000):
        batch = build_batch([Record(0, time, None, b"x"), Record(1, time, None, b"y")])
        folder.topics.append_batch(TopicPartition("t", 1), batch, time)
    folder.topics.set_log_start(TopicPartition("t", 1), 3)
    return folder


def _row(record: StoredRecord) -> tuple[object, ...]:
    epoch = None if record.producer_id is None else record.producer_epoch
    place = (record.partition, record.offset, record.timestamp_ms)
    return (*place, record.key, record.value, record.producer_id, epoch, record.commits)


def test_columns_are_what_the_log_reads_and_the_server_may_go_on_writing(tmp_path: Path) -> None:
    with filled(tmp_path) as folder, BulkReader(tmp_path) as bulk:
        expected = [_row(record) for partition in range(3) for record in folder.record_log.read(partition)]
        found = [
            (partition, *row)
            for partition in bulk.partitions()
            for page in bulk.records(partition, page_rows=4)
            for row in zip(*page, strict=True)
        ]
        assert found == expected
        assert any(row[-1] for row in found)
        folder.record_log.append([commit("later", 0, 1)], 3_000)
        assert sum(len(page.offset) for p in bulk.partitions() for page in bulk.records(p)) == len(expected) + 1
        first = next(iter(bulk.partitions()))
        assert [page.offset[0] for page in bulk.records(first, from_offset=5)] == [5]


def test_log_ends_over_time_and_now(tmp_path: Path) -> None:
    with filled(tmp_path), BulkReader(tmp_path) as bulk:
        assert bulk.log_ends(1_000) == LogEndColumns(("t",) * 3, (1,) * 3, (150, 1_150, 5_000), (4, 8, 10))
        assert bulk.log_ends(1).log_end_offset == (4, 6, 8, 10)  # the first batch lies before the log's start
        assert bulk.log_bounds() == [LogBound("t", 0, 0, 0), LogBound("t", 1, 3, 10)]


def test_what_moment_a_folder_shows(tmp_path: Path) -> None:
    with filled(tmp_path) as folder, BulkReader(tmp_path) as bulk:
        assert bulk.as_of_ms(9_999) == 9_999
        folder.close()
        assert bulk.as_of_ms(9_999) == 5_000
    with open_folder(tmp_path, create=False) as folder:
        folder.settings.freeze(7_000)
    with BulkReader(tmp_path) as bulk:
        assert bulk.as_of_ms(9_999) == 7_000


def test_a_folder_that_nobody_may_write_to(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    filled(folder).close()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    reads = f"print(BulkReader(Path({str(folder)!r})).partitions())"
    program = f"from pathlib import Path; from kgctl.storage.bulk import BulkReader; {reads}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    folder.chmod(0o755)
    assert (done.stdout, done.stderr) == ("[0, 1, 2]\n", "")


def _newer(path: Path) -> None:
    with open_folder(path, create=True):
        pass
    connection = sqlite3.connect(path / COORDINATOR_FILE)
    connection.execute("PRAGMA user_version = 9")
    connection.close()


def _foreign(path: Path) -> None:
    path.mkdir()
    connection = sqlite3.connect(path / COORDINATOR_FILE)
    connection.execute("CREATE TABLE t (x)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda path: None, NotFoundError, "no data folder at"),
        (lambda path: path.mkdir(), NotFoundError, "holds no data of kgctl"),
        (lambda path: path.write_text("x"), UsageError, "is not a folder"),
        (_newer, UsageError, "written by a newer kgctl (data format 9"),
        (_foreign, StorageError, "none of kgctl's"),
        (lambda path: (path.mkdir(), (path / COORDINATOR_FILE).write_bytes(b"x" * 5_000)), StorageError, "not a database"),
    ],
)
def test_folders_that_cannot_be_read(tmp_path: Path, make: object, error: type[KgctlError], words: str) -> None:
    make(tmp_path / "data")  # type: ignore[operator]
    with pytest.raises(error) as raised:
        BulkReader(tmp_path / "data")
    assert words in raised.value.message


def _without_its_topics(path: Path) -> None:
    with open_folder(path, create=True):
        pass
    (path / TOPICS_FILE).write_bytes(b"x" * 5_000)


@pytest.mark.parametrize("make", [_foreign, _without_its_topics], ids=["coordinator", "topics"])
def test_a_folder_that_cannot_be_read_leaves_no_database_open(
    make: Callable[[Path], None], tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    make(tmp_path / "data")
    connections.clear()
    with pytest.raises(KgctlError):
        BulkReader(tmp_path / "data")
    assert connections
    assert [each for each in connections if is_open(each)] == []
