"""What is to be run, and the runs themselves: here, or spread over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

from kgctl.errors import KgctlError
from kgctl.simulate.batch.task import Task, run_task
from kgctl.simulate.batch.values import RunValues
from kgctl.simulate.recording.history import Identity
from kgctl.simulate.scenario.load import LoadedFile
from kgctl.workers import become_worker

_WAITING_PER_PROCESS = 2
_KILLED = (
    "a process that runs scenarios was killed, as it happens where memory runs out; with a smaller --jobs less of it is needed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run. ``twice``: each run once more, to compare; ``pictures``: draw each variant, where it is run with one
    seed only; of several, `kgctl.simulate.batch.worst` draws the worst."""

    twice: bool = False
    pictures: bool = False
    identity: Identity = Identity.POD


def tasks_of(loaded: LoadedFile, seeds: Sequence[int], options: Options, deadline_s: float | None) -> list[Task]:
    """A task for each seed of each variant: all variants of the first seed first, so that a stopped run has seen each."""
    return [
        Task(
            variant=variant.name,
            scenario=variant.scenario,
            settings=variant.settings,
            checks=loaded.checks,
            seed=seed,
            twice=options.twice,
            draws=options.pictures and len(seeds) == 1,
            deadline_s=deadline_s,
            is_lone=len(loaded.variant_names) == 1,
            identity=options.identity,
        )
        for seed in seeds
        for variant in loaded.variants
    ]


def run_all(tasks: Sequence[Task], jobs: int, on_done: Callable[[RunValues | None], None]) -> list[RunValues]:
    """Run them all; the results are in the order of the tasks, whatever the number of processes.

    Raises:
        InvariantViolation: a run broke one, or two runs of one seed differ.
        KgctlError: one of the processes was killed.
    """
    if jobs <= 1 or len(tasks) <= 1:
        found = []
        for task in tasks:
            values = run_task(task)
            on_done(values)
            found.append(values)
        return [values for values in found if values is not None]
    try:
        with _pool(min(jobs, len(tasks))) as pool:
            return _spread(tasks, pool, jobs, on_done)
    except BrokenProcessPool:
        raise KgctlError(_KILLED, code="WORKER_KILLED") from None


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are not waited for when something goes wrong."""
    pool = ProcessPoolExecutor(jobs, initializer=become_worker)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _spread(
    tasks: Sequence[Task], pool: ProcessPoolExecutor, jobs: int, on_done: Callable[[RunValues | None], None]
) -> list[RunValues]:
    """Hands out a few tasks at a time: a thousand scenarios need not be on their way at once."""
    found: list[RunValues | None] = [None] * len(tasks)
    waiting: dict[Future[RunValues | None], int] = {}
    following = 0
    while following < len(tasks) or waiting:
        while following < len(tasks) and len(waiting) < jobs * _WAITING_PER_PROCESS:
            waiting[pool.submit(run_task, tasks[following])] = following
            following += 1
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda each: waiting[each]):
            number = waiting.pop(future)
            found[number] = values = future.result()
            on_done(values)
    return [values for values in found if values is not None]
