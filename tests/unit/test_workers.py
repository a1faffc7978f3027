"""Processes that work for another one can be ended whenever that is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

from kgctl.workers import WorkerPool, become_worker
from tests.support.patience import PATIENCE_S

LATE_S = 0.2


def become_worker_late() -> None:
    """As where a process is forked while others want its processor."""
    time.sleep(LATE_S)
    become_worker()


def test_a_process_that_is_ended_before_it_has_begun_ends() -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # a handler that a child forgets to call, or calls in vain
    try:
        pool = WorkerPool(2, mp_context=multiprocessing.get_context("fork"), initializer=become_worker_late)
        work = pool.submit(time.sleep, PATIENCE_S)
        processes = multiprocessing.active_children()
        for process in processes:
            os.kill(process.pid or 0, signal.SIGTERM)
        for process in processes:
            process.join(PATIENCE_S)
        assert work.exception(PATIENCE_S) is not None
        pool.shutdown()  # its thread waits for them as well, and whoever comes second learns of no exit code before that
        assert {process.exitcode for process in processes} == {-signal.SIGTERM}
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
