"""The world a command runs in."""

from __future__ import annotations

import io
import os
import select
import shlex
import signal
import sys
import threading
from pathlib import Path

import pytest

from kgctl.cli.environment import Environment, write_whole
from tests.support.members import wait_until


def test_folders_come_from_variables_or_from_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Environment(variables={"KGCTL_CONFIG": "~/c.yaml", "KGCTL_BACKUP_DIR": "b", "KGCTL_WAREHOUSE": "~/w"})
    assert (chosen.config_file, chosen.undo_folder) == (Path("~/c.yaml").expanduser(), Path("b"))
    assert chosen.warehouse == "~/w"
    own = Environment(variables={})
    assert (own.config_file.name, own.config_file.parent.name) == ("config.yaml", "kgctl")
    assert (own.undo_folder.name, own.undo_folder.parent.name) == ("backups", "kgctl")
    assert (Path(own.warehouse).name, Path(own.warehouse).parent.name) == ("warehouse", "kgctl")


def test_clock_counts_milliseconds_since_1970() -> None:
    assert 1_700_000_000_000 < Environment().now_ms() < 10_000_000_000_000


@pytest.mark.parametrize(
    ("called", "on_path", "shown"),
    [
        ("/bin dir/kgctl", "/bin dir/kgctl", "kgctl"),
        ("/bin dir/kgctl", None, "'/bin dir/kgctl'"),
        (".venv/bin/kgctl", "/elsewhere/kgctl", ".venv/bin/kgctl"),
        ("/x/kgctl/__main__.py", None, f"{shlex.quote(sys.executable)} -m kgctl"),
    ],
)
def test_user_is_shown_the_way_in_which_they_called(
    monkeypatch: pytest.MonkeyPatch, called: str, on_path: str | None, shown: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr("shutil.which", lambda name: on_path)
    assert Environment().program == shown


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_signal_leaves_no_hole_in_a_long_result(buffering: int) -> None:
    """``buffering`` 0 is stdout with PYTHONUNBUFFERED: there a write that a signal interrupts is short, and nobody is told."""
    reader, writer = os.pipe()
    stream = io.TextIOWrapper(os.fdopen(writer, "wb", buffering), encoding="utf-8", write_through=True)
    main, read, hits = threading.main_thread(), list[bytes](), list[int]()

    def interrupt_and_read() -> None:
        wait_until(lambda: _is_full(writer), "the pipe is full")
        assert main.ident is not None
        signal.pthread_kill(main.ident, signal.SIGUSR1)
        wait_until(lambda: bool(hits), "the handler has run")
        while piece := os.read(reader, 1 << 16):
            read.append(piece)

    before = signal.signal(signal.SIGUSR1, lambda *_: hits.append(1))
    thread = threading.Thread(target=interrupt_and_read)
    try:
        thread.start()
        write_whole(stream, "ä" * 200_000)
        stream.close()
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
        os.close(reader)
    assert b"".join(read).decode() == "ä" * 200_000


def _is_full(writer: int) -> bool:
    return not select.select([], [writer], [], 0)[1]
