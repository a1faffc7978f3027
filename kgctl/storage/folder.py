"""Where an embedded coordinator's data lives: a data folder, its twin in memory, or a store of offsets alone.

A data folder keeps groups whole, as a broker does, and a running coordinator is made of its record log. An `OffsetStorage` keeps
committed offsets only, for coordinators that live inside another system and use its store: four methods, one's own or these two.

::

    DIR/kgctl.lock        who has the folder open; one process at a time
    DIR/coordinator.db    the record log (Kafka's own bytes) and the commit log (the audit); flushed at each commit
    DIR/topics.db         topics and their records
    DIR/kgctl.state       what the databases held at the last write, so that a lost or exchanged one is noticed
"""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable
from uuid import uuid4

from kgctl.arguments import checked
from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import DamagedError, NotFoundError, StorageError, UsageError
from kgctl.model.groups import MetadataImage, TopicPartition
from kgctl.model.requests import UpdateGroupConfig
from kgctl.model.values import frozen_in_order
from kgctl.serde.coordinator_records import RecordDecodeError
from kgctl.storage.files import (
    COORDINATOR_FILE,
    LOCK_FILE,
    PRIVATE_FOLDER,
    WAY_OUT,
    Documents,
    FolderLock,
    OnDamage,
    keep_private,
    make_private,
    traces,
)
from kgctl.storage.memory import MemoryRecordLog, MemoryTopicStore
from kgctl.storage.record_log import DEFAULT_OFFSETS_PARTITIONS, RecordLog, StoredRecord, TopicStore, records_of_groups

if TYPE_CHECKING:
    from kgctl.storage.sqlite_logs import SqliteCommitLog


class Compacting(Protocol):
    """A log that can be compacted in small steps (`kgctl.storage.record_log.RecordLog`), on files of its own."""

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool: ...
    def close(self) -> None: ...


OnFound = Callable[[DamagedError], None]
"""Told of damage that is found while a folder is in use."""


class FolderCheck(Protocol):
    """A look through a database that goes on while it is in use."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Maintenance(threading.Thread):
    """Compacts step by step, resting between steps so that commits go first, and touches the folder's lock now and then.

    ``open_log`` is called in the thread and gives a connection of its own, so that only single steps stand in a commit's way.
    """

    _REST_S = 0.01

    def __init__(
        self,
        open_log: Callable[[], Compacting],
        touch: Callable[[], None],
        clock_ms: Callable[[], int],
        interval_s: float,
        on_damage: OnFound = lambda _: None,
    ) -> None:
        super().__init__(name="kgctl-maintenance", daemon=True)
        self._open_log = open_log
        self._touch = touch
        self._clock_ms = clock_ms
        self._interval_s = interval_s
        self._on_damage = on_damage
        self._stopping = threading.Event()

    def run(self) -> None:
        """Until `stop`. A folder that cannot be written just now is tried again later: commits report the same trouble."""
        log: Compacting | None = None
        pause = self._interval_s
        while not self._stopping.wait(pause):
            try:
                log = log or self._open_log()
                self._touch()
                more = log.compact_step(self._clock_ms())
            except DamagedError as error:
                self._on_damage(error)
                break
            except (StorageError, OSError):
                more = False
            pause = self._REST_S if more else self._interval_s
        if log is not None:
            log.close()

    def stop(self) -> None:
        """Stop when the step under way is done."""
        self._stopping.set()
        if self.is_alive():
            self.join()


class DataFolder:
    """The three logs, opened together. `open_folder` and `memory_folder` make one; the caller closes it (or uses ``with``).

    ``path`` is None in memory. ``last_alive_ms`` is when a server was last known to run on it, None in memory.
    """

    def __init__(
        self,
        record_log: RecordLog,
        topics: TopicStore,
        *,
        commit_log: SqliteCommitLog | None = None,
        path: Path | None = None,
        folder_id: str = "",
        lock: FolderLock | None = None,
        settings: FolderSettings | None = None,
        documents: Documents | None = None,
        compaction: Callable[[], Compacting] | None = None,
        checks: Callable[[OnFound], Sequence[FolderCheck]] = lambda _: (),
        bulk: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.record_log = record_log
        self._commit_log = commit_log
        self.topics = topics
        self.path = path
        self.folder_id = folder_id
        self.last_alive_ms = lock.last_alive_ms if lock else None
        self.settings = settings or FolderSettings()
        self.documents = documents or Documents()
        self._lock = lock
        self._compaction = compaction
        self._maintenance: Maintenance | None = None
        self._checks = checks
        self._on_close = ExitStack()
        self._bulk = bulk

    @property
    def commit_log(self) -> SqliteCommitLog:
        """Who committed what when. A folder in memory has none."""
        assert self._commit_log is not None
        return self._commit_log

    def start_maintenance(
        self, clock_ms: Callable[[], int], *, interval_s: float = 2.0, on_damage: OnFound = lambda _: None
    ) -> None:
        """For a server: compact in a thread, and say in the folder that it is being served, from now on until `close`.

        ``clock_ms`` tells the wall clock. Databases that were too large to be looked through when they were opened are looked
        through now, in threads that call ``on_damage``, as compaction does where it meets a record that is damaged.
        """
        self.settings.freeze(None)
        if self._maintenance is None and self._compaction is not None:
            touch = self._lock.touch if self._lock else lambda: None
            self._maintenance = Maintenance(self._compaction, touch, clock_ms, interval_s, on_damage)
            self._maintenance.start()
            for check in self._checks(on_damage):
                self._on_close.callback(check.stop)
                check.start()

    def bulk(self) -> AbstractContextManager[None]:
        """For many changes at once: what is written inside is flushed at the end, all of it or nothing.

        After an error the folder is good for nothing but `close`.
        """
        return self._bulk()

    def callback_on_close(self, callback: Callable[[], object]) -> None:
        """Have `close` call this; the last one given is called first."""
        self._on_close.callback(callback)

    def close(self) -> None:
        """Stop maintenance, close the files, let the folder go. Safe to call twice."""
        maintenance, self._maintenance = self._maintenance, None
        if maintenance is not None:
            maintenance.stop()
            if self._lock:
                self._lock.touch()
        self._on_close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class FolderSettings:
    """Named texts kept in the folder: the broker's configuration, so that the embedded admin works with the server's."""

    def __init__(self, read: Callable[[str], str | None] | None = None, write: Callable[[str, str], None] | None = None) -> None:
        self._kept: dict[str, str] = {}
        self._read = read or self._kept.get
        self._write = write or self._kept.__setitem__

    def broker_properties(self) -> Mapping[str, str]:
        """The broker configs, by Kafka's names, that the folder was last served with."""
        return dict(json.loads(self._read("broker_properties") or "{}"))

    def set_broker_properties(self, properties: Mapping[str, str]) -> None:
        """Keep the broker configs that the folder is served with."""
        self._write("broker_properties", json.dumps(dict(sorted(properties.items()))))

    def frozen_ms(self) -> int | None:
        """The moment at which the folder's time stands still, as a simulation left it; None: it runs on."""
        found = self._read("frozen_ms")
        return int(found) if found else None

    def freeze(self, now_ms: int | None) -> None:
        """Let the folder's time stand still at this moment until it is served; None: let it run."""
        if self.frozen_ms() != now_ms:
            self._write("frozen_ms", "" if now_ms is None else str(now_ms))


def memory_folder(offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS) -> DataFolder:
    """Return a folder in memory, gone when the process ends."""
    record_log = MemoryRecordLog(offsets_partitions)
    return DataFolder(record_log, MemoryTopicStore(), compaction=lambda: record_log)


def open_folder(
    path: Path,
    *,
    create: bool,
    offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS,
    on_damage: OnDamage = OnDamage.REFUSE,
) -> DataFolder:
    """Open the folder, which nobody else may have open; with ``create``, make it where it is not there.

    ``offsets_partitions`` counts for a new folder only. Raises `kgctl.errors.NotFoundError` (not there), `RefusedError` (in
    use, with the process's id), `UsageError` (written by a newer kgctl, not a folder) or `StorageError` (damaged, not writable).
    """
    from kgctl.storage.sqlite_files import open_files

    _require_folder(path, create=create)
    lock = FolderLock(path)
    keep_private(path)
    with ExitStack() as opened:
        opened.callback(lock.release)
        files = open_files(path, offsets_partitions, new_id=_new_id, on_damage=on_damage, had_lock=lock.was_opened)
        lock.opened()
        folder = DataFolder(
            files.record_log,
            files.topics,
            commit_log=files.commit_log,
            path=path,
            folder_id=files.folder_id,
            lock=lock,
            settings=FolderSettings(files.read_setting, files.write_setting),
            documents=files.documents,
            compaction=files.compaction,
            checks=files.checks,
            bulk=files.bulk,
        )
        folder.callback_on_close(opened.pop_all().close)
        folder.callback_on_close(files.close)
    return folder


def _new_id() -> str:
    return str(uuid4())


def _require_folder(path: Path, *, create: bool) -> None:
    """Make it, for its owner's eyes only, or see that it is there; what is wrong with its files is found when they are opened."""
    try:
        if create:
            path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        elif not path.exists():
            raise NotFoundError(f"no data folder at {path}")
        elif path.is_dir() and not traces(path, had_lock=(path / LOCK_FILE).exists()):
            raise NotFoundError(f"{path} holds no data of kgctl ({COORDINATOR_FILE} is not there)")
        if not path.is_dir():
            raise UsageError(f"{path} is not a folder")
    except FileExistsError:
        raise UsageError(f"{path} is not a folder") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error


def load_coordinator(
    folder: DataFolder,
    config: CoordinatorConfig,
    new_member_id: Callable[[str], str],
    now_ms: int,
    *,
    partitions: Collection[int] | None = None,
    group_configs: Mapping[str, Mapping[str, str]] | None = None,
) -> GroupCoordinator:
    """The coordinator with the durable state of the folder's record log, or of some of its partitions.

    ``group_configs`` are the settings that groups have of their own: their members' sessions start with those.
    Sessions of members start anew at ``now_ms``; what the coordinator appends at that is appended to the log. Raises
    `kgctl.errors.StorageError` naming partition and offset where a record cannot be read, as Kafka refuses to load such a log.
    """
    coordinator = GroupCoordinator(config, new_member_id, MetadataImage(folder.topics.topics()), now_ms)
    for group_id, settings in (group_configs or {}).items():
        coordinator.handle(UpdateGroupConfig(request_id=0, group_id=group_id, config=settings), now_ms)
    ends: dict[int, int] = {}
    with _without_garbage_collection():
        for stored in _readable(folder):
            ends[stored.partition] = max(ends.get(stored.partition, 0), stored.offset + 1)
            if partitions is None or stored.partition in partitions:
                _replay(coordinator, folder, stored)
    for partition, end in ends.items():
        if folder.record_log.end_offset(partition) != end:  # the log's end is looked up in an index
            raise DamagedError(f"{folder.path}: damaged: partition {partition} ends at {end}, its index says otherwise")
    effects = coordinator.loaded(now_ms)
    folder.record_log.append([effect for effect in effects if isinstance(effect, AppendRecord)], now_ms)
    return coordinator


def written_groups(log: RecordLog, config: CoordinatorConfig, group_ids: Collection[str]) -> GroupCoordinator:
    """What the log has of these groups, as `GroupCoordinator.restore` takes it. From any thread.

    Raises `StorageError`, and `RecordDecodeError` for a record that cannot be read.
    """
    written = GroupCoordinator(config, str)
    for stored in records_of_groups(log, group_ids):
        written.replay(stored.decode(), producer_id=stored.producer_id)
    return written


def _readable(folder: DataFolder) -> Iterator[StoredRecord]:
    try:
        yield from folder.record_log.read_newest()
    except DamagedError as error:
        raise DamagedError(f"{error.message}; {WAY_OUT}") from error


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """A load makes many objects and drops none: looking for garbage meanwhile takes a third of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _replay(coordinator: GroupCoordinator, folder: DataFolder, stored: StoredRecord) -> None:
    try:
        record = stored.decode()
    except RecordDecodeError as error:
        place = f"offset {stored.offset} of partition {stored.partition}"
        raise StorageError(f"{folder.path or 'memory'}: the record at {place} cannot be read: {error}") from error
    coordinator.replay(record, producer_id=stored.producer_id)


@frozen_in_order
class StoredOffset:
    """A committed offset. Times are milliseconds since the epoch; ``expire_timestamp_ms`` is -1 without a limit of its own."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = -1

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for stores that keep JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Return the offset that `as_dict` wrote."""
        return cls(**fields)


Offsets = Mapping[TopicPartition, StoredOffset]
Rows: TypeAlias = list[Any]


@runtime_checkable
class OffsetStorage(Protocol):
    """A store of committed offsets, called by one thread at a time.

    Duty of the implementation: when `save` or `delete` returns, what it was told survives a crash; all of one call or nothing.
    Whatever it raises reaches the caller of the commit as `kgctl.errors.StorageError`.
    """

    def save(self, group_id: str, offsets: Offsets) -> None:
        """Store these; other partitions of the group stay as they are."""
        ...

    def load(self, group_id: str) -> Offsets:
        """Return all offsets of the group; an empty mapping for a group that has none. Offset 0 is an offset."""
        ...

    def delete(self, group_id: str, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Forget these partitions, or the whole group (None). What is not there is no error."""
        ...

    def list(self) -> Iterable[str]:
        """Return the ids of all groups that have offsets."""
        ...


class MemoryOffsetStorage:
    """An `OffsetStorage` that lives as long as its object."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, StoredOffset]] = {}

    @checked()
    def save(self, group_id: str, offsets: Offsets) -> None:
        """See `OffsetStorage.save`."""
        self._groups.setdefault(group_id, {}).update(offsets)

    @checked()
    def load(self, group_id: str) -> Offsets:
        """See `OffsetStorage.load`."""
        return dict(self._groups.get(group_id, {}))

    @checked()
    def delete(self, group_id: str, partitions: Sequence[TopicPartition] | None = None) -> None:
        """See `OffsetStorage.delete`."""
        if partitions is None:
            self._groups.pop(group_id, None)
            return
        kept = self._groups.get(group_id, {})
        for partition in partitions:
            kept.pop(partition, None)
        if not kept:
            self._groups.pop(group_id, None)

    def list(self) -> Iterable[str]:
        """See `OffsetStorage.list`."""
        return sorted(self._groups)


_TABLE = """
CREATE TABLE IF NOT EXISTS offsets (
    group_id TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, committed_offset INTEGER NOT NULL,
    leader_epoch INTEGER NOT NULL, metadata TEXT NOT NULL, commit_timestamp_ms INTEGER NOT NULL,
    expire_timestamp_ms INTEGER NOT NULL, PRIMARY KEY (group_id, topic, partition)
) WITHOUT ROWID
"""


class SqliteOffsetStorage:
    """An `OffsetStorage` in one SQLite file of the owner's, written through to the disk before `save` returns. From any thread.

    Raises:
        StorageError: the file cannot be opened, read or written.
    """

    @checked(not_empty=("path",))
    def __init__(self, path: Path | str) -> None:
        import sqlite3

        self._failures = sqlite3.Error
        self._path = path
        self._lock = threading.Lock()
        if str(path) != ":memory:":
            make_private(Path(path))
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", _TABLE):
                self._database.execute(statement)
        except sqlite3.Error as error:
            if hasattr(self, "_database"):
                self._database.close()
            raise StorageError(f"{path}: {error}") from error

    @checked()
    def save(self, group_id: str, offsets: Offsets) -> None:
        """See `OffsetStorage.save`."""
        rows = [(group_id, *partition, *asdict(stored).values()) for partition, stored in offsets.items()]
        self._write("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    @checked()
    def load(self, group_id: str) -> Offsets:
        """See `OffsetStorage.load`."""
        rows = self._read("SELECT * FROM offsets WHERE group_id = ?", (group_id,))
        return {TopicPartition(topic, partition): StoredOffset(*stored) for _, topic, partition, *stored in rows}

    @checked()
    def delete(self, group_id: str, partitions: Sequence[TopicPartition] | None = None) -> None:
        """See `OffsetStorage.delete`."""
        if partitions is None:
            self._write("DELETE FROM offsets WHERE group_id = ?", [(group_id,)])
        else:
            rows = [(group_id, *partition) for partition in partitions]
            self._write("DELETE FROM offsets WHERE group_id = ? AND topic = ? AND partition = ?", rows)

    def list(self) -> Iterable[str]:
        """See `OffsetStorage.list`."""
        return [group for (group,) in self._read("SELECT DISTINCT group_id FROM offsets ORDER BY group_id", ())]

    def close(self) -> None:
        """Give the file back. Safe to call twice."""
        with self._lock:
            self._database.close()

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany(statement, rows)
                self._database.execute("COMMIT")
            except self._failures as error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise StorageError(f"{self._path}: {error}") from error

    def _read(self, statement: str, values: tuple[Any, ...]) -> Rows:
        with self._lock:
            try:
                return self._database.execute(statement, values).fetchall()
            except self._failures as error:
                raise StorageError(f"{self._path}: {error}") from error
