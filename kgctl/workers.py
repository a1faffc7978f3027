"""Processes that only work for another one: what each does first, and a pool of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import Any

_INTERRUPTED = 130


def become_worker() -> None:
    """For a worker's beginning: it ends at once and says nothing when somebody presses Ctrl-C, and when its parent ends.

    A parent that is killed cannot end its workers. They would wait for work for ever, and keep what they have inherited.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


class WorkerPool(ProcessPoolExecutor):
    """A pool whose processes can be ended from their first moment on; its ``initializer`` calls `become_worker`.

    A process that has just been forked forgets the signals that its parent's handlers took in it until then (CPython's
    PyOS_AfterFork_Child), and a pool that is being ended would wait for it for ever. So SIGTERM waits until `become_worker`.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand out work; may start processes."""
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(fn, *args, **kwargs)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
