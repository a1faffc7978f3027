"""One generation of a live member: what it may read, the functions that read it, its commits, and its end.

Commits have a connection of their own: a JoinGroup that the coordinator holds back holds up what follows it on its connection.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from kgctl.arguments import checked
from kgctl.errors import AuthError, CommitError, GenerationEnded, KgctlError, MisuseError, UnreachableError, UsageError
from kgctl.group.driver import Driver
from kgctl.group.lines import CoordinatorConnection
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ByPartition, Committable, Node, TopicPartition
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, PartitionErrors, offset_to_commit
from kgctl.wire.settings import WireSettings

Work: TypeAlias = Callable[["Generation"], Any] | Callable[["Generation"], Coroutine[Any, Any, Any]]


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


PASSING = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
OVERTAKEN = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.REBALANCE_IN_PROGRESS})
PAUSE_S = 0.1
_SHOWN = 5


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
        commit: Callable[[Generation, Committable], None],
        give_up: Callable[[], None],
        on_function_end: Callable[[Generation], None],
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.assignments: ByPartition[int] = ByPartition(assignments)
        self.ended = threading.Event()
        self.reason = ""
        self.error: BaseException | None = None
        self._commit = commit
        self._give_up = give_up
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
        An exception ends the generation, is kept as `error`, and is raised by the group's next call.

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
        if _loop_runs():
            words = "commit() waits for the coordinator, and the event loop with it: await generation.commit_async(...)"
            warnings.warn(words, RuntimeWarning, stacklevel=3)
        self._commit_now(offsets)

    @checked()
    async def commit_async(self, offsets: Committable) -> None:
        """As `commit`, for coroutines: the event loop goes on meanwhile. Cancelled, it is not known whether it was stored."""
        try:
            await asyncio.to_thread(self._commit_now, offsets)
        except asyncio.CancelledError:
            self._give_up()
            raise

    def _commit_now(self, offsets: Committable) -> None:
        if not list(offsets.items()):
            return
        if self._is_over:
            raise GenerationEnded(
                f"generation {self.id} of group '{self.group_id}' is over ({self.reason}): commit before its functions return; "
                "what was not committed is read again by the next owner",
                group=self.group_id,
            )
        self._commit(self, offsets)

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


class Commits:
    """Commits in the name of generations; from any thread, one at a time. What passes is tried again within ``timeout_ms``."""

    def __init__(self, driver: Driver, settings: WireSettings, timeout_ms: int) -> None:
        self._driver = driver
        self._member = driver.member
        self._group_id = driver.member.identity.group_id
        self._settings = settings
        self._timeout_ms = timeout_ms
        self._lock = threading.Lock()
        self._open: tuple[Node, CoordinatorConnection] | None = None
        self._given_up = 0

    def commit(self, generation: Generation, offsets: Committable) -> None:
        """See `Generation.commit`."""
        partitions = tuple(
            sorted((offset_to_commit(*each) for each in offsets.items()), key=lambda each: (each.topic, each.partition))
        )
        until_s, given_up = time.monotonic() + self._timeout_ms / 1000, self._given_up
        while True:
            result = self._try_commit(generation, partitions)
            if result is None or time.monotonic() > until_s or self._given_up > given_up:
                break
            time.sleep(PAUSE_S)
        if result is not None:
            raise result

    def give_up(self) -> None:
        """Break off what is under way: whoever waits for it hears that it is not known whether it was stored."""
        self._given_up += 1
        under_way = self._open
        if under_way is not None:
            under_way[1].abort()

    def close(self) -> None:
        """Break off what is under way, and give the connection back."""
        self.give_up()
        with self._lock:
            self._drop()

    def _try_commit(self, generation: Generation, partitions: tuple[OffsetCommitPartition, ...]) -> KgctlError | None:
        """None: stored. An `UnreachableError` or a passing error is worth another try; all others are raised."""
        current = self._member.generation_id  # may be a later one: cooperative members keep partitions over generations
        request = OffsetCommit(
            request_id=0,
            group_id=self._group_id,
            generation_id=max(current, generation.generation_id),
            member_id=generation.member_id,
            group_instance_id=self._member.identity.group_instance_id,
            partitions=partitions,
        )
        with self._lock:
            try:
                result = self._connection().ask(request, self._timeout_ms)
            except AuthError:
                raise
            except UnreachableError as error:
                self._drop()
                if self._driver.has_ended.is_set():
                    raise self._ended(partitions, error) from error
                return error
        assert isinstance(result, PartitionErrors)
        failed = {partition: error for partition, error in result.partitions if error is not ErrorCode.NONE}
        if not failed:
            return None
        refused = _refused(self._group_id, failed)
        if set(failed.values()) <= PASSING:
            self._drop()
            return refused
        if set(failed.values()) <= OVERTAKEN and self._member.generation_id > request.generation_id:
            return refused
        raise refused

    def _ended(self, partitions: tuple[OffsetCommitPartition, ...], unreachable: KgctlError) -> CommitError:
        """The member has learnt elsewhere why it cannot go on (fenced, most often): nobody looks for the coordinator any more."""
        why = self._driver.end_error or unreachable
        return CommitError(
            f"group '{self._group_id}': {len(partitions)} partition(s) were not committed: {why.message}",
            errors={TopicPartition(each.topic, each.partition): why.code for each in partitions},
            code=why.code,
            group=self._group_id,
        )

    def _drop(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection[1].close()

    def _connection(self) -> CoordinatorConnection:
        """Return a connection of the commits' own: a JoinGroup that is held back holds up everything behind it."""
        node = self._driver.coordinator
        if node is None:
            raise UnreachableError(f"the coordinator of group '{self._group_id}' is not known at present", group=self._group_id)
        if self._open is None or self._open[0] != node:
            self._drop()
            self._open = (node, CoordinatorConnection(node, self._settings))
        return self._open[1]


def _refused(group_id: str, failed: Mapping[TopicPartition, ErrorCode]) -> CommitError:
    names = sorted({error.name for error in failed.values()})
    shown = ", ".join(map(str, sorted(failed)[:_SHOWN])) + (", ..." if len(failed) > _SHOWN else "")
    return CommitError(
        f"group '{group_id}': {len(failed)} partition(s) were not committed ({shown}): {', '.join(names)}",
        errors={partition: error.name for partition, error in failed.items()},
        code=names[0],
        group=group_id,
    )
