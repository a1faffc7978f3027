"""What every process that only works for another one does first."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait

_INTERRUPTED = 130


def become_worker() -> None:
    """For a worker's beginning: it ends at once and says nothing when somebody presses Ctrl-C, and when its parent ends.

    A parent that is killed cannot end its workers. They would wait for work for ever, and keep what they have inherited.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
