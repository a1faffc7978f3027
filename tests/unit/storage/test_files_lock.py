"""The lock of a folder goes with the process that took it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kgctl.errors import RefusedError
from kgctl.storage.files import FolderLock, is_in_use


def test_one_at_a_time(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(RefusedError, match=f"is in use by process {os.getpid()}; stop it first"):
        FolderLock(tmp_path)
    assert is_in_use(tmp_path)
    lock.release()
    lock.release()
    assert not is_in_use(tmp_path)
    FolderLock(tmp_path).release()


def test_a_process_that_was_forked_off_does_not_hold_it(tmp_path: Path) -> None:
    """Else a worker that outlives a killed process would keep the folder locked."""
    lock = FolderLock(tmp_path)
    told, tell = os.pipe()
    end, go_on = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover - in another process
        os.close(go_on)
        os.write(tell, b"here")
        os.read(end, 1)
        os._exit(0)
    assert os.read(told, 4) == b"here"
    assert is_in_use(tmp_path), "the child has not given it away"
    lock.release()
    assert not is_in_use(tmp_path), "the child did not keep it"
    os.close(go_on)
    assert os.waitpid(child, 0)[1] == 0
    for descriptor in (told, tell, end):
        os.close(descriptor)
