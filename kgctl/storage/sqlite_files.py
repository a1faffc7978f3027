"""Opening the databases of a data folder: as their owner, who tells damage from a new folder, and from outside for reading.

Each database has the folder's id, and ``kgctl.state`` what they held at the last write. A database that is missing, empty, of
another folder, or that ends before what was written to it is damaged; `OnDamage` says what then happens.

`BulkReader` reads columns, not objects, without a lock, and writes nothing, also while a server writes. What is read is what was
committed when its page was read. A server's compaction may remove older records meanwhile, as Kafka's does.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from crc32c import crc32c

from kgctl.errors import DamagedError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.storage.files import (
    COORDINATOR_FILE,
    LOCK_FILE,
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
    is_in_use,
    traces,
)
from kgctl.storage.record_log import MAX_PARTITIONS, CommitEntry, Compactor
from kgctl.storage.sqlite import (
    COORDINATOR,
    TOPICS,
    DamagedRow,
    Database,
    Schema,
    check_readable,
    check_whole,
    is_damage,
)
from kgctl.storage.sqlite_logs import (
    SqliteCommitLog,
    SqliteCompactionTarget,
    SqliteRecordLog,
    damaged_commits,
    damaged_records,
    stored_record,
)
from kgctl.storage.sqlite_topics import CHANGES, SqliteTopicStore, damaged_batches, damaged_topics

FOLDER_ID = "folder_id"
SETTINGS = ("broker_properties", "frozen_ms")
log = logging.getLogger(__name__)


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
        """One transaction of each database around everything inside."""
        with self._coordinator.transaction(), self._topics.transaction():
            yield
        self._write_state()

    def _write_state(self) -> None:
        """What was written is durable already: a state that falls behind it asks for less at the next start."""
        try:
            self._state.write(self.now())
        except StorageError as error:
            log.warning("%s", error)

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
        """See `kgctl.storage.record_log.RecordLog`."""
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
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise DamagedError(f"{folder}: damaged: a value in it is none that was written ({error})") from error


def _open(folder: Path, offsets_partitions: int, *, new_id: Callable[[], str], on_damage: OnDamage, had_lock: bool) -> OpenFiles:
    found = traces(folder, had_lock=had_lock)
    _require_database(folder, COORDINATOR_FILE, found, may_be_made=False)
    with ExitStack() as opened:
        state = StateFile(folder)
        opened.callback(state.close)
        expected = _expected(state, on_damage)
        versions = {name: 0 if expected is None else expected.version_of(name) for name in (COORDINATOR_FILE, TOPICS_FILE)}
        coordinator = Database(folder / COORDINATOR_FILE, COORDINATOR, expected_version=versions[COORDINATOR_FILE])
        opened.callback(coordinator.close)
        _require_database(folder, TOPICS_FILE, found, may_be_made=on_damage is OnDamage.ACCEPT_LOSS)
        topics = Database(folder / TOPICS_FILE, TOPICS, synchronous="NORMAL", expected_version=versions[TOPICS_FILE])
        opened.callback(topics.close)
        _check_tables(expected, coordinator, topics)
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


def _check_state(folder: Path, now: FolderState, expected: FolderState | None, *, had_state: bool, on_damage: OnDamage) -> None:
    """Compare the databases with what the state file says was written."""
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


class RecordColumns(NamedTuple):
    """Records of one partition, one entry each, by offset.

    ``producer_id`` and ``producer_epoch`` are None outside of transactions, ``commits`` for all but the markers.
    """

    offset: Sequence[int]
    timestamp_ms: Sequence[int]
    key: Sequence[bytes | None]
    value: Sequence[bytes | None]
    producer_id: Sequence[int | None]
    producer_epoch: Sequence[int | None]
    commits: Sequence[int | None]


class LogEndColumns(NamedTuple):
    """Log ends of topics over time: the end offset that a partition had once its records up to ``timestamp_ms`` were there."""

    topic: Sequence[str]
    partition: Sequence[int]
    timestamp_ms: Sequence[int]
    log_end_offset: Sequence[int]


class LogBound(NamedTuple):
    """Where the log of one partition starts and ends."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int


class BulkReader:
    """Reads one data folder in bulk. ``with`` closes it."""

    def __init__(self, path: Path) -> None:
        """Raises `NotFoundError` (no folder), `UsageError` (of a newer kgctl), `DamagedError`, `StorageError` (not readable)."""
        try:
            if not path.exists():
                raise NotFoundError(f"no data folder at {path}")
            if not path.is_dir():
                raise UsageError(f"{path} is not a folder")
            if not (path / COORDINATOR_FILE).exists():
                if found := traces(path, had_lock=(path / LOCK_FILE).exists()):
                    raise DamagedError(f"{path}: damaged: {COORDINATOR_FILE} is missing, though {', '.join(found)} is there")
                raise NotFoundError(f"{path} holds no data of kgctl ({COORDINATOR_FILE} is not there)")
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error
        self.path = path
        self._files = SqliteBulk(path / COORDINATOR_FILE, path / TOPICS_FILE)

    def partitions(self) -> Sequence[int]:
        """The partitions of ``__consumer_offsets`` that have records, ascending."""
        return self._files.partitions()

    def records(self, partition: int, from_offset: int = 0, *, page_rows: int = 10_000) -> Iterator[RecordColumns]:
        """The records of one partition, a page at a time."""
        return self._files.records(partition, from_offset, page_rows)

    def log_ends(self, every_ms: int) -> LogEndColumns:
        """Each partition's log end over time, at most one entry in ``every_ms``, by topic, partition and time."""
        return self._files.log_ends(every_ms)

    def log_bounds(self) -> Sequence[LogBound]:
        """Return the start and end of all partitions' logs, now."""
        return self._files.log_bounds()

    def commits(
        self, groups: Sequence[str] = (), *, since_ms: int | None = None, until_ms: int | None = None
    ) -> Iterator[CommitEntry]:
        """The commit log in the order of writing, of these groups or of all."""
        wanted = set(groups)
        only = groups[0] if len(groups) == 1 else None
        entries = self._files.commit_log().read(only, since_ms=since_ms, until_ms=until_ms)
        return (entry for entry in entries if not wanted or entry.group in wanted)

    def committing_groups(self) -> Sequence[str]:
        """Return the groups of the commit log, sorted."""
        return self._files.commit_log().groups()

    def offsets_at(self, group: str, timestamp_ms: int) -> Sequence[CommitEntry]:
        """What the group had committed at that moment, by partition."""
        return list(self._files.commit_log().offsets_at(group, timestamp_ms).values())

    def as_of_ms(self, now_ms: int) -> int:
        """The moment that the folder shows: ``now_ms`` while a process has it open, else the time of the last thing in it.

        A simulation's folder has a time of its own, which has nothing to do with that of the wall.
        """
        frozen = self._files.setting("frozen_ms")
        if frozen:
            return int(frozen)
        return now_ms if is_in_use(self.path) else self._files.last_ms() or now_ms

    def close(self) -> None:
        """Safe to call twice."""
        self._files.close()

    def __enter__(self) -> BulkReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_RECORDS = """SELECT "partition", "offset", timestamp_ms, "key", value, producer_id, producer_epoch, "commits",
                     coordinator_epoch, {crc}, member_id
              FROM record WHERE "partition" = ? AND "offset" >= ? ORDER BY "offset" LIMIT ?"""
_CHECKSUMS_SINCE = 2
_LOG_ENDS = """SELECT t.name, b."partition", max(b.max_timestamp_ms), max(b.last_offset) + 1
               FROM batch b JOIN topic t ON t.id = b.topic
               GROUP BY t.name, b."partition", b.max_timestamp_ms / ?
               ORDER BY t.name, b."partition", max(b.max_timestamp_ms)"""
_ENDS = """SELECT topic, "partition", max(last_offset) + 1 FROM batch GROUP BY topic, "partition" """


class SqliteBulk:
    """Reads the two files of a data folder."""

    def __init__(self, coordinator: Path, topics: Path) -> None:
        self._coordinator = _ReadOnly(coordinator, COORDINATOR)
        self._topics = _ReadOnly(topics, TOPICS) if topics.exists() else None
        for damaged in () if self._topics is None else damaged_topics(self._topics, has_checksums=self._topics.version > 2):
            raise DamagedError(damaged.message)

    def partitions(self) -> Sequence[int]:
        """Those with records; found by leaps over the index, not by reading it."""
        found: list[int] = []
        while rows := self._coordinator.rows(
            """SELECT min("partition") FROM record WHERE "partition" > ?""", (found[-1] if found else -1,)
        ):
            if rows[0][0] is None:
                break
            found.append(rows[0][0])
        return found

    def records(self, partition: int, from_offset: int, page_rows: int) -> Iterator[RecordColumns]:
        """Yield a partition's records, a page at a time."""
        statement = _RECORDS.format(crc="crc" if self._coordinator.version >= _CHECKSUMS_SINCE else "NULL")
        while rows := self._coordinator.rows(statement, (partition, from_offset, page_rows)):
            for row in rows:
                stored_record(self._coordinator.path, row)  # raises where its checksum is wrong
            _, offset, time, key, value, producer_id, epoch, commits, *_ = zip(*rows, strict=True)
            epochs = [None if producer is None else each for producer, each in zip(producer_id, epoch, strict=True)]
            yield RecordColumns(offset, time, key, value, producer_id, epochs, commits)
            from_offset = offset[-1] + 1

    def log_ends(self, every_ms: int) -> LogEndColumns:
        rows = self._topics.rows(_LOG_ENDS, (every_ms,)) if self._topics else []
        return LogEndColumns(*zip(*rows, strict=True)) if rows else LogEndColumns((), (), (), ())

    def log_bounds(self) -> Sequence[LogBound]:
        if self._topics is None:
            return []
        ends = {row[:2]: row[2] for row in self._topics.rows(_ENDS)}
        starts = {row[:2]: row[2] for row in self._topics.rows("""SELECT topic, "partition", "offset" FROM log_start""")}
        statement = "SELECT id, name, partition_count FROM topic WHERE partition_count <= ? ORDER BY name"
        topics = self._topics.rows(statement, (MAX_PARTITIONS,))
        return [
            LogBound(name, partition, starts.get((number, partition), 0), ends.get((number, partition), 0))
            for number, name, count in topics
            for partition in range(count)
        ]

    def last_ms(self) -> int | None:
        """Return the newest time of a record or a batch."""
        times = [self._coordinator.rows("SELECT max(timestamp_ms) FROM record")[0][0]]
        if self._topics is not None:
            times.append(self._topics.rows("SELECT max(max_timestamp_ms) FROM batch")[0][0])
        return max((time for time in times if time is not None), default=None)

    def commit_log(self) -> SqliteCommitLog:
        return SqliteCommitLog(self._coordinator, has_checksums=self._coordinator.version >= _CHECKSUMS_SINCE)

    def setting(self, name: str) -> str | None:
        """Return a named text, or None."""
        rows = self._coordinator.rows("SELECT value FROM meta WHERE name = ?", (f"setting.{name}",))
        return checked_setting(self._coordinator.path, name, rows[0][0]) if rows else None

    def close(self) -> None:
        self._coordinator.close()
        if self._topics is not None:
            self._topics.close()


class _ReadOnly:
    """A connection that cannot write. A folder that this user may not write to is read all the same."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path = path
        with self._translated():
            self._connection = _connect(path)
        try:
            application_id, self.version = self._pragma("application_id"), self._pragma("user_version")
            check_readable(path, schema, application_id=application_id, version=self.version)
            check_whole(path, self.rows)
        except BaseException:
            self.close()
            raise

    def rows(self, statement: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._translated():
            return self._connection.execute(statement, arguments).fetchall()

    def close(self) -> None:
        """Safe to call twice."""
        self._connection.close()

    def _pragma(self, name: str) -> int:
        return int(self.rows(f"PRAGMA {name}")[0][0])

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            kind = DamagedError if is_damage(error) else StorageError
            raise kind(f"{self.path}: cannot be read: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    """With ``immutable`` where the folder cannot be written to and no writer has left its files: SQLite needs them otherwise."""
    name = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(name, uri=True, timeout=30, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError:
        connection.close()
        if path.with_name(f"{path.name}-wal").exists():
            raise
        connection = sqlite3.connect(f"{name}&immutable=1", uri=True, isolation_level=None)
    return connection
