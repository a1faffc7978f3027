"""Compaction in the background."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from kgctl.errors import DamagedError, StorageError
from kgctl.storage.folder import DataFolder, Maintenance, open_folder
from tests.support.storage import commit, contents


def wait_until(deadline_s: float, condition: object) -> None:
    """Until the condition holds; fails when it takes too long."""
    assert callable(condition)
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_served_folder_is_compacted_while_commits_go_on(folder: DataFolder) -> None:
    folder.start_maintenance(lambda: 0, interval_s=0.01)
    folder.start_maintenance(lambda: 0, interval_s=0.01)
    for number in range(120):
        folder.record_log.append([commit("g", partition, number) for partition in range(100)], number)
    wait_until(20, lambda: len(contents(folder)) < 6_000)
    folder.record_log.append([commit("g", 0, 999)], 200)

    assert contents(folder)[-1].timestamp_ms == 200


def test_trouble_with_the_file_does_not_end_it() -> None:
    calls: list[str] = []

    def trouble() -> object:
        calls.append("open")
        raise StorageError("no room")

    maintenance = Maintenance(trouble, lambda: None, lambda: 0, 0.001)  # type: ignore[arg-type]  # never returns
    maintenance.start()
    wait_until(10, lambda: len(calls) >= 3)
    maintenance.stop()

    assert not maintenance.is_alive()


def test_a_damaged_record_that_it_meets_is_told_and_ends_it(tmp_path: Path) -> None:
    found: list[DamagedError] = []
    with open_folder(tmp_path / "data", create=True) as folder:
        for number in range(120):
            folder.record_log.append([commit("g", partition, number) for partition in range(100)], number)
        with folder.record_log._database.transaction() as connection:  # type: ignore[attr-defined]
            connection.execute("UPDATE record SET timestamp_ms = 77 WHERE sequence = 7")
        folder.start_maintenance(lambda: 0, interval_s=0.01, on_damage=found.append)
        maintenance = folder._maintenance
        assert maintenance is not None
        wait_until(20, lambda: not maintenance.is_alive())

    (told,) = found
    assert "the record at offset" in told.message


def test_stopping_what_never_ran_is_fine(tmp_path: Path) -> None:
    Maintenance(lambda: contents, lambda: None, lambda: 0, 1).stop()  # type: ignore[arg-type,return-value]  # never called


COUNT = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('SELECT count(*) FROM record')); c.close()"


def test_another_program_that_reads_a_served_database_leaves_its_write_ahead_log_alone(tmp_path: Path) -> None:
    with open_folder(tmp_path / "data", create=True) as folder:
        stepped = threading.Event()

        def clock_ms() -> int:
            stepped.set()
            return 0

        folder.start_maintenance(clock_ms, interval_s=0.01)
        assert stepped.wait(20)
        path = tmp_path / "data" / "coordinator.db"
        for number in range(2):
            folder.record_log.append([commit("g", 0, number)], number)
            read = subprocess.run(
                [sys.executable, "-c", COUNT, str(path)], capture_output=True, text=True, check=True, timeout=60
            )

            assert read.stdout == f"({number + 1},)\n"
            assert path.with_name("coordinator.db-wal").stat().st_size > 0
