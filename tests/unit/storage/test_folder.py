"""The data folder: one owner, kept settings, and one clear line for whatever is wrong with it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.serde.record_batch import Record, build_batch
from kgctl.storage.files import COORDINATOR_FILE, LOCK_FILE, STATE_FILE, TOPICS_FILE
from kgctl.storage.folder import memory_folder, open_folder
from kgctl.storage.sqlite import Database, Schema
from tests.support.storage import commit, contents, entry, marker

HOLD = """
import sys
from pathlib import Path
from kgctl.storage.folder import open_folder
with open_folder(Path(sys.argv[1]), create=False):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_everything_is_there_again_after_reopening(tmp_path: Path) -> None:
    batch = build_batch([Record(0, 5, b"k", b"v")])
    with open_folder(tmp_path / "new" / "data", create=True, offsets_partitions=3) as folder:
        folder.record_log.append([commit("g", 0, 5, member="m"), commit("g", 1, 6, producer=9, member="p")], 1_000)
        folder.topics.create_topics([TopicMetadata("t", UUID(int=7), 2)])
        folder.topics.append_batch(TopicPartition("t", 1), batch, 0)
        folder.topics.set_log_start(TopicPartition("t", 1), 1)
        folder.settings.set_broker_properties({"offsets.retention.minutes": "5"})
        before = contents(folder)
    with open_folder(tmp_path / "new" / "data", create=False, offsets_partitions=50) as folder:
        assert (contents(folder), folder.record_log.partition_count) == (before, 3)
        assert folder.topics.topics() == {"t": TopicMetadata("t", UUID(int=7), 2)}
        assert folder.topics.log_offsets(TopicPartition("t", 1)) == (1, 1)
        assert folder.settings.broker_properties() == {"offsets.retention.minutes": "5"}
        folder.record_log.append([marker(9)], 2_000)
        assert list(folder.commit_log.read()) == [entry("g", 0, 5, 1_000, member="m"), entry("g", 1, 6, 2_000, member="p")]


def test_the_folder_holds_four_files(tmp_path: Path) -> None:
    open_folder(tmp_path, create=True).close()

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([LOCK_FILE, STATE_FILE, COORDINATOR_FILE, TOPICS_FILE])


def test_settings_in_memory_are_kept_as_long_as_it_lives() -> None:
    folder = memory_folder()
    assert folder.settings.broker_properties() == {}
    folder.settings.set_broker_properties({"a": "b"})

    assert folder.settings.broker_properties() == {"a": "b"}


def test_the_audit_can_be_read_with_any_sqlite_tool(tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True) as folder:
        folder.record_log.append([commit("g", 0, 5, member="m")], 1_000)
    connection = sqlite3.connect(tmp_path / COORDINATOR_FILE)
    rows = connection.execute('SELECT time, "group", topic, "partition", "offset", member_id FROM commits').fetchall()
    connection.close()

    assert rows == [("1970-01-01 00:00:01", "g", "t", 0, 5, "m")]


def test_a_second_opener_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True), pytest.raises(RefusedError) as refused:
        open_folder(tmp_path, create=True)

    assert refused.value.message == f"{tmp_path} is in use by process {os.getpid()}; stop it first"


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    open_folder(tmp_path, create=True).close()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(RefusedError, match=f"process {holder.pid}"):
            open_folder(tmp_path, create=False)
        holder.kill()
    open_folder(tmp_path, create=False).close()


def test_closing_twice_is_fine_and_using_it_then_is_an_error(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, create=True)
    folder.close()
    folder.close()

    with pytest.raises(StorageError, match="closed already"):
        folder.record_log.append([commit("g", 0, 1)], 1)


def test_taking_the_lock_does_not_look_like_serving(tmp_path: Path) -> None:
    open_folder(tmp_path, create=True).close()
    os.utime(tmp_path / LOCK_FILE, (1_000, 1_000))
    with open_folder(tmp_path, create=False) as folder:
        assert folder.last_alive_ms == 1_000_000
    with open_folder(tmp_path, create=False) as folder:
        assert folder.last_alive_ms == 1_000_000
        folder.start_maintenance(lambda: 0)
    with open_folder(tmp_path, create=False) as folder:
        assert folder.last_alive_ms is not None
        assert folder.last_alive_ms > 1_000_000


def database_of(log: object) -> Database:
    """The file behind a log: a full disk, for one, cannot be had otherwise."""
    found = vars(log)["_database"]
    assert isinstance(found, Database)
    return found


def raised(path: Path, *, create: bool = False) -> KgctlError:
    with pytest.raises(KgctlError) as error:
        open_folder(path, create=create)
    assert "\n" not in error.value.message
    assert str(path) in error.value.message
    return error.value


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    error = raised(tmp_path / "none")

    assert isinstance(error, NotFoundError)
    assert not (tmp_path / "none").exists()


def test_a_folder_without_data_is_not_found_and_stays_empty(tmp_path: Path) -> None:
    assert isinstance(raised(tmp_path), NotFoundError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("create", [True, False])
def test_a_file_is_no_folder(tmp_path: Path, create: bool) -> None:
    (tmp_path / "file").write_text("")

    assert isinstance(raised(tmp_path / "file", create=create), UsageError)


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert isinstance(raised(tmp_path / "file" / "data", create=True), StorageError)


def test_a_lock_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).mkdir()

    assert "cannot write" in raised(tmp_path, create=True).message


@pytest.mark.parametrize("name", [COORDINATOR_FILE, TOPICS_FILE])
def test_a_damaged_file_is_named_and_the_folder_is_free_again(tmp_path: Path, name: str) -> None:
    open_folder(tmp_path, create=True).close()
    good = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(b"this is no database, and long enough to be looked at " * 100)
    error = raised(tmp_path)
    (tmp_path / name).write_bytes(good)

    assert isinstance(error, StorageError)
    assert name in error.message
    assert "damaged" in error.message
    open_folder(tmp_path, create=False).close()


def test_a_file_damaged_in_the_middle_is_said_when_it_is_read(tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True) as folder:
        folder.record_log.append([commit("g", number, 1) for number in range(2_000)], 1)
    data = bytearray((tmp_path / COORDINATOR_FILE).read_bytes())
    data[8_192:] = b"\xff" * (len(data) - 8_192)
    (tmp_path / COORDINATOR_FILE).write_bytes(data)

    assert "damaged" in raised(tmp_path).message


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / COORDINATOR_FILE)
    connection.execute("CREATE TABLE mine (a)")
    connection.close()

    assert "none of kgctl's" in raised(tmp_path).message


def test_a_folder_of_a_newer_kgctl_is_refused(tmp_path: Path) -> None:
    open_folder(tmp_path, create=True).close()
    connection = sqlite3.connect(tmp_path / COORDINATOR_FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "its header says format 99, kgctl.state says 2" in raised(tmp_path).message
    (tmp_path / STATE_FILE).unlink()
    error = raised(tmp_path)

    assert isinstance(error, UsageError)
    assert "newer kgctl (data format 99, this kgctl reads up to 2)" in error.message


def test_a_full_disk_is_one_line_and_the_log_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True) as folder:
        folder.record_log.append([commit("g", 0, 1)], 1)
        database = database_of(folder.record_log)
        pages = database.value("PRAGMA page_count")
        database.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageError, match="the disk is full"):
            folder.record_log.append([commit("new-name", number, 1) for number in range(5_000)], 2)
        assert len(contents(folder)) == 1
        database.rows("PRAGMA max_page_count = 1000000")
        folder.record_log.append([commit("new-name", 0, 2)], 3)

        assert [record.timestamp_ms for record in contents(folder)] == [1, 3]
        assert list(folder.commit_log.read()) == [entry("g", 0, 1, 1), entry("new-name", 0, 2, 3)]


def test_a_folder_that_may_not_be_written_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    schema = Schema(1, "topics.sql", {})
    Database(path, schema).close()
    database = Database(path, schema)
    database.rows("PRAGMA query_only = ON")
    with pytest.raises(StorageError, match=r"x\.db: cannot write"), database.transaction() as connection:
        connection.execute("INSERT INTO meta VALUES ('a', 1)")
    database.close()


def test_commits_are_flushed_and_topics_are_not(tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True) as folder:
        databases = [database_of(folder.record_log), database_of(folder.topics)]
        modes = [(found.value("PRAGMA journal_mode"), found.value("PRAGMA synchronous")) for found in databases]

    assert modes == [("wal", 2), ("wal", 1)]


def test_what_is_written_in_bulk_is_there_together(tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True) as folder, folder.bulk():
        folder.topics.create_topics([TopicMetadata("t", UUID(int=7), 1)])
        folder.record_log.append([commit("g", 0, 5, member="m")], 1_000)
        folder.record_log.append([commit("g", 0, 6, member="m")], 2_000)
    with open_folder(tmp_path, create=False) as folder:
        assert list(folder.commit_log.read()) == [entry("g", 0, 5, 1_000, member="m"), entry("g", 0, 6, 2_000, member="m")]
        assert list(folder.topics.topics()) == ["t"]


def test_nothing_of_a_bulk_that_failed_is_there(tmp_path: Path) -> None:
    def fail() -> None:
        with open_folder(tmp_path, create=True) as folder, folder.bulk():
            folder.record_log.append([commit("g", 0, 5)], 1_000)
            folder.topics.create_topics([TopicMetadata("t", UUID(int=7), 1)])
            folder.topics.create_topics([TopicMetadata("t", UUID(int=8), 1)])

    with pytest.raises(RefusedError):
        fail()
    with open_folder(tmp_path, create=False) as folder:
        assert (list(folder.record_log.read()), dict(folder.topics.topics())) == ([], {})


def test_time_stands_still_until_the_folder_is_served(tmp_path: Path) -> None:
    with open_folder(tmp_path, create=True) as folder:
        assert folder.settings.frozen_ms() is None
        folder.settings.freeze(5_000)
    with open_folder(tmp_path, create=False) as folder:
        assert folder.settings.frozen_ms() == 5_000
        folder.start_maintenance(lambda: 0)
    with open_folder(tmp_path, create=False) as folder:
        assert folder.settings.frozen_ms() is None


def test_a_flush_of_topics_goes_to_the_device(tmp_path: Path) -> None:
    with closing(open_folder(tmp_path, create=True, offsets_partitions=1)) as folder:
        said: list[str] = []
        folder.topics._database._connected().set_trace_callback(said.append)  # type: ignore[attr-defined]
        folder.topics.flush()

    told = [line for line in said if line.startswith(("PRAGMA synchronous =", "COMMIT"))]
    assert told == ["PRAGMA synchronous = FULL", "COMMIT", "PRAGMA synchronous = 1"]
