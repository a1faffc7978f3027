"""The small files of a data folder: its lock, what it last knew outside its databases, JSON texts that are replaced whole.

``kgctl.state`` is how a lost or exchanged database is told from a new folder: it is written after each append, so a database
that ends before it has lost something, and one that ends after it has not (a process died between the two).
"""

from __future__ import annotations

import json
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from kgctl.errors import DamagedError, RefusedError, StorageError
from kgctl.serde.crc32c import crc32c

COORDINATOR_FILE = "coordinator.db"
TOPICS_FILE = "topics.db"
CREDENTIALS_FILE = "credentials.json"
SETTINGS_FILE = "settings.json"
QUOTAS_FILE = "quotas.json"
ACLS_FILE = "acls.json"
OTHER_FILES = ("transactions.json", "group-configs.json", SETTINGS_FILE, CREDENTIALS_FILE, QUOTAS_FILE, ACLS_FILE)
"""What a server keeps beside the databases; any of them shows that the folder was in use."""
STATE_FILE = "kgctl.state"
LOCK_FILE = "kgctl.lock"
ADDRESS_FILE = "kgctl.address"
"""Where the server listens that has the folder open."""
WAY_OUT = (
    "restore the folder from a copy, or start `kgctl serve --data DIR` with --accept-loss, which goes on with what can be read, "
    "or with --begin-anew, which puts the files aside and begins with an empty folder"
)
PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
_OTHERS = 0o077
_STATE_BYTES = 512
"""One sector of a disk, which is written whole or not at all."""


class OnDamage(Enum):
    """What is done when a damaged folder is opened."""

    REFUSE = "refuse"
    ACCEPT_LOSS = "accept-loss"
    BEGIN_ANEW = "begin-anew"


@dataclass(slots=True)
class FolderState:
    """What a folder held when it was last written to.

    ``records`` is how many were ever appended to the record log, ``batches`` the newest batch's number, ``topic_changes`` how
    often topics were made, grown or deleted. ``tables`` has the declared tables of each database (`Database.tables`),
    ``documents`` the revision of each small file, ``boot`` tells one run of the machine from the next.
    """

    folder_id: str
    offsets_partitions: int
    records: int = 0
    topic_changes: int = 0
    batches: int = 0
    tables: dict[str, str] = field(default_factory=dict)
    documents: dict[str, int] = field(default_factory=dict)
    boot: str = ""

    def version_of(self, database: str) -> int:
        """The format that a database had; 0 where it is not known."""
        return int(self.tables.get(database, "0.").partition(".")[0])


_STATE_FIELDS = tuple(item.name for item in fields(FolderState))


@cache
def boot_id() -> str:
    """A name of this run of the machine, empty where the system has none: within it nothing that was written is lost."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
    except OSError:
        return ""


class StateFile:
    """Keeps the newest `FolderState` on disk, in place, without waiting for the disk."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / STATE_FILE
        self._descriptor = -1

    def has_content(self) -> bool:
        """Whether there is such a file, with something in it. Raises `StorageError`."""
        return bool(self._line())

    def read(self) -> FolderState | None:
        """Read the state; None where there is none. Raises `DamagedError` for one that was not written, and `StorageError`."""
        line = self._line()
        if not line:
            return None
        text, _, checksum = line.rpartition(b" ")
        if checksum != _checksum(text):
            raise DamagedError(f"{self.path}: damaged (its checksum is wrong)")
        return FolderState(**{name: value for name, value in json.loads(text).items() if name in _STATE_FIELDS})

    def write(self, state: FolderState) -> None:
        """Replace the state. Raises `StorageError`."""
        text = json.dumps({name: getattr(state, name) for name in _STATE_FIELDS}, separators=(",", ":")).encode()
        line = b"%s %s" % (text, _checksum(text))
        try:
            is_first = self._descriptor < 0
            if is_first:
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
            os.pwrite(self._descriptor, line.ljust(_STATE_BYTES - 1) + b"\n", 0)
            if is_first:  # from now on a power cut leaves it older, not empty
                os.fsync(self._descriptor)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot write: {error.strerror}") from error

    def _line(self) -> bytes:
        try:
            return self.path.read_bytes().rstrip(b" \n\0")
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Flush it and give the file back. Safe to call twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.fsync(descriptor)
            os.close(descriptor)


def _checksum(text: bytes) -> bytes:
    return b"%08x" % crc32c(text)


def traces(folder: Path, *, had_lock: bool) -> list[str]:
    """Files that show that the folder was in use before. ``had_lock``: another process has finished opening it."""
    names = [
        *(STATE_FILE, COORDINATOR_FILE, f"{COORDINATOR_FILE}-wal", TOPICS_FILE, f"{TOPICS_FILE}-wal", *OTHER_FILES),
    ]
    return [name for name in names if (folder / name).exists()] + ([LOCK_FILE] if had_lock else [])


def read_json(path: Path) -> Any:
    """What `write_json` wrote, None where there is no file. Raises `DamagedError` and `StorageError`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path}: damaged ({error})") from error


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Replace the whole file, for the owner's eyes only; it is on disk when this returns. Raises `StorageError`."""
    temporary = path.with_suffix(".tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"{path}: cannot write: {error.strerror}") from error


class Documents:
    """The small files of a folder, each with a checksum and a revision, so that one that is altered, lost or older is noticed.

    Without a folder they are kept in memory. ``on_write`` is called after each write, ``revisions`` are what it is to remember.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._kept: dict[str, Any] = {}
        self.revisions: dict[str, int] = {}
        self.on_write: Callable[[], None] = lambda: None

    def problems(self, expected: Mapping[str, int]) -> Iterator[tuple[Path, str]]:
        """Read all that is there; each file that is not what was written (of these revisions at least), and what is wrong."""
        assert self._folder is not None
        for name in OTHER_FILES:
            path = self._folder / name
            try:
                problem = self._read(path, expected.get(name, 0))
            except DamagedError as error:
                problem = error.message
            if problem:
                yield path, problem

    def read(self, name: str) -> Any:
        """What was last written under this name, or None."""
        return self._kept.get(name)

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        """Replace what is there; it is on disk when this returns. Raises `StorageError`."""
        if self._folder is not None:
            revision = self.revisions.get(name, 0) + 1
            body = {"revision": revision, "data": data}
            write_json(self._folder / name, {**body, "checksum": _checksum(_canonical(body)).decode()})
            self.revisions[name] = revision
        self._kept[name] = data
        self.on_write()

    def _read(self, path: Path, expected: int) -> str:
        """Take a file in; what is wrong with it, "" if it is whole. That of an older kgctl has neither checksum nor revision."""
        found = read_json(path)
        revision = 0
        if isinstance(found, dict) and found.keys() == {"revision", "data", "checksum"}:
            revision, checksum = found["revision"], found.pop("checksum")
            if checksum != _checksum(_canonical(found)).decode():
                return f"{path}: damaged (its checksum is wrong)"
            found = found["data"]
        if found is None and not expected:
            return ""
        if revision < expected:
            state = "missing" if found is None else f"at revision {revision}"
            return f"{path}: damaged: it is {state}, revision {expected} was written"
        self._kept[path.name], self.revisions[path.name] = found, revision
        return "" if isinstance(found, dict) else f"{path}: damaged (no JSON object)"


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def make_private(path: Path) -> None:
    """Make an empty file that only its owner can read, unless there is one. Raises `StorageError`."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE))
    except OSError as error:
        raise StorageError(f"{path}: cannot write: {error.strerror}") from error


_OWN = re.compile(
    r"(coordinator|topics)\.db(-wal|-shm)?|kgctl\.\w+|(transactions|group-configs|settings|credentials|quotas|acls)\.json(\.damaged)?|damaged-\d+"
)


def keep_private(folder: Path) -> None:
    """Leave the rights on kgctl's files to their owner, and on the folder where it holds nothing else: a copy has the umask's."""
    with suppress(OSError):  # another user's folder stays as it is; opening its files tells whether they can be written
        entries = list(folder.iterdir())
        own = [path for path in entries if _OWN.fullmatch(path.name)]
        for path in own if len(own) < len(entries) else [folder, *own]:
            if (mode := path.stat().st_mode) & _OTHERS:
                path.chmod(mode & PRIVATE_FOLDER)


_NEW = b"new\n"


class FolderLock:
    """An exclusive lock on a folder, held until `release` or the end of the process, however it ends.

    The file stays behind; what counts is the operating system's lock on it. It holds the process id of its owner, and its time of
    change is when a server was last known to run on the folder (`touch`): taking the lock does not change it.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock. Raises `kgctl.errors.RefusedError` naming folder and owner where another process has it."""
        self._path = folder / LOCK_FILE
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except OSError as error:
            raise StorageError(f"{folder}: cannot write: {error.strerror}") from error
        try:
            _lock(self._descriptor)
        except OSError:
            owner = os.read(self._descriptor, 32).decode("ascii", "replace").partition("\n")[0]
            os.close(self._descriptor)
            raise RefusedError(f"{folder} is in use by process {owner or 'unknown'}; stop it first") from None
        _held.add(self)
        before = os.fstat(self._descriptor)
        content = os.read(self._descriptor, 64)
        self.was_opened = bool(content) and not content.endswith(_NEW)
        """Whether a process has had the folder open before, which is more than having begun to make it."""
        self.last_alive_ms = before.st_mtime_ns // 1_000_000
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, b"%d\n%s" % (os.getpid(), b"" if self.was_opened else _NEW), 0)
            os.utime(self._path, ns=(before.st_atime_ns, before.st_mtime_ns))
        except OSError as error:
            self.release()
            raise StorageError(f"{folder}: cannot write: {error.strerror}") from error

    def opened(self) -> None:
        """The folder is made, or was whole: from now on it is no new one."""
        if self._descriptor >= 0 and not self.was_opened:
            before = os.fstat(self._descriptor)
            os.ftruncate(self._descriptor, len(f"{os.getpid()}\n"))
            os.utime(self._path, ns=(before.st_atime_ns, before.st_mtime_ns))
            self.was_opened = True

    def touch(self) -> None:
        """Mark the folder as used by a running server."""
        if self._descriptor >= 0:
            os.utime(self._path)

    def release(self) -> None:
        """Give the lock back. Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """In a process that was forked off: the lock is its parent's, and must not outlive that."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)


def is_in_use(folder: Path) -> bool:
    """Whether some process has the folder open just now. Nothing is changed."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY)
    except OSError:
        return False
    try:
        _lock_shared(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


if sys.platform == "win32":  # pragma: no cover - other systems
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # beyond the process id, which others must be able to read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

    _lock_shared = _lock

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _lock_shared(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
