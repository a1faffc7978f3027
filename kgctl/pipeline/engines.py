"""Work spread over this process, several processes, or Spark: the same items, the same results, whoever does it.

An engine takes a module-level function of kgctl (or a ``functools.partial`` of one) and items that can be pickled. An item whose
function raises gives a `Failure` and is not the end of the others.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Generic, TypeVar

from kgctl.errors import KgctlError, UsageError
from kgctl.pipeline.extras import is_there, require
from kgctl.pipeline.java import find_java
from kgctl.workers import become_worker

Item = TypeVar("Item")
Result = TypeVar("Result")

PROCESS_DIED = "PROCESS_DIED"
"""The code of an item whose process ended under it."""

_WAITING_PER_PROCESS = 2


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an item has no value: text alone, so that it travels. ``trace`` is empty for errors that explain themselves."""

    code: str
    message: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """What came of the item at ``index``: a value, or a failure."""

    index: int
    value: Result | None = None
    failure: Failure | None = None

    def get(self) -> Result:
        """The value.

        Raises:
            KgctlError: the item failed, in the words of whatever it raised.
        """
        if self.failure is not None:
            raise KgctlError(self.failure.message, code=self.failure.code)
        return self.value  # type: ignore[return-value]


class Engine(ABC):
    """Does the work. ``slots`` is how many items it does at a time."""

    name: str
    slots: int
    session: Any = None
    """Spark's, for plans of data frames; None where there is no Spark."""

    @abstractmethod
    def stream(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Done[Result], None, None]:
        """One `Done` for each item, as they come, in any order. Closing the iterator early ends the work.

        Raises:
            KgctlError: the engine itself cannot work. What items raise is data.
        """

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        on_done: Callable[[Done[Result]], object] | None = None,
    ) -> list[Done[Result]]:
        """One `Done` for each item, in the items' order. ``on_done`` sees each as soon as it is there, for progress."""
        found: list[Done[Result]] = []
        for done in self.stream(function, items):
            found.append(done)
            if on_done is not None:
                on_done(done)
        return sorted(found, key=lambda done: done.index)


def attempt(function: Callable[[Item], Result], index: int, item: Item) -> Done[Result]:
    """Do one item; what it raises becomes its failure."""
    try:
        return Done(index, function(item))
    except KgctlError as error:
        return Done(index, failure=Failure(error.code, error.message))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other items go on
        kind = type(error).__name__
        return Done(index, failure=Failure(kind, f"{kind}: {error}", traceback.format_exc()))


def died(index: int) -> Done[Result]:
    """Return the failure of an item whose process has died."""
    return Done(index, failure=Failure(PROCESS_DIED, "the process that did it died: killed, or out of memory"))


class LocalEngine(Engine):
    """This process (``jobs`` of 1: results come in the items' order) or processes of its own; needs no extra package.

    When a process dies, the items under way are done again one by one, so that only the one that kills its process fails.
    """

    name = "local"

    def __init__(self, jobs: int = 1) -> None:
        self.slots = max(jobs, 1)

    def stream(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Done[Result], None, None]:
        """Yield one `Done` for each item, in the order of their ends."""
        if self.slots == 1 or len(items) <= 1:
            for index, item in enumerate(items):
                yield attempt(function, index, item)
            return
        todo = list(range(len(items)))
        suspects: list[int] = []
        while todo:
            suspects += yield from _in_processes(function, items, todo, min(self.slots, len(todo)))
        for index in suspects:
            alone = [index]
            for broken in (yield from _in_processes(function, items, alone, 1)):
                yield died(broken)


def _in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], todo: list[int], jobs: int
) -> Generator[Done[Result], None, list[int]]:
    """Takes from ``todo`` a few at a time. Ends early when a process dies, and answers with the items that were under way."""
    waiting: dict[Future[Done[Result]], int] = {}
    following = iter(todo[:])
    with _pool(jobs) as pool:
        while todo or waiting:
            try:
                for index in islice(following, jobs * _WAITING_PER_PROCESS - len(waiting)):
                    waiting[pool.submit(attempt, function, index, items[index])] = index
                    todo.remove(index)
            except BrokenProcessPool:  # one died while the caller looked at the results before
                return sorted(waiting.values())
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda each: waiting[each]):
                if isinstance(future.exception(), BrokenProcessPool):
                    return sorted(waiting.values())
                del waiting[future]
                yield future.result()
    return []


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are ended, not waited for, when something goes wrong."""
    others = {process.pid for process in multiprocessing.active_children()}
    pool = ProcessPoolExecutor(jobs, initializer=become_worker)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process.pid not in others:
                process.terminate()
        raise
    pool.shutdown()


class EngineName(StrEnum):
    """The values of ``--engine``."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Which engine, and how. ``jobs``: processes or, with Spark's local master, its threads; None is one for each processor.

    ``remote``: a server of Spark Connect.
    ``what``: who asks, for the error when a package is missing. ``shows_log``: Spark's log goes to stderr.
    """

    name: EngineName = EngineName.AUTO
    jobs: int | None = None
    master: str | None = None
    remote: str | None = None
    shows_log: bool = False
    what: str = "--engine spark"

    def __post_init__(self) -> None:
        """Raises `UsageError` for options that do not go together."""
        given = [flag for flag, value in (("--master", self.master), ("--remote", self.remote)) if value is not None]
        if given and self.name is EngineName.LOCAL:
            raise UsageError(f"{given[0]} is Spark's: add --engine spark")
        if given and self.jobs is not None:
            raise UsageError(f"--jobs and {given[0]} both say how much is done at a time: give one of them")
        if len(given) > 1:
            raise UsageError("--master and --remote exclude each other: a server of Spark Connect has its own master")
        if self.master is not None and self.master.startswith("sc:"):
            raise UsageError(f"--master {self.master}: a server of Spark Connect is no master: give it as --remote")
        if self.remote is not None and not re.match(r"sc://[^/:;]", self.remote):
            raise UsageError(f"--remote {self.remote}: wanted is sc://HOST[:PORT]")


MANY_RECORDS = 1_000_000
"""So many are worth a start of Spark."""


def choose(options: EngineOptions, records: int = 0) -> tuple[EngineName, str]:
    """Which engine does so many records, and why, for people to read."""
    if options.name is not EngineName.AUTO:
        return options.name, f"--engine {options.name.value}"
    if options.master is not None:
        return EngineName.SPARK, "a master was given"
    if options.remote is not None:
        return EngineName.SPARK, "a server of Spark Connect was given"
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return EngineName.SPARK, "spark-submit runs this"
    if records < MANY_RECORDS:
        return EngineName.LOCAL, f"{records:,} records are fewer than {MANY_RECORDS:,}"
    missing = _missing_for_spark()
    return (EngineName.LOCAL, missing) if missing else (EngineName.SPARK, f"{records:,} records are {MANY_RECORDS:,} or more")


def _missing_for_spark() -> str | None:
    if not is_there("pyspark"):
        return "pyspark is not installed"
    try:
        find_java(os.environ)
    except UsageError:
        return "there is no Java for Spark"
    return None


@contextmanager
def open_engine(options: EngineOptions, records: int = 0, *, is_light: bool = True) -> Iterator[Engine]:
    """The engine for so many records; a Spark that was started for it ends with it. ``is_light``: see `SparkOptions`.

    Raises:
        UsageError: pyspark or Java is missing. KgctlError: Spark does not start.
    """
    if choose(options, records)[0] is EngineName.LOCAL:
        yield LocalEngine(options.jobs or processors())
        return
    require(options.what, "pyspark")
    from kgctl.pipeline.session import SparkOptions, spark_session
    from kgctl.pipeline.spark_engine import SparkEngine

    master = options.master or (f"local[{options.jobs}]" if options.jobs else None)
    how = SparkOptions(master=master, remote=options.remote, is_light=is_light, shows_log=options.shows_log)
    with spark_session(how) as session:
        yield SparkEngine(session)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
