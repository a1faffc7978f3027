"""Child processes that never outlive the test session."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import weakref
from collections.abc import Sequence
from pathlib import Path

from tests.support.patience import PATIENCE_S

_running: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def start_process(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts ``command`` with both outputs in ``log``.

    It ends with this process however that ends: through the kernel's parent-death signal where ``setpriv`` is, else at exit.
    The signal is bound to the thread that starts the process, so start long-lived ones in the main thread.
    """
    setpriv = shutil.which("setpriv")
    guarded = [setpriv, "--pdeathsig", "KILL", *command] if setpriv else list(command)
    with log.open("ab") as output:
        process = subprocess.Popen(guarded, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    _running.add(process)
    return process


def stop_process(process: subprocess.Popen[bytes], *, kill: bool = False) -> int:
    """Ends ``process`` by its id, a frozen one too, and returns its exit code."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


@atexit.register
def _stop_all() -> None:
    for process in list(_running):
        if process.poll() is None:
            process.kill()


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Stops the process in its tracks: its connections stay open and nothing is answered."""
    os.kill(process.pid, signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)  # on a busy machine its other threads run on for a while


def thaw(process: subprocess.Popen[bytes]) -> None:
    """Lets a frozen process go on."""
    os.kill(process.pid, signal.SIGCONT)
