"""Opening the databases of a data folder, and telling what is damaged from what is new.

Each database has the folder's id, and ``kgctl.state`` what they held at the last write. A database that is missing, empty, of
another folder, or that ends before what was written to it is damaged; `OnDamage` says what then happens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kgctl.errors import DamagedError, RefusedError, StorageError
from kgctl.storage.compaction import Compactor
from kgctl.storage.files import (
    COORDINATOR_FILE,
    OTHER_FILES,
    PRIVATE_FOLDER,
    STATE_FILE,
    TOPICS_FILE,
    WAY_OUT,
    FolderState,
    OnDamage,
    StateFile,
    traces,
)
from kgctl.storage.sqlite import COORDINATOR, TOPICS, Database
from kgctl.storage.sqlite_logs import SqliteCommitLog, SqliteCompactionTarget, SqliteRecordLog, damaged_records
from kgctl.storage.sqlite_topics import SqliteTopicStore

FOLDER_ID = "folder_id"
log = logging.getLogger(__name__)


class OpenFiles:
    """The two databases and the logs in them. ``state`` is kept in step with every append and every change of a topic."""

    def __init__(self, coordinator: Database, topics: Database, state: StateFile, offsets_partitions: int) -> None:
        self._coordinator = coordinator
        self._topics = topics
        self._state = state
        self.commit_log = SqliteCommitLog(coordinator)
        self.record_log = SqliteRecordLog(coordinator, self.commit_log, offsets_partitions)
        self.topics = SqliteTopicStore(topics)
        self.folder_id = str(coordinator.read_meta(FOLDER_ID))

    def now(self) -> FolderState:
        """What the databases hold."""
        counts = self.record_log.appended, self.topics.changes, self.topics.newest_batch
        return FolderState(self.folder_id, self.record_log.partition_count, *counts)

    def keep_state(self) -> None:
        """From now on the state file follows."""
        self._write_state()
        self.record_log.on_append = self.topics.on_write = self._write_state

    def compaction(self) -> SqliteCompaction:
        """Compaction of the record log on a connection of its own."""
        return SqliteCompaction(self._coordinator)

    def read_setting(self, name: str) -> str | None:
        """A named text, or None."""
        found = self._coordinator.read_meta(f"setting.{name}")
        return None if found is None else str(found)

    def write_setting(self, name: str, value: str) -> None:
        """Keep a named text."""
        self._coordinator.write_meta(f"setting.{name}", value)

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """One transaction of each database around everything inside."""
        with self._coordinator.transaction(), self._topics.transaction():
            yield
        self._write_state()

    def _write_state(self) -> None:
        self._state.write(self.now())

    def close(self) -> None:
        """Close everything."""
        self._coordinator.close()
        self._topics.close()
        self._state.close()


class SqliteCompaction:
    """Compacts the record log of a file that is open elsewhere in this process."""

    def __init__(self, opened: Database) -> None:
        self._database = Database(opened.path, COORDINATOR, write_lock=opened.write_lock)
        self._compactor = Compactor(SqliteCompactionTarget(self._database))

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool:
        """See `kgctl.storage.protocols.RecordLog`."""
        return self._compactor.step(now_ms, max_records)

    def close(self) -> None:
        """Close the connection."""
        self._database.close()


def open_files(
    folder: Path, offsets_partitions: int, *, new_id: Callable[[], str], on_damage: OnDamage, had_lock: bool
) -> OpenFiles:
    """Open both databases, or none; make them where the folder is new.

    Raises `DamagedError` with the way out, unless ``on_damage`` says what to do; `RefusedError` for `OnDamage.BEGIN_ANEW` on a
    folder that is whole; and what `kgctl.storage.sqlite.Database` raises.
    """
    try:
        files = _open(folder, offsets_partitions, new_id=new_id, on_damage=on_damage, had_lock=had_lock)
    except DamagedError as error:
        if on_damage is not OnDamage.BEGIN_ANEW:
            raise DamagedError(f"{error.message}; {WAY_OUT}") from error
        aside = _put_aside(folder)
        log.warning("%s; what was there is in %s now, and the folder is new", error.message, aside)
        return _open(folder, offsets_partitions, new_id=new_id, on_damage=OnDamage.REFUSE, had_lock=False)
    return files


def _open(folder: Path, offsets_partitions: int, *, new_id: Callable[[], str], on_damage: OnDamage, had_lock: bool) -> OpenFiles:
    found = traces(folder, had_lock=had_lock)
    _require_database(folder, COORDINATOR_FILE, found, may_be_made=False)
    with ExitStack() as opened:
        coordinator = Database(folder / COORDINATOR_FILE, COORDINATOR)
        opened.callback(coordinator.close)
        _require_database(folder, TOPICS_FILE, found, may_be_made=on_damage is OnDamage.ACCEPT_LOSS)
        topics = Database(folder / TOPICS_FILE, TOPICS, synchronous="NORMAL")
        opened.callback(topics.close)
        state = StateFile(folder)
        opened.callback(state.close)
        expected = state.read()
        _check_ids(folder, _folder_id(coordinator, expected, new_id), topics, expected, on_damage)
        _check_records(coordinator, on_damage)
        files = OpenFiles(coordinator, topics, state, offsets_partitions)
        _check_state(folder, files.now(), expected, had_state=STATE_FILE in found or not found, on_damage=on_damage)
        if on_damage is OnDamage.BEGIN_ANEW and found:
            raise RefusedError(f"{folder} is not damaged: --begin-anew would put good data aside; start without it")
        files.keep_state()
        opened.pop_all()
    return files


def _require_database(folder: Path, name: str, found: list[str], *, may_be_made: bool) -> None:
    """A database that is missing or empty belongs to a new folder only."""
    path = folder / name
    is_there = path.exists()
    others = [other for other in found if other != name]
    if (is_there and path.stat().st_size > 0) or (not is_there and not others):
        return
    if may_be_made:
        log.warning("%s is %s: it is made anew, without a topic", path, "empty" if is_there else "missing")
        path.with_name(f"{name}-wal").unlink(missing_ok=True)
        return
    beside = f", though {', '.join(others)} {'is' if len(others) == 1 else 'are'} there" if others else ""
    raise DamagedError(f"{folder}: damaged: {name} is {'empty' if is_there else 'missing'}{beside}")


def _folder_id(coordinator: Database, expected: FolderState | None, new_id: Callable[[], str]) -> str:
    """A folder of an older kgctl, or a new one, gets its id here."""
    found = coordinator.read_meta(FOLDER_ID)
    if found is None:
        found = new_id() if expected is None else expected.folder_id
        coordinator.write_meta(FOLDER_ID, found)
    return str(found)


def _check_ids(folder: Path, ours: str, topics: Database, expected: FolderState | None, on_damage: OnDamage) -> None:
    """Both databases and the state belong to one folder."""
    theirs = topics.read_meta(FOLDER_ID)
    wrong = [
        name
        for name, found in ((TOPICS_FILE, theirs), (STATE_FILE, None if expected is None else expected.folder_id))
        if found not in (None, ours)
    ]
    if wrong:
        _damage(f"{folder}: damaged: {COORDINATOR_FILE} and {', '.join(wrong)} are not of the same folder", on_damage)
    if theirs != ours:
        topics.write_meta(FOLDER_ID, ours)


def _check_records(coordinator: Database, on_damage: OnDamage) -> None:
    """For who gives up what is damaged: find it all, and leave it out. Else it is found when it is read."""
    if on_damage is OnDamage.REFUSE:
        return
    damaged = list(damaged_records(coordinator))
    for _, message in damaged:
        _damage(message, on_damage)
    with coordinator.transaction() as connection:
        connection.executemany("DELETE FROM record WHERE sequence = ?", [(sequence,) for sequence, _ in damaged])


def _check_state(folder: Path, now: FolderState, expected: FolderState | None, *, had_state: bool, on_damage: OnDamage) -> None:
    """What was written is there."""
    if expected is None:
        if had_state and now.records:
            log.warning("%s: %s cannot be read; whether something is missing cannot be told", folder, STATE_FILE)
        return
    if now.offsets_partitions != expected.offsets_partitions:
        counts = f"{now.offsets_partitions} partitions of __consumer_offsets, there were {expected.offsets_partitions}"
        _damage(f"{folder}: damaged: {COORDINATOR_FILE} has {counts}", on_damage)
    if now.records < expected.records:
        counts = f"ends at record {now.records}, {expected.records} were written"
        _damage(f"{folder}: damaged: {COORDINATOR_FILE} {counts} ({COORDINATOR_FILE}-wal lost, or an older copy?)", on_damage)
    if now.topic_changes < expected.topic_changes:
        counts = f"knows {now.topic_changes} changes of topics, there were {expected.topic_changes}"
        _damage(f"{folder}: damaged: {TOPICS_FILE} {counts} ({TOPICS_FILE}-wal lost, or an older copy?)", on_damage)
    elif now.batches < expected.batches:
        log.warning(
            "%s: %s ends at batch %d, %d were written: the newest records of topics are lost, as after a power cut",
            *(folder, TOPICS_FILE, now.batches, expected.batches),
        )


def _damage(message: str, on_damage: OnDamage) -> None:
    if on_damage is not OnDamage.ACCEPT_LOSS:
        raise DamagedError(message)
    log.warning("%s; accepted", message)


def _put_aside(folder: Path) -> Path:
    """Move all that a server keeps into a folder of its own inside; nothing is deleted."""
    number = 1
    while (folder / f"damaged-{number}").exists():
        number += 1
    aside = folder / f"damaged-{number}"
    files = [STATE_FILE, *OTHER_FILES]
    files += [f"{name}{suffix}" for name in (COORDINATOR_FILE, TOPICS_FILE) for suffix in ("", "-wal", "-shm")]
    try:
        aside.mkdir(mode=PRIVATE_FOLDER)
        for name in files:
            with suppress(FileNotFoundError):
                (folder / name).rename(aside / name)
    except OSError as error:
        raise StorageError(f"{aside}: cannot write: {error.strerror}") from error
    return aside
