"""One generation of a live member: what it may read, the functions that read it, its commits, and its end."""

from __future__ import annotations

import asyncio
import inspect
import threading
import warnings
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias

from kgctl.arguments import checked
from kgctl.errors import GenerationEnded, MisuseError, UsageError
from kgctl.group.fetcher import Fetcher
from kgctl.group.records import Records
from kgctl.model.groups import ByPartition, Committable, TopicPartition


class MakesCommits(Protocol):
    """Commits in the name of a generation; see `Generation.commit`. ``may_wait``: `commit` waits for an answer."""

    may_wait: bool

    def commit(self, generation: Generation, offsets: Committable, /) -> None: ...

    async def commit_async(self, generation: Generation, offsets: Committable, /) -> None: ...


Work: TypeAlias = Callable[["Generation"], Any] | Callable[["Generation"], Coroutine[Any, Any, Any]]


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Generation:
    """What `kgctl.ConsumerGroup` hands out each time that the group has come to rest.

    ``assignments``: partition -> the offset where it begins. ``generation_id``, ``member_id``, ``group_id``: as the coordinator
    has them. ``ended``: a `threading.Event`, and ``reason`` why, a few words. ``error``: what a function of it raised, or None.

    Guarantees: no other member is assigned these partitions as long as a function of this generation runs and the member keeps
    its session; `ended` is set before the member gives a partition away. Kafka-go: ``Generation``.

    Duty of the caller: functions return soon after `ended` is set. The group waits for them before it joins again, and the
    coordinator puts out a member that keeps it waiting for longer than the rebalance time-out.
    """

    def __init__(
        self,
        group_id: str,
        generation_id: int,
        member_id: str,
        assignments: Mapping[TopicPartition, int],
        *,
        commits: MakesCommits,
        on_commit: Callable[[Committable], None],
        on_function_end: Callable[[Generation], None],
        fetcher: Fetcher,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.assignments: ByPartition[int] = ByPartition(assignments)
        self.ended = threading.Event()
        self.reason = ""
        self.error: BaseException | None = None
        self._commits = commits
        self._on_commit = on_commit
        self._fetcher = fetcher
        self._positions: ByPartition[int] = ByPartition(assignments)
        self._on_function_end = on_function_end
        self._lock = threading.Lock()
        self._running = 0
        self._threads: set[int] = set()
        self._tasks: dict[asyncio.Task[Any], asyncio.AbstractEventLoop] = {}
        self._waiters: list[Callable[[], object]] = []
        self._is_over = False

    def __repr__(self) -> str:
        state = f"ended: {self.reason}" if self.ended.is_set() else f"{len(self.assignments)} partitions"
        return f"<Generation {self.generation_id} of group {self.group_id!r}: {state}>"

    @property
    def id(self) -> int:
        """The generation's number; with the consumer protocol the member epoch in which it began."""
        return self.generation_id

    @property
    def topics(self) -> Mapping[str, tuple[int, ...]]:
        """Topic -> its assigned partitions, ascending."""
        found: dict[str, list[int]] = {}
        for topic, partition in sorted(self.assignments):
            found.setdefault(topic, []).append(partition)
        return {topic: tuple(partitions) for topic, partitions in found.items()}

    def start(self, work: Work) -> None:
        """Run ``work(generation)`` until the generation ends; when it returns first, the generation ends for all.

        A plain function runs in a thread of its own and watches `ended` (or calls `wait`). A coroutine function, started from a
        running event loop, runs as a task there and is cancelled at the end. Started after the end, it runs with `ended` set.
        An exception ends the generation, is kept as `error`, and is raised by the group's next call, or where its `with` ends.

        Raises:
            UsageError: this is no function.
            MisuseError: a coroutine function, and no event loop runs here.
        """
        is_coroutine = inspect.iscoroutinefunction(work)
        if not callable(work):
            raise UsageError(f"start() takes a function of the generation, not {work!r}")
        if is_coroutine and not _loop_runs():
            raise MisuseError(
                f"group '{self.group_id}': a coroutine function is started inside a coroutine, whose event loop runs it; "
                "outside of one, start a plain function"
            )
        with self._lock:
            self._running += 1
        if is_coroutine:
            self._start_task(work(self))
        else:
            threading.Thread(target=self._run, args=(work,), name=f"kgctl-generation-{self.id}", daemon=True).start()

    @checked()
    def wait(self, *, timeout_ms: int | None = None) -> bool:
        """Wait for the end of the generation, at most this long; True when it has ended."""
        return self.ended.wait(None if timeout_ms is None else timeout_ms / 1000)

    async def wait_async(self) -> None:
        """As `wait` without limit, for coroutines."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        self._when_ended(lambda: loop.call_soon_threadsafe(ended.set))
        await ended.wait()

    @checked()
    def commit(self, offsets: Committable) -> None:
        """Commit, in the name of this generation, the next offsets to read; nothing for an empty mapping.

        Offsets may be set back. Also right after `ended` is set, until all functions have returned: that is when to commit what
        was read last.

        Raises:
            UsageError: a key that is no (topic, partition), or an offset below 0.
            GenerationEnded: the partitions were given up before.
            CommitError: the coordinator refused; ``errors`` says which partitions and why.
            UnreachableError: it could not be told whether the offsets were stored.
        """
        if self._commits.may_wait and _loop_runs():
            words = "commit() waits for the coordinator, and the event loop with it: await generation.commit_async(...)"
            warnings.warn(words, RuntimeWarning, stacklevel=3)
        if self._can_commit(offsets):
            self._commits.commit(self, offsets)
            self._on_commit(offsets)

    @checked()
    async def commit_async(self, offsets: Committable) -> None:
        """As `commit`, for coroutines: the event loop goes on meanwhile. Cancelled, it is not known whether it was stored."""
        if self._can_commit(offsets):
            await self._commits.commit_async(self, offsets)
            self._on_commit(offsets)

    @checked()
    def records(self, max_records: int = 500, *, commit: bool = True) -> Records:
        """Read the partitions of this generation, batch by batch until it ends: ``for batch in``, or ``async for batch in``.

        Each batch is a list of at most ``max_records`` `kgctl.results.TopicRecord`s, of one partition or several, in order of
        offsets in each. When the next batch is asked for, the one before counts as dealt with and is committed in the name of
        the generation, the last one too, before the partitions are given away; with ``commit=False`` that is the caller's.
        What was dealt with after the member had lost its session is told by the logger ``kgctl.group`` and read again.

        Only one of them at a time. librdkafka fetches, in threads of its own, committed records only; ``properties`` of the
        group that are librdkafka's alone (``fetch.max.bytes``) are taken.

        Raises, while it is iterated:
            AuthError: this user may not read a topic.
            CommitError, UnreachableError: a batch could not be committed.
            BrokerError, KgctlError: an offset is not there and ``auto_offset_reset`` is none.
            UsageError: fewer than one record.
        """
        if max_records < 1:
            raise UsageError(f"max_records must be 1 or more, not {max_records}")
        return Records(self, self._fetcher, max_records, commit=commit)

    def _can_commit(self, offsets: Committable) -> bool:
        """Whether there is anything to commit. Raises `GenerationEnded`."""
        if not list(offsets.items()):
            return False
        if self._is_over:
            raise GenerationEnded(
                f"generation {self.id} of group '{self.group_id}' is over ({self.reason}): commit before its functions return; "
                "what was not committed is read again by the next owner",
                group=self.group_id,
            )
        return True

    # --- for `ConsumerGroup` alone

    def _end(self, reason: str) -> None:
        """Tell everybody that it is over. Safe to call twice."""
        with self._lock:
            if self.ended.is_set():
                return
            self.reason = reason
            self.ended.set()
            waiters, self._waiters = self._waiters, []
            tasks = dict(self._tasks)
        for waiter in waiters:
            waiter()
        for task, loop in tasks.items():
            loop.call_soon_threadsafe(task.cancel)

    def _when_over(self, done: Callable[[], None]) -> None:
        """Call ``done`` once it has ended and no function runs any more; at once where that is so."""
        with self._lock:
            is_over = self.ended.is_set() and not self._running
            if not is_over:
                self._done = done
        if is_over:
            self._is_over = True
            done()

    def _hold(self) -> None:
        """Count the caller as a running function until `_release`."""
        with self._lock:
            self._running += 1

    def _release(self) -> None:
        """The caller no longer reads. It is no end of the generation."""
        with self._lock:
            self._running -= 1
        self._finish_if_over()

    # --- inside

    _done: Callable[[], None] | None = None

    def _run(self, work: Work) -> None:
        me = threading.get_ident()
        self._threads.add(me)
        try:
            work(self)
        except BaseException as error:  # noqa: BLE001 - raised by the group's next call
            self.error = self.error or error
        finally:
            self._threads.discard(me)
            self._function_ended()

    def _is_asked_inside(self) -> bool:
        """Whether the caller is one of its functions, which must not wait for what waits for it."""
        if threading.get_ident() in self._threads:
            return True
        try:
            return asyncio.current_task() in self._tasks
        except RuntimeError:  # no event loop runs here
            return False

    def _start_task(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(coroutine)
        with self._lock:
            self._tasks[task] = loop
            has_ended = self.ended.is_set()
        task.add_done_callback(self._task_ended)
        if has_ended:
            task.cancel()

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        with self._lock:
            del self._tasks[task]
        if not task.cancelled() and task.exception() is not None:
            self.error = self.error or task.exception()
        self._function_ended()

    def _function_ended(self) -> None:
        with self._lock:
            self._running -= 1
        self._on_function_end(self)
        self._finish_if_over()

    def _finish_if_over(self) -> None:
        with self._lock:
            if not self.ended.is_set() or self._running:
                return
            done, self._done = self._done, None
        if done is not None:
            self._is_over = True
            done()

    def _when_ended(self, waiter: Callable[[], object]) -> None:
        with self._lock:
            has_ended = self.ended.is_set()
            if not has_ended:
                self._waiters.append(waiter)
        if has_ended:
            waiter()
