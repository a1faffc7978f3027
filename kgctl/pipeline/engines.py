"""Work spread over this process, several processes, or Spark: the same items, the same results, whoever does it.

An engine takes a module-level function of kgctl (or a ``functools.partial`` of one) and items that can be pickled. An item whose
function raises gives an `ItemFailure` and ends no other. Spark's works by plans of data frames: a row for each item,
Python functions over Arrow, the same on Spark Connect; an executor needs kgctl of the driver's version (`shipped` sees to that).
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from kgctl import __version__
from kgctl.errors import (
    AuthError,
    BrokerError,
    DamagedError,
    KgctlError,
    NotFoundError,
    RefusedError,
    StorageError,
    TimedOutError,
    UnreachableError,
    UsageError,
)
from kgctl.extras import is_there, require
from kgctl.model.values import frozen, frozen_in_order
from kgctl.pipeline.java import find_java
from kgctl.workers import WorkerPool, become_worker

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


Item = TypeVar("Item")
Result = TypeVar("Result")

PROCESS_DIED = "PROCESS_DIED"
"""The code of an item whose process ended under it."""

_WAITING_PER_PROCESS = 2


class SparkError(KgctlError):
    """Spark did not do the work, in its own words."""

    slug = "SPARK"


class SparkEndedError(SparkError):
    """Its session has ended, and will do no other work."""


@frozen_in_order
class ItemFailure:
    """Why an item has no value: text alone, so that it travels. ``trace`` is empty for errors that explain themselves."""

    code: str
    message: str
    trace: str = ""


@frozen_in_order
class ItemDone(Generic[Result]):
    """What came of the item at ``index``: a value, or a failure."""

    index: int
    value: Result | None = None
    failure: ItemFailure | None = None

    def get(self) -> Result:
        """The value.

        Raises `KgctlError` (the item failed, in the words of whatever it raised).
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
    def stream(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[ItemDone[Result], None, None]:
        """One `ItemDone` for each item, as they come, in any order. Closing the iterator early ends the work.

        Raises `KgctlError` (the engine itself cannot work; what items raise is data).
        """

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        on_done: Callable[[ItemDone[Result]], object] | None = None,
    ) -> list[ItemDone[Result]]:
        """One `ItemDone` for each item, in the items' order. ``on_done`` sees each as soon as it is there, for progress."""
        found: list[ItemDone[Result]] = []
        for done in self.stream(function, items):
            found.append(done)
            if on_done is not None:
                on_done(done)
        return sorted(found, key=lambda done: done.index)


def attempt(function: Callable[[Item], Result], index: int, item: Item) -> ItemDone[Result]:
    """Do one item; what it raises becomes its failure."""
    try:
        return ItemDone(index, function(item))
    except KgctlError as error:
        return ItemDone(index, failure=ItemFailure(error.code, error.message))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other items go on
        kind = type(error).__name__
        return ItemDone(index, failure=ItemFailure(kind, f"{kind}: {error}", traceback.format_exc()))


def died(index: int) -> ItemDone[Result]:
    """Return the failure of an item whose process has died."""
    return ItemDone(index, failure=ItemFailure(PROCESS_DIED, "the process that did it died: killed, or out of memory"))


class LocalEngine(Engine):
    """This process (``jobs`` of 1: results come in the items' order) or processes of its own; needs no extra package.

    When a process dies, the items under way are done again one by one, so that only the one that kills its process fails.
    """

    name = "local"

    def __init__(self, jobs: int = 1) -> None:
        self.slots = max(jobs, 1)

    def stream(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[ItemDone[Result], None, None]:
        """Yield one `ItemDone` for each item, in the order of their ends."""
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
) -> Generator[ItemDone[Result], None, list[int]]:
    """Takes from ``todo`` a few at a time. Ends early when a process dies, and answers with the items that were under way."""
    waiting: dict[Future[ItemDone[Result]], int] = {}
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
def _pool(jobs: int) -> Iterator[WorkerPool]:
    """Processes that are ended, not waited for, when something goes wrong."""
    others = {process.pid for process in multiprocessing.active_children()}
    pool = WorkerPool(jobs, initializer=become_worker)
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


@frozen
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

    @property
    def modules(self) -> tuple[str, ...]:
        """Return what has to be installed for it."""
        is_on_spark = choose(self)[0] is EngineName.SPARK
        return (*(["pyspark"] if is_on_spark else []), *(["grpc", "grpc_status"] if self.remote is not None else []))


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

    Raises `UsageError` (pyspark or Java is missing), `KgctlError` (Spark does not start).
    """
    if choose(options, records)[0] is EngineName.LOCAL:
        yield LocalEngine(options.jobs or processors())
        return
    require(options.what, "pyspark")
    from kgctl.pipeline.session import SparkOptions, spark_session

    master = options.master or (f"local[{options.jobs}]" if options.jobs else None)
    how = SparkOptions(master=master, remote=options.remote, is_light=is_light, shows_log=options.shows_log)
    # Commands make no use of pandas. Whoever has a session of their own sees what pyspark says.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with spark_session(how) as session:
        yield SparkEngine(session)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


JOBS, AT_ONCE = 4, 2
"""Items go out in so many jobs, so many at a time: results come while others work, and no core idles at the end of a job."""
TASKS_PER_SLOT = 4
"""Tasks of a job for each core: few cost little, many keep dear neighbours apart."""

_Numbered: TypeAlias = list[tuple[int, Item]]
"""Items with their numbers: what one job does."""

_numbers = count()


class SparkEngine(Engine):
    """Every n-th item goes into one job, and there into tasks that have as many each.

    When a task's process dies, Spark gives up the job (at once, or after ``spark.task.maxFailures`` tries on a cluster). What it
    has not done is then done in smaller jobs, at last in one for each item, so that only an item that kills its process fails.
    """

    name = "spark"

    def __init__(self, session: SparkSession) -> None:
        self.session: SparkSession = session
        with spark_errors():
            self.slots = _parallelism(session)

    def stream(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[ItemDone[Result], None, None]:
        """One `ItemDone` for each item, a job's at a time.

        Raises `KgctlError` (no item could be done at all, in the words of Spark).
        """
        missing = dict(enumerate(items))
        for again, most in enumerate((JOBS, self.slots * TASKS_PER_SLOT, len(items))):
            if missing:
                yield from self._done(function, missing, dealt(missing, most))
            if again and missing and len(missing) == len(items):
                raise SparkError(f"Spark did none of the work: {self._trouble}")
        for index in sorted(missing):
            yield died(index)

    _trouble = ""
    """What Spark said of the last job that it gave up."""

    def _done(
        self, function: Callable[[Item], Result], missing: dict[int, Item], jobs: Sequence[_Numbered[Item]]
    ) -> Generator[ItemDone[Result], None, None]:
        """What comes of ``jobs``; it is taken out of ``missing``."""
        for future in side_by_side(self.session, partial(self._run, function), jobs):
            try:
                found = future.result()
            except KgctlError as error:
                self._trouble = error.message
                continue
            for done in found:
                del missing[done.index]
                yield done

    def _run(self, function: Callable[[Item], Result], job: _Numbered[Item]) -> list[ItemDone[Result]]:
        rows = [(index, pickle.dumps(item)) for index, item in job]
        frame = self.session.createDataFrame(rows, "number int, item binary").coalesce(1)
        spread = frame.repartition(min(len(job), self.slots * TASKS_PER_SLOT))
        found = spread.mapInArrow(shipped(partial(_items_done, function)), "done binary").collect()
        return [pickle.loads(row.done) for row in found]  # noqa: S301 - what this process has sent out to be made


def side_by_side(
    session: SparkSession, run: Callable[[_Numbered[Item]], Result], jobs: Sequence[_Numbered[Item]]
) -> Generator[Future[Result], None, None]:
    """``run`` of each of these jobs, as they end. Those that have not ended with the generator are interrupted."""
    tag = f"kgctl-{next(_numbers)}"

    def tagged(job: _Numbered[Item]) -> Result:
        with spark_errors():
            session.addTag(tag)
            return run(job)

    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=tag)
    running = [pool.submit(tagged, job) for job in jobs]
    try:
        yield from as_completed(running)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if not all(future.done() for future in running):
            with suppress(Exception):  # a session that has ended has nothing to be ended
                session.interruptTag(tag)
        pool.shutdown()


def dealt(items: Mapping[int, Item], most: int) -> list[_Numbered[Item]]:
    """The items with their numbers, dealt out like cards; none is empty."""
    numbered = list(items.items())
    return [numbered[start::most] for start in range(min(most, len(numbered)))]


def _parallelism(session: SparkSession) -> int:
    """How many tasks run at a time, as Spark's own plans have it: no job is run for that."""
    plan = session.sql("EXPLAIN SELECT * FROM range(1)").collect()[0][0]
    found = re.search(r"splits=(?:Some\()?(\d+)", plan)
    return int(found[1]) if found else 1


def _items_done(function: Callable[[Any], Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does with its rows."""
    import pyarrow as pa

    for batch in batches:
        for number, item in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            done = attempt(function, number, pickle.loads(item))  # noqa: S301 - what the driver has sent
            yield pa.record_batch({"done": pa.array([pickle.dumps(done)], pa.binary())})


def shipped(function: Callable[..., Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """``function`` of batches, for `mapInArrow`; it fails where an executor has another kgctl than the driver."""
    version = __version__

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if version != __version__:
            raise RuntimeError(f"this executor has kgctl {__version__}, the driver {version}: install the same")
        return function(batches)  # type: ignore[no-any-return]

    return run


_RAISED = (AuthError, BrokerError, DamagedError, NotFoundError, RefusedError, StorageError, TimedOutError, UnreachableError)
_OWN = {f"{kind.__module__}.{kind.__name__}": kind for kind in _RAISED}
"""What tasks of kgctl's raise, by the names that Spark tells."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """What fails on Spark as a `KgctlError`: the error that a task of kgctl's has raised, in one line, or `SparkError`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from kgctl.pipeline.session import java_message

    try:
        yield
    except ConnectionError as error:
        raise SparkEndedError("Spark has ended: its master does not answer, or has ended the session") from error
    except (Py4JError, PySparkException) as error:
        said = str(error)
        told = re.findall(r"^((?:\w+\.)*\w*Error): (.+)$", said, re.MULTILINE)
        name, message = told[-1] if told else ("", java_message(error).strip())
        found: KgctlError = _OWN.get(name, SparkError)(message)
        if broken := re.search(r"\[FAILED_READ_FILE\S*\] .* file (?:file://)?(\S+\.parquet)", said):
            found = StorageError(f"{broken[1]}: cannot be read")
        if "stopped SparkContext" in said or "SparkContext was shut down" in said:
            found = SparkEndedError("the master does not answer, or has ended the session")
        raise found from error
