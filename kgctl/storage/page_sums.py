"""A CRC-32C of each page of a SQLite file, kept beside it: a start sees at once that nothing in the file was altered.

Pages of a file in WAL mode change when its write-ahead log is moved into it (a checkpoint), at no other time. So the checkpoints
are made here, and what they bring is summed. After a ``kill -9`` a page is either in the log, whose frames have SQLite's own
checksums, or as it was summed. SQLite's file formats: https://sqlite.org/walformat.html, https://sqlite.org/fileformat2.html

The sums prove that a file is whole and never that it is damaged: where they do not fit, or are not there, the file is looked
through. So they need no flush, and losing them loses nothing. Whoever writes another page than SQLite would, while the file is in
use, is found out before a checkpoint covers it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from array import array
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from kgctl.serde.crc32c import crc32c
from kgctl.storage.files import PRIVATE_FILE

SUFFIX = "-sums"
DUE_FRAMES = 1_000
"""A checkpoint is made when so many pages were written, as SQLite makes them (``wal_autocheckpoint``)."""
_MAGIC = 0x6B677331
_READ_BYTES = 1 << 20
_BLOCK = 1_024
"""Sums that are written to the file at one time."""
_LOCK_BYTE = 1 << 30
"""Nothing is ever in the page that has this byte."""
_WORD = 4
_WAL_HEADER_BYTES = 32
"""Words 4 and 5 are the salts of this round of the log."""
_FRAME_HEADER_BYTES = 24
"""Page, pages of the file after a commit (0 within one), salts, checksums; the page follows."""
_FRAMES_AT_A_TIME = 64
_CHANGES_A_LOOK = 24


class PageSums:
    """The sums of one database file. Its owner calls everything but `read` with the lock on writing held."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}{SUFFIX}")
        self.is_trusted = False
        """The sums on disk are kept in step: the file was whole when they were begun."""
        self._database = _File(database)
        self._wal = _File(database.with_name(f"{database.name}-wal"))
        self._page_bytes = 0
        self._sums = array("I")
        """Sum of page N at place N; the magic number at place 0."""
        self._frame_bytes = _FRAME_HEADER_BYTES
        self._frames_read = bytearray()
        self._changes = 0
        self._due = DUE_FRAMES
        self._salts = b""
        self._half_moved: set[int] = set()

    def read(self, connection: sqlite3.Connection) -> bool:
        """Sum the whole file; whether it is what was summed before, which is where the sums go on from."""
        self._page_bytes = int(connection.execute("PRAGMA page_size").fetchone()[0])
        self._frame_bytes = _FRAME_HEADER_BYTES + self._page_bytes
        self._frames_read = bytearray(_FRAMES_AT_A_TIME * self._frame_bytes)
        try:
            known = array("I", self.path.read_bytes())
        except (OSError, ValueError):
            known = array("I")
        with suppress(OSError, IndexError):
            exempt, frames = self._frames()
            if self._move(connection) != frames:
                return False
            self._sums = self._sum_all()
            known.extend([0] * (len(self._sums) - len(known)))
            lock_page = _LOCK_BYTE // self._page_bytes + 1
            for page in exempt | ({lock_page} if lock_page < len(known) else set()):
                known[page] = self._sums[page]
            self.is_trusted = known == self._sums
            if self.is_trusted and exempt:
                self._write(exempt)
        return self.is_trusted

    def trust(self) -> None:
        """The file was looked through and is whole."""
        if not self.is_trusted and self._sums:
            self.is_trusted = True
            self._write(range(len(self._sums)))

    def distrust(self) -> None:
        """Whether the file is whole is to be looked up again at the next opening."""
        self.is_trusted = False
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def move_if_due(self, connection: sqlite3.Connection, changes: int) -> None:
        """After a commit of so many changed rows: move the write-ahead log into the file once it is long enough."""
        self._changes += 1 + changes
        if self._changes < _CHANGES_A_LOOK:
            return
        self._changes = 0
        with suppress(OSError):
            salts = self._wal.read(16, 8)
            if salts != self._salts:
                self._salts, self._due = salts, DUE_FRAMES
            if self._wal.read(_WAL_HEADER_BYTES + (self._due - 1) * self._frame_bytes + 8, 8) == salts:
                self.move(connection)

    def move(self, connection: sqlite3.Connection) -> None:
        """Move the write-ahead log into the file, and sum what it brings."""
        try:
            pages, count = self._frames()
            if self.is_trusted and not self._is_as_summed(pages - self._half_moved):
                self.distrust()
            self._due = count + DUE_FRAMES
            if self._move(connection) != count:  # somebody reads an older state, or the disk is full: the rest comes later
                self._half_moved |= pages
                return
            self._half_moved.clear()
            self._sums.extend([0] * (max(pages, default=0) + 1 - len(self._sums)))
            for page in pages:
                self._sums[page] = crc32c(self._page(page))
            if self.is_trusted:
                self._write(pages)
        except OSError:
            self.distrust()

    def close(self) -> None:
        """Give the files back: after the database was closed, since that drops its locks. Safe to call twice."""
        self._database.close()
        self._wal.close()

    def _frames(self) -> tuple[set[int], int]:
        """The pages in the write-ahead log up to its last commit, and how many frames these are."""
        salts = tuple(array("I", self._wal.read(16, 8)))
        numbers: list[int] = []
        committed = 0
        step = self._frame_bytes // _WORD
        words = memoryview(self._frames_read).cast("I")
        position = _WAL_HEADER_BYTES
        while size := self._wal.read_into(self._frames_read, position):
            place, size_after, *found = (words[at : size // _WORD : step].tolist() for at in range(4))
            count = next((at for at, each in enumerate(zip(*found, strict=False)) if each != salts), len(found[-1]))
            commits = [at for at in range(count) if size_after[at]]
            committed = len(numbers) + commits[-1] + 1 if commits else committed
            numbers += place[:count]
            position += size
            if count < _FRAMES_AT_A_TIME:
                break
        pages = array("I", numbers[:committed])
        if sys.byteorder == "little":
            pages.byteswap()
        return set(pages), committed

    def _move(self, connection: sqlite3.Connection) -> int:
        """Move what can be moved; how many frames that were, or -1 if not all. No failure takes away what is committed."""
        try:
            is_busy, frames, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            return -1
        return int(moved) if not is_busy and frames == moved else -1

    def _is_as_summed(self, pages: Iterable[int]) -> bool:
        """Whether the pages that are about to be replaced are what was written there; new ones are not there yet."""
        return all(crc32c(self._page(page)) == self._sums[page] for page in pages if page < len(self._sums) and self._sums[page])

    def _page(self, page: int) -> bytes:
        return self._database.read((page - 1) * self._page_bytes, self._page_bytes)

    def _sum_all(self) -> array[int]:
        """Sums of all pages, read a megabyte at a time: 0.3 ms each."""
        sums = array("I", [_MAGIC])
        buffer = bytearray(max(_READ_BYTES, self._page_bytes))
        pages = [memoryview(buffer)[start : start + self._page_bytes] for start in range(0, len(buffer), self._page_bytes)]
        position = 0
        while size := self._database.read_into(buffer, position):
            whole, rest = divmod(size, self._page_bytes)
            sums.extend(crc32c(page.tobytes()) for page in pages[:whole])
            if rest:
                sums.append(crc32c(pages[whole][:rest].tobytes()))
            position += size
        return sums

    def _write(self, pages: Collection[int]) -> None:
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
            try:
                for block in sorted({page // _BLOCK for page in (0, *pages)}):
                    start = block * _BLOCK
                    os.pwrite(descriptor, self._sums[start : start + _BLOCK].tobytes(), start * self._sums.itemsize)
                os.ftruncate(descriptor, len(self._sums) * self._sums.itemsize)
            finally:
                os.close(descriptor)
        except OSError:
            self.distrust()


class _File:
    """A file that is read beside SQLite, opened when it is first there and kept open: closing it would drop SQLite's locks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def read(self, position: int, size: int) -> bytes:
        """Read so much, or what there is."""
        descriptor = self._opened()
        return os.pread(descriptor, size, position) if descriptor >= 0 else b""

    def read_into(self, buffer: bytearray, position: int) -> int:
        """Fill the buffer; how much was there."""
        descriptor = self._opened()
        return os.preadv(descriptor, [buffer], position) if descriptor >= 0 else 0

    def close(self) -> None:
        """Safe to call twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _opened(self) -> int:
        if self._descriptor < 0:
            with suppress(FileNotFoundError):
                self._descriptor = os.open(self._path, os.O_RDONLY)
        return self._descriptor
