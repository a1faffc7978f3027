"""Lost, exchanged and altered files of a data folder: told from a new folder, named, and left by a chosen way out."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from kgctl.errors import DamagedError, RefusedError
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.serde.record_batch import Record, build_batch
from kgctl.server.background import BackgroundServer
from kgctl.storage import sqlite, sqlite_files
from kgctl.storage.bulk import BulkReader
from kgctl.storage.files import COORDINATOR_FILE, LOCK_FILE, STATE_FILE, TOPICS_FILE, OnDamage
from kgctl.storage.folder import DataFolder, open_folder
from tests.support import damage
from tests.support.patience import PATIENCE_S
from tests.support.storage import commit, contents

RECORDS = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder that was used and closed."""
    with open_folder(tmp_path / "data", create=True, offsets_partitions=1) as folder:
        fill(folder)
    return tmp_path / "data"


def fill(folder: DataFolder) -> None:
    folder.topics.create_topics([TopicMetadata("t", UUID(int=7), 2)])
    folder.topics.append_batch(TopicPartition("t", 0), build_batch([Record(0, 5, b"k", b"value-of-t")]), 0)
    for number in range(RECORDS):
        folder.record_log.append([commit(f"group-{number}", 0, number)], number)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [Path.unlink, empty], ids=["missing", "empty"])
@pytest.mark.parametrize("name", [COORDINATOR_FILE, TOPICS_FILE])
@pytest.mark.parametrize("create", [True, False])
def test_a_lost_database_is_no_new_folder(path: Path, name: str, harm: Callable[[Path], None], create: bool) -> None:
    harm(path / name)
    with pytest.raises(DamagedError, match=rf"{name} is (missing|empty), though .*kgctl.state.* --begin-anew"):
        open_folder(path, create=create)


@pytest.mark.parametrize("left", [LOCK_FILE, TOPICS_FILE, STATE_FILE, f"{COORDINATOR_FILE}-wal", "transactions.json"])
def test_any_file_that_is_left_shows_that_the_folder_was_used(path: Path, left: str) -> None:
    (path / left).touch()
    for file in path.iterdir():
        if file.name != left:
            file.unlink()
    with pytest.raises(DamagedError, match=f"{COORDINATOR_FILE} is missing, though {left} is there"):
        open_folder(path, create=True)


def test_a_start_that_was_killed_before_the_databases_were_made_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("17\nnew\n")
    with open_folder(tmp_path, create=True) as folder:
        assert contents(folder) == []
    assert "new" not in (tmp_path / LOCK_FILE).read_text()


def test_a_lost_write_ahead_log_is_noticed(tmp_path: Path) -> None:
    """What a killed server leaves, without its newest file."""
    with open_folder(tmp_path / "data", create=True, offsets_partitions=1) as folder:
        folder._bulk  # noqa: B018 - the folder is open: its write-ahead log is not in the database yet
        fill(folder)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
    for name in (COORDINATOR_FILE, TOPICS_FILE):
        shutil.rmtree(tmp_path / "lost", ignore_errors=True)
        shutil.copytree(tmp_path / "copy", tmp_path / "lost")
        (tmp_path / "lost" / f"{name}-wal").unlink()
        with pytest.raises(DamagedError, match=name):
            open_folder(tmp_path / "lost", create=True)
    with open_folder(tmp_path / "copy", create=True) as folder:
        assert len(contents(folder)) == RECORDS


def test_an_older_copy_of_a_database_is_noticed_and_can_be_accepted(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    older = (path / COORDINATOR_FILE).read_bytes()
    with open_folder(path, create=False) as folder:
        folder.record_log.append([commit("later", 0, 1)], 99)
    (path / COORDINATOR_FILE).write_bytes(older)

    with pytest.raises(DamagedError, match=rf"ends at record {RECORDS}, {RECORDS + 1} were written"):
        open_folder(path, create=False)
    with open_folder(path, create=False, on_damage=OnDamage.ACCEPT_LOSS) as folder:
        assert len(contents(folder)) == RECORDS
    assert f"{RECORDS + 1} were written" in caplog.text
    open_folder(path, create=False).close()


def test_databases_of_two_folders_are_not_mixed(path: Path, tmp_path: Path) -> None:
    open_folder(tmp_path / "other", create=True).close()
    shutil.copy(tmp_path / "other" / TOPICS_FILE, path / TOPICS_FILE)
    with pytest.raises(DamagedError, match=f"{COORDINATOR_FILE} and {TOPICS_FILE} are not of the same folder"):
        open_folder(path, create=False)


@pytest.mark.parametrize("what", [b"group-17", b"value-of-t"], ids=["a record", "a batch"])
def test_a_flipped_byte_is_named(path: Path, what: bytes) -> None:
    name = COORDINATOR_FILE if what.startswith(b"group") else TOPICS_FILE
    alter(path / name, what)
    with open_folder(path, create=False) as folder:
        if name == TOPICS_FILE:
            with pytest.raises(DamagedError, match="a batch of t-0 is damaged"):
                folder.topics.read_batches(TopicPartition("t", 0), 0, 1_000)
            return
        with pytest.raises(DamagedError, match="the record at offset 17 of partition 0 is damaged"):
            contents(folder)
        with pytest.raises(DamagedError, match="offset 17 of partition 0"):
            folder.record_log.compact()
    with BulkReader(path) as reader, pytest.raises(DamagedError, match="offset 17 of partition 0"):
        list(reader.records(0))


def test_a_flipped_byte_can_be_given_up(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    alter(path / COORDINATOR_FILE, b"group-17")
    with open_folder(path, create=False, on_damage=OnDamage.ACCEPT_LOSS) as folder:
        assert len(contents(folder)) == RECORDS - 1
    assert "offset 17 of partition 0 is damaged" in caplog.text


def alter(path: Path, what: bytes) -> None:
    """Alter one byte of the first place that has these bytes."""
    data = bytearray(path.read_bytes())
    data[data.index(what) + 1] ^= 0x01
    path.write_bytes(data)


def test_an_altered_entry_of_the_commit_log_is_named(path: Path) -> None:
    with closing(sqlite3.connect(path / COORDINATOR_FILE)) as connection, connection:
        connection.execute('UPDATE commit_entry SET "offset" = 9999 WHERE sequence = 3')
    connection.close()
    with open_folder(path, create=False) as folder, pytest.raises(DamagedError, match="entry 3 of the commit log"):
        list(folder.commit_log.read())


def test_begin_anew_puts_everything_aside(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path / "transactions.json").write_text("{")
    (path / COORDINATOR_FILE).write_bytes(b"no database at all" * 400)
    with open_folder(path, create=True, on_damage=OnDamage.BEGIN_ANEW) as folder:
        assert (contents(folder), dict(folder.topics.topics())) == ([], {})

    assert {file.name for file in (path / "damaged-1").iterdir()} == {
        *(COORDINATOR_FILE, TOPICS_FILE, STATE_FILE, "transactions.json")
    }
    assert "damaged-1" in caplog.text
    open_folder(path, create=False).close()


def test_begin_anew_is_refused_where_nothing_is_damaged(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="is not damaged"):
        open_folder(path, create=True, on_damage=OnDamage.BEGIN_ANEW)
    with open_folder(path, create=False) as folder:
        assert len(contents(folder)) == RECORDS
    open_folder(tmp_path / "new", create=True, on_damage=OnDamage.BEGIN_ANEW).close()


def test_a_folder_of_format_1_is_brought_up_to_now(path: Path) -> None:
    (path / STATE_FILE).unlink()
    for name, changes in (
        (
            COORDINATOR_FILE,
            [
                "ALTER TABLE record DROP COLUMN crc",
                "ALTER TABLE commit_entry DROP COLUMN crc",
                "DELETE FROM meta",
            ],
        ),
        (
            TOPICS_FILE,
            ["DROP TABLE meta", "ALTER TABLE topic DROP COLUMN crc", "ALTER TABLE log_start DROP COLUMN crc"],
        ),
    ):
        with closing(sqlite3.connect(path / name)) as connection, connection:
            for statement in (*changes, "PRAGMA user_version = 1"):
                connection.execute(statement)
        connection.close()
    with BulkReader(path) as reader:
        assert sum(len(page.offset) for page in reader.records(0)) == RECORDS
    with open_folder(path, create=False) as folder:
        folder.record_log.append([commit("now", 0, 1)], 99)
        assert len(contents(folder)) == RECORDS + 1
    with open_folder(path, create=False) as folder:
        assert len(contents(folder)) == RECORDS + 1


def test_a_bulk_that_fails_leaves_the_state_behind_the_database_never_before_it(path: Path) -> None:
    with open_folder(path, create=False) as folder, suppress(ZeroDivisionError), folder.bulk():
        folder.record_log.append([commit("never", 0, 1)], 99)
        raise ZeroDivisionError
    with open_folder(path, create=False) as folder:
        assert len(contents(folder)) == RECORDS


def test_nobody_else_can_read_the_folder(tmp_path: Path) -> None:
    with open_folder(tmp_path / "data", create=True) as folder:
        fill(folder)
        modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "data").iterdir()}

    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert set(modes.values()) == {0o600}


def test_a_copied_folder_becomes_its_owners_alone_and_other_files_in_it_keep_their_rights(tmp_path: Path) -> None:
    with open_folder(tmp_path / "data", create=True):
        pass
    for path in [tmp_path / "data", *(tmp_path / "data").iterdir()]:
        path.chmod(0o755)
    with open_folder(tmp_path / "data", create=True):
        modes = {path.stat().st_mode & 0o777 for path in [tmp_path / "data", *(tmp_path / "data").iterdir()]}
    assert modes <= {0o700, 0o600}

    (tmp_path / "data").chmod(0o755)
    (tmp_path / "data" / "notes.txt").touch(0o644)
    with open_folder(tmp_path / "data", create=True):
        kept = [path.stat().st_mode & 0o777 for path in (tmp_path / "data", tmp_path / "data" / "notes.txt")]
    assert kept == [0o755, 0o644]


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
@pytest.mark.parametrize(("most", "every"), [(12, 997), pytest.param(None, 61, marks=pytest.mark.deep)])
@pytest.mark.timeout(7_200)
def test_whatever_happens_to_a_file_a_start_answers_all_that_was_acknowledged_or_says_damaged(
    tmp_path: Path, killed: bool, most: int | None, every: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = damage.search(tmp_path, killed=killed, every=every, seed=11, most=most)

    assert (tally["FAULT"], capsys.readouterr().out) == (0, "")
    assert tally["damaged"] > 0


HARMS = {
    "a settings file that is gone": partial(damage.delete, name="group-configs.json"),
    "users' keys that were altered": partial(damage.flip, name="credentials.json", position=200, bit=1),
    "a file of transactions from before": None,
}


@pytest.mark.parametrize("what", HARMS)
def test_a_small_file_that_is_lost_or_altered_is_damage(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    folders = damage.prepared(tmp_path, killed=False)
    harm = HARMS[what] or partial(damage.copy, source=folders.older / "transactions.json")
    harm(folders.folder)

    with pytest.raises(DamagedError, match=r"json: damaged.*--accept-loss"):
        open_folder(folders.folder, create=False)
    open_folder(folders.folder, create=False, on_damage=OnDamage.ACCEPT_LOSS).close()
    assert "accepted" in caplog.text
    open_folder(folders.folder, create=False).close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE topic SET partition_count = 3",
        'UPDATE log_start SET "offset" = 5',
        "UPDATE batch SET max_timestamp_ms = 6",
        "UPDATE batch SET last_offset = 7",
        "UPDATE batch SET data = X'0000000000000009' || substr(data, 9)",
        "UPDATE meta SET name = 'topic_change' WHERE name = 'topic_changes'",
        "DROP INDEX batch_place",
    ],
)
def test_what_topics_are_said_to_have_is_checked_at_the_start(path: Path, statement: str) -> None:
    with open_folder(path, create=False) as folder:
        folder.topics.append_batch(TopicPartition("t", 0), build_batch([Record(0, 5, b"k", b"v")]), 0)
        folder.topics.set_log_start(TopicPartition("t", 0), 1)
    with closing(sqlite3.connect(path / TOPICS_FILE)) as connection, connection:
        connection.execute(statement)
    connection.close()

    with pytest.raises(DamagedError, match=r"topics.db: .*damaged.*--begin-anew"):
        open_folder(path, create=False)


def test_a_start_checks_the_newest_record_of_each_key(path: Path) -> None:
    with open_folder(path, create=False) as folder:
        folder.record_log.append([commit("group-0", 0, 77)], 77)
    with closing(sqlite3.connect(path / COORDINATOR_FILE)) as connection, connection:
        connection.execute("UPDATE record SET timestamp_ms = 78 WHERE sequence = 1")  # of which compaction tells
    connection.close()
    with open_folder(path, create=False) as folder:
        assert len(list(folder.record_log.read_newest())) == RECORDS
        with pytest.raises(DamagedError, match="offset 0 of partition 0 is damaged"):
            contents(folder)

    with closing(sqlite3.connect(path / COORDINATOR_FILE)) as connection, connection:
        connection.execute("UPDATE record SET timestamp_ms = 77 WHERE sequence = 7")
    connection.close()
    for _ in range(2):
        with open_folder(path, create=False) as folder, pytest.raises(DamagedError, match="offset 6 of partition 0 is damaged"):
            list(folder.record_log.read_newest())


def read_all(path: Path) -> None:
    with open_folder(path, create=False) as folder:
        list(folder.record_log.read())
        list(folder.commit_log.read())
        folder.topics.read_batches(TopicPartition("t", 0), 0, 100)


@pytest.mark.parametrize("when", ["while it is open", "afterwards"])
@pytest.mark.parametrize("name", [COORDINATOR_FILE, TOPICS_FILE])
def test_what_is_damaged_is_so_at_each_opening(path: Path, name: str, when: str) -> None:
    """A close says of no file that it is whole for having been opened, or written by this process."""

    def harm() -> None:
        data = (path / name).read_bytes()
        at = data.rfind(b"group-7" if name == COORDINATOR_FILE else b"value-of-t")
        (path / name).write_bytes(data[:at] + b"x" + data[at + 1 :])

    with open_folder(path, create=False) as folder:
        folder.record_log.append([commit("group-0", 0, 77)], 77)
        folder.topics.create_topics([TopicMetadata("u", UUID(int=8), 1)])
        for database in (folder.record_log._database, folder.topics._database):  # type: ignore[attr-defined]
            database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if when == "while it is open":
            harm()
    if when == "afterwards":
        harm()
    for _ in range(3):
        with pytest.raises(DamagedError, match="damaged"):
            read_all(path)


def test_a_large_database_is_looked_through_while_it_is_served(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that lacks an entry is what nobody else would notice; the server then ends."""
    monkeypatch.setattr(sqlite, "CHECKED_BYTES", 0)
    with closing(sqlite3.connect(path / COORDINATOR_FILE)) as connection, connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'commit_entry_of_partition'").fetchone()
    connection.close()
    with (path / COORDINATOR_FILE).open("r+b") as file:
        file.seek((page - 1) * damage.PAGE)
        file.write(bytes((10, 0, 0, 0, 0, 16, 0, 0)))  # a leaf without an entry

    with (
        pytest.raises(DamagedError, match=r"coordinator.db: damaged \(.*commit_entry_of_partition.*--begin-anew"),
        BackgroundServer(data=path) as server,
    ):
        server._thread.join(PATIENCE_S)


def test_text_that_is_no_utf8_is_named_by_its_entry(path: Path) -> None:
    with closing(sqlite3.connect(path / COORDINATOR_FILE)) as connection, connection:
        connection.execute("UPDATE commit_entry SET metadata = CAST(X'C1' AS TEXT) WHERE sequence = 3")
    connection.close()

    with open_folder(path, create=False) as folder, pytest.raises(DamagedError, match="entry 3 of the commit log is damaged"):
        list(folder.commit_log.read())
    with BulkReader(path) as reader, pytest.raises(DamagedError, match="entry 3 of the commit log is damaged"):
        list(reader.commits())


def test_a_setting_that_was_altered_is_named(path: Path) -> None:
    with open_folder(path, create=False) as folder:
        folder.settings.freeze(1_234)
    with closing(sqlite3.connect(path / COORDINATOR_FILE)) as connection, connection:
        connection.execute("UPDATE meta SET value = replace(value, '1234', '9234') WHERE name = 'setting.frozen_ms'")
    connection.close()

    with pytest.raises(DamagedError, match="the setting frozen_ms is damaged"):
        open_folder(path, create=False)
    with BulkReader(path) as reader, pytest.raises(DamagedError, match="the setting frozen_ms is damaged"):
        reader.as_of_ms(0)


def test_a_write_ahead_log_of_topics_is_missed_within_a_run_of_the_machine_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut takes the newest records of topics, which is no damage; nothing else does."""
    with open_folder(tmp_path / "data", create=True, offsets_partitions=1) as folder:
        fill(folder)
        folder.topics.append_batch(TopicPartition("t", 0), build_batch([Record(0, 5, b"k", b"v")]), 0)
        database = folder.topics._database  # type: ignore[attr-defined]
        database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        folder.topics.append_batch(TopicPartition("t", 0), build_batch([Record(0, 5, b"k", b"v")]), 0)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
    (tmp_path / "copy" / f"{TOPICS_FILE}-wal").unlink()

    with pytest.raises(DamagedError, match=r"topics\.db ends at batch 2, 3 were written"):
        open_folder(tmp_path / "copy", create=False)
    monkeypatch.setattr(sqlite_files, "boot_id", lambda: "another")
    open_folder(tmp_path / "copy", create=False).close()
    assert "as after a power cut" in caplog.text


@pytest.mark.parametrize("content", [b"recordz", bytes(512), b"", None])
def test_a_state_that_is_altered_or_gone_is_damage(path: Path, content: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing else tells whether a write-ahead log is missing."""
    state = path / STATE_FILE
    whole = state.read_bytes()
    state.unlink()
    if content is not None:
        state.write_bytes(whole.replace(b"records", content) if content == b"recordz" else content)
    with pytest.raises(DamagedError, match=r"kgctl.state(: damaged| is gone).*--accept-loss"):
        open_folder(path, create=False)
    open_folder(path, create=False, on_damage=OnDamage.ACCEPT_LOSS).close()

    assert "accepted" in caplog.text
    assert state.read_bytes() == whole
