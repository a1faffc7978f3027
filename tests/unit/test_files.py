"""Files that commands leave: whole, or not at all."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

import pytest

from kgctl.errors import StorageError
from kgctl.files import write_again, write_new, write_whole


def full(file: BinaryIO) -> None:
    file.write(b"half")
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_cannot_be_written_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with pytest.raises(StorageError, match=r"report.html: No space left on device"):
        write_whole(path, full)
    assert [*tmp_path.iterdir()] == []
    path.write_text("old")
    with pytest.raises(StorageError, match=r"report.html: No space left on device"):
        write_whole(path, full)
    assert ([*tmp_path.iterdir()], path.read_text()) == ([path], "old")


def test_a_private_file_that_is_there_is_replaced_where_that_is_meant_only(tmp_path: Path) -> None:
    path = tmp_path / "undo.csv"
    write_new(path, "first")
    with pytest.raises(StorageError, match=r"undo.csv: File exists"):
        write_new(path, "second")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("first", 0o600)
    write_again(path, "third")
    assert ([*tmp_path.iterdir()], path.read_text(), path.stat().st_mode & 0o777) == ([path], "third", 0o600)
