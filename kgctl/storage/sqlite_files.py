"""Opening the databases of a data folder as their owner, who tells damage from a new folder.

Each database has the folder's id, and ``kgctl.state`` what they held at the last write. A database that is missing, empty, of
another folder, or that ends before what was written to it is damaged; `OnDamage` says what then happens.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kgctl.errors import DamagedError, RefusedError, StorageError
from kgctl.serde.crc32c import crc32c
from kgctl.storage.files import (
    COORDINATOR_FILE,
    OTHER_FILES,
    PRIVATE_FOLDER,
    STATE_FILE,
    TOPICS_FILE,
    WAY_OUT,
    Documents,
    FolderState,
    OnDamage,
    StateFile,
    boot_id,
    traces,
)
from kgctl.storage.record_log import Compactor
from kgctl.storage.sqlite import COORDINATOR, TOPICS, DamagedRow, Database, WholeCheck
from kgctl.storage.sqlite_logs import SqliteCommitLog, SqliteCompactionTarget, SqliteRecordLog, damaged_commits, damaged_records
from kgctl.storage.sqlite_topics import CHANGES, SqliteTopicStore, damaged_batches, damaged_topics

FOLDER_ID = "folder_id"
SETTINGS = ("broker_properties", "frozen_ms")
log = logging.getLogger(__name__)


_NEVER_WRITTEN = (TypeError, ValueError, KeyError, OverflowError)
"""What a value that is of no type or of no length that was ever written leads to."""


class OpenFiles:
    """The two databases and the logs in them. ``state`` is kept in step with every append and every change of a topic."""

    def __init__(
        self, coordinator: Database, topics: Database, state: StateFile, documents: Documents, offsets_partitions: int
    ) -> None:
        self._coordinator = coordinator
        self._topics = topics
        self._state = state
        self.documents = documents
        self._tables = {COORDINATOR_FILE: coordinator.tables, TOPICS_FILE: topics.tables}
        self.commit_log = SqliteCommitLog(coordinator)
        self.record_log = SqliteRecordLog(coordinator, self.commit_log, offsets_partitions)
        self.topics = SqliteTopicStore(topics)
        self.folder_id = str(coordinator.read_meta(FOLDER_ID))

    def now(self) -> FolderState:
        """Return what the databases hold."""
        counts = self.record_log.appended, self.topics.changes, self.topics.newest_batch
        kept = dict(self.documents.revisions)
        return FolderState(self.folder_id, self.record_log.partition_count, *counts, self._tables, kept, boot_id())

    def keep_state(self) -> None:
        """Have the state file follow every write from now on."""
        self._write_state()
        self.record_log.on_append = self.topics.on_write = self.documents.on_write = self._write_state

    def compaction(self) -> SqliteCompaction:
        """Compaction of the record log on a connection of its own."""
        return SqliteCompaction(self._coordinator)

    def read_setting(self, name: str) -> str | None:
        """Return a named text, or None."""
        found = self._coordinator.read_meta(f"setting.{name}")
        return None if found is None else checked_setting(self._coordinator.path, name, found)

    def write_setting(self, name: str, value: str) -> None:
        """Store a named text."""
        self._coordinator.write_meta(f"setting.{name}", f"{_setting_checksum(name, value)} {value}")

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """Do everything inside in one transaction of each database."""
        with self._coordinator.transaction(), self._topics.transaction():
            yield
        self._write_state()

    def _write_state(self) -> None:
        """What was written is durable already: a state that falls behind it asks for less at the next start."""
        try:
            self._state.write(self.now())
        except StorageError as error:
            log.warning("%s", error)

    def checks(self, on_damage: Callable[[DamagedError], None]) -> list[WholeCheck]:
        """What looks those databases through that are too large for it at their opening; to be started, and stopped."""
        unchecked = [database for database in (self._coordinator, self._topics) if database.is_unchecked]
        return [WholeCheck(database, on_damage) for database in unchecked]

    def close(self) -> None:
        """Close everything."""
        self._coordinator.close()
        self._topics.close()
        self._state.close()


class SqliteCompaction:
    """Compacts the record log of a file that is open elsewhere in this process."""

    def __init__(self, opened: Database) -> None:
        self._database = Database(opened.path, COORDINATOR, beside=opened)
        self._compactor = Compactor(SqliteCompactionTarget(self._database))

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool:
        return self._compactor.step(now_ms, max_records)

    def close(self) -> None:
        self._database.close()


def open_files(
    folder: Path, offsets_partitions: int, *, new_id: Callable[[], str], on_damage: OnDamage, had_lock: bool
) -> OpenFiles:
    """Open both databases, or none; make them where the folder is new.

    Raises `DamagedError` with the way out, unless ``on_damage`` says what to do; `RefusedError` for `OnDamage.BEGIN_ANEW` on a
    folder that is whole; and what `kgctl.storage.sqlite.Database` raises.
    """
    try:
        files = _open_checked(folder, offsets_partitions, new_id=new_id, on_damage=on_damage, had_lock=had_lock)
    except DamagedError as error:
        if on_damage is not OnDamage.BEGIN_ANEW:
            raise DamagedError(f"{error.message}; {WAY_OUT}") from error
        aside = _put_aside(folder)
        log.warning("%s; what was there is in %s now, and the folder is new", error.message, aside)
        return _open(folder, offsets_partitions, new_id=new_id, on_damage=OnDamage.REFUSE, had_lock=False)
    return files


def _open_checked(
    folder: Path, offsets_partitions: int, *, new_id: Callable[[], str], on_damage: OnDamage, had_lock: bool
) -> OpenFiles:
    """See `open_files`. A value that is of no type or of no length that was ever written is damage."""
    try:
        return _open(folder, offsets_partitions, new_id=new_id, on_damage=on_damage, had_lock=had_lock)
    except _NEVER_WRITTEN as error:
        raise DamagedError(f"{folder}: damaged: a value in it is none that was written ({error})") from error


def _open(folder: Path, offsets_partitions: int, *, new_id: Callable[[], str], on_damage: OnDamage, had_lock: bool) -> OpenFiles:
    found = traces(folder, had_lock=had_lock)
    _require_database(folder, COORDINATOR_FILE, found, may_be_made=False)
    with ExitStack() as opened:
        state = StateFile(folder)
        opened.callback(state.close)
        state_is_there = state.has_content()
        expected = _expected(state, on_damage)
        versions = {name: 0 if expected is None else expected.version_of(name) for name in (COORDINATOR_FILE, TOPICS_FILE)}
        coordinator = Database(folder / COORDINATOR_FILE, COORDINATOR, expected_version=versions[COORDINATOR_FILE])
        opened.callback(coordinator.close)
        _require_database(folder, TOPICS_FILE, found, may_be_made=on_damage is OnDamage.ACCEPT_LOSS)
        topics = Database(folder / TOPICS_FILE, TOPICS, synchronous="NORMAL", expected_version=versions[TOPICS_FILE])
        opened.callback(topics.close)
        _check_tables(expected, coordinator, topics)
        had_state = coordinator.read_meta(FOLDER_ID) is not None  # else the folder is an older kgctl's, or new
        _check_ids(folder, _folder_id(coordinator, expected, new_id), topics, expected, on_damage)
        documents = _documents(folder, expected, on_damage)
        for database, names in ((coordinator, _META_NAMES), (topics, {FOLDER_ID, CHANGES})):
            _leave_out(database, _damaged_meta(database, names), on_damage)
        if on_damage is not OnDamage.REFUSE:  # else found when it is read
            _leave_out(coordinator, damaged_records(coordinator), on_damage)
            _leave_out(coordinator, damaged_commits(coordinator), on_damage)
        _leave_out(topics, damaged_topics(topics), on_damage)
        if on_damage is not OnDamage.REFUSE:
            _leave_out(topics, damaged_batches(topics), on_damage)
        files = OpenFiles(coordinator, topics, state, documents, offsets_partitions)
        if had_state and not state_is_there and (had_lock or files.now().records):
            _damage(f"{folder}: damaged: {STATE_FILE} is gone, so what else is missing cannot be told", on_damage)
        if expected is not None:
            _check_state(folder, files.now(), expected, on_damage)
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


def _expected(state: StateFile, on_damage: OnDamage) -> FolderState | None:
    try:
        return state.read()
    except DamagedError as error:
        _damage(error.message, on_damage)
        return None


def _check_tables(expected: FolderState | None, *databases: Database) -> None:
    """The tables are declared as they were. What an older kgctl left has other ones, and says so by its format."""
    for database in databases:
        known, found = "" if expected is None else expected.tables.get(database.path.name, ""), database.tables
        if known and known != found and known.partition(".")[0] == found.partition(".")[0]:
            raise DamagedError(f"{database.path}: damaged: its tables are not declared as they were")


def _documents(folder: Path, expected: FolderState | None, on_damage: OnDamage) -> Documents:
    """The small files as they were written; what is damaged and given up is put aside under another name."""
    documents = Documents(folder)
    for path, problem in documents.problems({} if expected is None else expected.documents):
        _damage(problem, on_damage)
        with suppress(FileNotFoundError):
            path.replace(path.with_name(f"{path.name}.damaged"))
    return documents


def _leave_out(database: Database, rows: Iterable[DamagedRow], on_damage: OnDamage) -> None:
    """Each row is what was written; those that are not are deleted where that is accepted."""
    damaged = list(rows)
    for row in damaged:
        _damage(row.message, on_damage)
    if damaged:
        with database.transaction() as connection:
            for row in damaged:
                connection.execute(f"DELETE FROM {row.table} WHERE {row.condition}", row.key)  # noqa: S608


_META_NAMES = {FOLDER_ID, "offsets_partitions", "cleaned_until", *(f"setting.{name}" for name in SETTINGS)}


def _damaged_meta(database: Database, names: Collection[str]) -> Iterator[DamagedRow]:
    """Named values whose names nobody wrote, and settings with wrong checksums."""
    for name, value in database.rows("SELECT name, value FROM meta"):
        try:
            if name not in names:
                raise DamagedError(f"{database.path}: damaged: a value with the name {name!r}")
            if name.startswith("setting."):
                checked_setting(database.path, name.removeprefix("setting."), value)
        except DamagedError as error:
            yield DamagedRow("meta", "name IS ?", (name,), error.message)


def checked_setting(path: Path, name: str, found: str) -> str:
    """The text of a setting as it was written; one of an older kgctl has no checksum. Raises `DamagedError`."""
    checksum, _, text = str(found).partition(" ")
    if re.fullmatch("crc:[0-9a-f]{8}", checksum) is None:
        return str(found)
    if checksum != _setting_checksum(name, text):
        raise DamagedError(f"{path}: the setting {name} is damaged (its checksum is wrong)")
    return text


def _setting_checksum(name: str, text: str) -> str:
    return f"crc:{crc32c(f'{name}={text}'.encode()):08x}"


def _check_state(folder: Path, now: FolderState, expected: FolderState, on_damage: OnDamage) -> None:
    """Compare the databases with what the state file says was written."""
    if now.offsets_partitions != expected.offsets_partitions:
        counts = f"{now.offsets_partitions} partitions of __consumer_offsets, there were {expected.offsets_partitions}"
        _damage(f"{folder}: damaged: {COORDINATOR_FILE} has {counts}", on_damage)
    if now.records < expected.records:
        counts = f"ends at record {now.records}, {expected.records} were written"
        _damage(f"{folder}: damaged: {COORDINATOR_FILE} {counts} ({COORDINATOR_FILE}-wal lost, or an older copy?)", on_damage)
    if now.topic_changes < expected.topic_changes:
        counts = f"knows {now.topic_changes} changes of topics, there were {expected.topic_changes}"
        _damage(f"{folder}: damaged: {TOPICS_FILE} {counts} ({TOPICS_FILE}-wal lost, or an older copy?)", on_damage)
    elif now.batches < expected.batches and expected.boot and expected.boot == boot_id():
        counts = f"ends at batch {now.batches}, {expected.batches} were written"
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
