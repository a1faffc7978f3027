"""Work on Spark as plans of data frames: a row for each item, Python functions over Arrow, the same on Spark Connect.

What runs on an executor needs kgctl of the driver's version there: `shipped` sees to that.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from kgctl import __version__
from kgctl.errors import KgctlError
from kgctl.pipeline.engines import Done, Engine, Item, Result, attempt, died
from kgctl.pipeline.session import java_message

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

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

    def stream(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Done[Result], None, None]:
        """One `Done` for each item, a job's at a time.

        Raises:
            KgctlError: no item could be done at all, in the words of Spark.
        """
        missing = dict(enumerate(items))
        for again, most in enumerate((JOBS, self.slots * TASKS_PER_SLOT, len(items))):
            if missing:
                yield from self._done(function, missing, dealt(missing, most))
            if again and missing and len(missing) == len(items):
                raise KgctlError(f"Spark did none of the work: {self._trouble}", code="SPARK")
        for index in sorted(missing):
            yield died(index)

    _trouble = ""
    """What Spark said of the last job that it gave up."""

    def _done(
        self, function: Callable[[Item], Result], missing: dict[int, Item], jobs: Sequence[_Numbered[Item]]
    ) -> Generator[Done[Result], None, None]:
        """What comes of ``jobs``; it is taken out of ``missing``."""
        tag = f"kgctl-{next(_numbers)}"
        pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=tag)
        running: list[Future[list[Done[Result]]]] = [pool.submit(self._run, tag, function, job) for job in jobs]
        try:
            for future in as_completed(running):
                try:
                    found = future.result()
                except KgctlError as error:
                    self._trouble = error.message
                    continue
                for done in found:
                    del missing[done.index]
                    yield done
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            if not all(future.done() for future in running):
                with suppress(Exception):  # a session that has ended has nothing to be ended
                    self.session.interruptTag(tag)
            pool.shutdown()

    def _run(self, tag: str, function: Callable[[Item], Result], job: _Numbered[Item]) -> list[Done[Result]]:
        with spark_errors():
            self.session.addTag(tag)
            rows = [(index, pickle.dumps(item)) for index, item in job]
            frame = self.session.createDataFrame(rows, "number int, item binary").coalesce(1)
            spread = frame.repartition(min(len(job), self.slots * TASKS_PER_SLOT))
            found = spread.mapInArrow(shipped(_Items(function)), "done binary").collect()
        return [pickle.loads(row.done) for row in found]  # noqa: S301 - what this process has sent out to be made


def dealt(items: Mapping[int, Item], most: int) -> list[_Numbered[Item]]:
    """The items with their numbers, dealt out like cards; none is empty."""
    numbered = list(items.items())
    return [numbered[start::most] for start in range(min(most, len(numbered)))]


def _parallelism(session: SparkSession) -> int:
    """How many tasks run at a time, as Spark's own plans have it: no job is run for that."""
    plan = session.sql("EXPLAIN SELECT * FROM range(1)").collect()[0][0]
    found = re.search(r"splits=(?:Some\()?(\d+)", plan)
    return int(found[1]) if found else 1


class _Items:
    """What a task does with its rows."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number, item in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                done = attempt(self.function, number, pickle.loads(item))  # noqa: S301 - what the driver has sent
                yield pa.record_batch({"done": pa.array([pickle.dumps(done)], pa.binary())})


def shipped(function: Callable[..., Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """``function`` of batches, for `mapInArrow`; it fails where an executor has another kgctl than the driver."""
    version = __version__

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if version != __version__:
            raise RuntimeError(f"this executor has kgctl {__version__}, the driver {version}: install the same")
        return function(batches)  # type: ignore[no-any-return]

    return run


@contextmanager
def spark_errors() -> Iterator[None]:
    """What fails on Spark as a `KgctlError`: the error that a task of kgctl's has raised, in one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except ConnectionError as error:
        raise KgctlError("Spark has ended: its master does not answer, or has ended the session", code="SPARK") from error
    except (Py4JError, PySparkException) as error:
        said = str(error)
        told = re.findall(r"^(?:\w+\.)*(\w*Error): (.+)$", said, re.MULTILINE)
        kind, message = told[-1] if told else ("SPARK", java_message(error).strip())
        if "stopped SparkContext" in said or "SparkContext was shut down" in said:
            message = "the master does not answer, or has ended the session"
        raise KgctlError(message, code="STORAGE_ERROR" if kind == "StorageError" else "SPARK") from error
