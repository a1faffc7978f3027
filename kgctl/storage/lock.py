"""One process at a time: the lock of a data folder."""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path

from kgctl.errors import RefusedError, StorageError
from kgctl.storage.files import LOCK_FILE, PRIVATE_FILE

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
        """Say that a server is running on the folder."""
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
