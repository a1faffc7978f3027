"""Work spread over Spark's executors: a few chunks of items for each core, and results that come back while others still work."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from pyspark import AccumulatorParam, InheritableThread

from kgctl import __version__
from kgctl.errors import KgctlError
from kgctl.pipeline.engines import Done, Engine, Item, Result, attempt, died
from kgctl.pipeline.session import java_message

if TYPE_CHECKING:
    from pyspark import SparkContext

FEWEST_PER_SLOT, MOST_PER_SLOT = 8, 32
"""Tasks for each core: few cost little, many show progress and leave no core idle at the end."""

_Numbered: TypeAlias = list[tuple[int, Item]]
"""Items with their numbers: what one task does."""

_numbers = count()
_sinks: dict[int, Callable[[Any], None]] = {}
"""Where results of the sweeps under way go; only the driver has any."""


class SparkEngine(Engine):
    """Items go out in some tasks a core, every n-th item in one task, so that dear neighbours are spread.

    An executor needs kgctl of the driver's version. When a task's process dies, Spark gives up the job (at once, or after
    ``spark.task.maxFailures`` tries on a cluster). What it has not done is then done in a job for each chunk, and at last in one
    for each item, so that only an item that kills its process fails.
    """

    name = "spark"

    def __init__(self, context: SparkContext) -> None:
        self.context = context
        self.slots = context.defaultParallelism

    def stream(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Done[Result], None, None]:
        """One `Done` for each item, a chunk's at a time.

        Raises:
            KgctlError: no task could be done at all, in the words of Spark.
        """
        missing = dict(enumerate(items))
        yield from self._done(function, missing, [chunks_of(missing, _count(len(items), self.slots))])
        for most in (self.slots * FEWEST_PER_SLOT, len(items)):
            if missing:
                yield from self._done(function, missing, [[chunk] for chunk in chunks_of(missing, most)])
            if missing and len(missing) == len(items):
                raise KgctlError(f"Spark did none of the work: {self._explained()}", code="SPARK")
        for index in sorted(missing):
            yield died(index)

    trouble = ""
    """What Spark said of the last job that it gave up."""

    def _explained(self) -> str:
        """Spark ends the session where it gives the master up, and says of jobs only that there is no session."""
        if self.context._jsc is None or self.context._jsc.sc().isStopped():
            return f"the master {self.context.master} does not answer, or has ended the session"
        return self.trouble

    def _done(
        self, function: Callable[[Item], Result], missing: dict[int, Item], jobs: Sequence[list[_Numbered[Item]]]
    ) -> Generator[Done[Result], None, None]:
        """What comes of ``jobs``, as many at a time as there are slots; it is taken out of ``missing``."""
        for start in range(0, len(jobs), self.slots):
            running = [_Job(self.context, chunks, function) for chunks in jobs[start : start + self.slots] if chunks]
            try:
                for job in running:
                    for done in job.results():
                        if done.index in missing:
                            del missing[done.index]
                            yield done
                    self.trouble = job.trouble or self.trouble
            finally:
                for job in running:
                    job.end()


def _count(items: int, slots: int) -> int:
    return min(max(slots * FEWEST_PER_SLOT, items // 2), slots * MOST_PER_SLOT)


def chunks_of(items: Mapping[int, Item], count: int) -> list[_Numbered[Item]]:
    """The items with their numbers, dealt out like cards; no chunk is empty."""
    numbered = list(items.items())
    return [numbered[start::count] for start in range(min(count, len(numbered)))]


class _Job(Generic[Item, Result]):
    """One Spark job in a thread of its own. Tasks hand in their results through an accumulator: once each, when they end."""

    def __init__(self, context: SparkContext, chunks: list[_Numbered[Item]], function: Callable[[Item], Result]) -> None:
        self.context, self.trouble, self._is_over = context, "", False
        self.number = next(_numbers)
        self.group = f"kgctl-{self.number}"
        self._queue: SimpleQueue[list[Done[Result]] | None] = SimpleQueue()
        _sinks[self.number] = self._queue.put
        self._accumulator = context.accumulator([], _Results(self.number))
        self._chunks, self._function = chunks, function
        self._thread = InheritableThread(self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        accumulator, work = self._accumulator, _Chunk(self._function)
        try:
            self.context.setJobGroup(self.group, "kgctl", interruptOnCancel=True)
            rdd = self.context.parallelize(self._chunks, len(self._chunks))
            rdd.foreach(lambda chunk: accumulator.add(work(chunk)))
        except Exception as error:  # noqa: BLE001 - told by whoever waits for the results
            self.trouble = java_message(error)
        finally:
            self._queue.put(None)

    def results(self) -> Iterator[Done[Result]]:
        """What has come, until the job has ended."""
        while (found := self._queue.get()) is not None:
            yield from found
        self._is_over = True

    def end(self) -> None:
        """Let nothing of it go on."""
        del _sinks[self.number]
        if not self._is_over:
            self.context.cancelJobGroup(self.group)
        self._thread.join(timeout=10)


class _Results(AccumulatorParam[list[Any]]):
    """Gathers the results of a task on the executor, and passes them on as they reach the driver."""

    def __init__(self, number: int) -> None:
        self.number = number

    def zero(self, value: list[Any]) -> list[Any]:  # noqa: ARG002 - Spark's signature
        """Nothing yet."""
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        """More results."""
        sink = _sinks.get(self.number)
        if sink is None:
            return value1 + value2
        sink(value2)
        return value1


class _Chunk(Generic[Item, Result]):
    """What a task does; it is sent to the executors with the function in it."""

    def __init__(self, function: Callable[[Item], Result]) -> None:
        self.function, self.version = function, __version__

    def __call__(self, chunk: _Numbered[Item]) -> list[Done[Result]]:
        """Every item of a chunk.

        Raises:
            RuntimeError: this executor has another kgctl.
        """
        if self.version != __version__:
            raise RuntimeError(f"this executor has kgctl {__version__}, the driver {self.version}: install the same")
        return [attempt(self.function, index, item) for index, item in chunk]
