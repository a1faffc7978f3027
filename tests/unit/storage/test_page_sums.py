"""Sums of a database's pages: after any kill they fit, and nothing else does."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from kgctl.storage import page_sums
from kgctl.storage.files import COORDINATOR_FILE
from kgctl.storage.folder import DataFolder, open_folder
from kgctl.storage.sqlite import COORDINATOR, Database
from tests.support.storage import commit, contents

PAGE = 4096


@pytest.fixture(autouse=True)
def few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write-ahead log is moved every few commits."""
    monkeypatch.setattr(page_sums, "DUE_FRAMES", 20)
    monkeypatch.setattr(page_sums, "_CHANGES_A_LOOK", 1)
    monkeypatch.setattr(page_sums, "_FRAMES_AT_A_TIME", 7)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


def append(folder: DataFolder, numbers: range) -> None:
    for number in numbers:
        folder.record_log.append([commit(f"group-{number % 5}", number % 3, number, member="m")], number)


def is_known_whole(path: Path) -> bool:
    database = Database(path / COORDINATOR_FILE, COORDINATOR)
    try:
        return database.is_known_whole
    finally:
        database.close()


def killed(path: Path) -> Path:
    """The folder as it would be if its process ended now."""
    copy = path.with_name("killed")
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(path, copy)


def test_they_fit_whenever_the_process_is_killed(path: Path) -> None:
    with open_folder(path, create=True) as folder:
        for number in range(60):
            append(folder, range(number, number + 1))

            copy = killed(path)
            assert is_known_whole(copy)
            with open_folder(copy, create=False) as found:
                assert contents(found) == contents(folder)
    assert is_known_whole(path)


def test_a_byte_that_was_altered_is_no_longer_known_to_be_whole(path: Path) -> None:
    with open_folder(path, create=True) as folder:
        append(folder, range(50))
    pages = (path / COORDINATOR_FILE).stat().st_size // PAGE
    for page in range(pages):
        copy = killed(path)
        data = bytearray((copy / COORDINATOR_FILE).read_bytes())
        data[page * PAGE + 2_000] ^= 1
        (copy / COORDINATOR_FILE).write_bytes(data)

        assert not is_known_whole(copy)
    assert is_known_whole(path)


@pytest.mark.parametrize("sums", [b"", b"1gk", bytes(64)])
def test_without_good_sums_the_file_is_looked_through_and_then_summed_anew(path: Path, sums: bytes) -> None:
    with open_folder(path, create=True) as folder:
        append(folder, range(5))
    file = path / f"{COORDINATOR_FILE}-sums"
    before = file.read_bytes()
    file.write_bytes(sums)

    assert not is_known_whole(path)
    with open_folder(path, create=False) as folder:
        assert len(list(folder.record_log.read_newest())) == 5
    assert is_known_whole(path)
    assert file.read_bytes() == before


def test_what_somebody_else_writes_into_an_open_file_is_not_summed(path: Path) -> None:
    with open_folder(path, create=True) as folder:
        append(folder, range(50))
    with open_folder(path, create=False) as folder:
        with (path / COORDINATOR_FILE).open("r+b") as file:  # in a page that is written to again
            data = file.read()
            place = data.rindex(b"group-4")
            file.seek(place)
            file.write(b"GROUP")
        append(folder, range(50, 90))

    assert not is_known_whole(path)


def test_who_reads_an_older_state_keeps_it_and_the_sums_fit_afterwards(path: Path) -> None:
    with open_folder(path, create=True) as folder:
        append(folder, range(10))
        reader = sqlite3.connect(path / COORDINATOR_FILE, isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM record").fetchone() == (10,)
        append(folder, range(10, 80))
        assert is_known_whole(killed(path))
        assert reader.execute("SELECT count(*) FROM record").fetchone() == (10,)
        reader.close()
        append(folder, range(80, 120))

        assert is_known_whole(killed(path))
    assert is_known_whole(path)


def test_a_full_disk_takes_the_sums_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with open_folder(path, create=True) as folder:
        append(folder, range(5))
        monkeypatch.setattr("os.ftruncate", full)
        append(folder, range(5, 40))
    monkeypatch.undo()

    assert not (path / f"{COORDINATOR_FILE}-sums").exists()
    with open_folder(path, create=False) as folder:
        assert len(contents(folder)) == 40


def test_the_page_that_sqlite_leaves_out_in_large_files_has_no_sum(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_folder(path, create=True) as folder:
        append(folder, range(5))
    file = path / f"{COORDINATOR_FILE}-sums"
    data = bytearray(file.read_bytes())
    data[3 * 4 : 4 * 4] = bytes(4)
    file.write_bytes(data)
    assert not is_known_whole(killed(path))

    monkeypatch.setattr(page_sums, "_LOCK_BYTE", 2 * PAGE + 10)
    assert is_known_whole(killed(path))


def test_what_is_written_in_one_large_transaction_is_moved_at_once(path: Path) -> None:
    with open_folder(path, create=True) as folder:
        with folder.bulk():
            append(folder, range(2_000))
        assert (path / COORDINATOR_FILE).stat().st_size > 50 * PAGE
