"""The event loop as the driver of one member: no thread, no queue; what happens is a callback or a task of the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from kgctl.errors import KgctlError
from kgctl.group.async_lines import AsyncCoordinatorConnection, AsyncErrands
from kgctl.group.driver import LEAVE_MS, Asked, Event, MemberDriver
from kgctl.member.api import FindCoordinator, ListOffsets, ListOffsetsResult, MemberIdentity, NetworkError, RefreshMetadata, Send
from kgctl.member.config import MemberConfig
from kgctl.model.groups import Node
from kgctl.model.requests import JoinGroupResult, Request
from kgctl.wire.settings import WireSettings

Work = Callable[[], Coroutine[Any, Any, None]]


class AsyncDriver(MemberDriver):
    """Made and used in one running loop; only `post` may be called from other threads."""

    def __init__(self, config: MemberConfig, identity: MemberIdentity, settings: WireSettings, timeout_ms: int) -> None:
        super().__init__(config, identity, settings, timeout_ms)
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._errands = AsyncErrands(identity.group_id, settings, timeout_ms)
        self._connection: AsyncCoordinatorConnection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._all_over = asyncio.Event()

    def post(self, event: Event) -> None:
        """Let the loop do this call of the member, in order."""
        call = self._loop.call_soon if threading.get_ident() == self._thread_id else self._loop.call_soon_threadsafe
        call(self._happens, event)

    async def join(self, timeout_s: float) -> bool:
        """Wait for the end, the last task included; False where it did not come in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._all_over.wait()
        except TimeoutError:
            return False
        return True

    def _happens(self, event: Event | None) -> None:
        if not self._is_ending:
            self._step(event)
        if self._timer is not None:
            self._timer.cancel()
        due_us = self.member.next_deadline_us()
        if due_us is not None and not self._is_ending:
            self._timer = self._loop.call_later(max(0.0, (due_us - self.now_us()) / 1e6), self._happens, None)

    def _ask(self, action: Asked) -> None:
        match action:
            case Send():
                self._spawn(self._send(action.correlation_id, action.request))
            case FindCoordinator():
                self._spawn(self._errand(action.correlation_id, partial(self._find_coordinator, action.correlation_id)))
            case RefreshMetadata():
                self._spawn(self._errand(action.correlation_id, self._refresh))
            case ListOffsets():
                self._spawn(self._errand(action.correlation_id, partial(self._list_offsets, action)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self._is_ending:
            self._bug(error)

    # --- what it asks

    async def _errand(self, correlation_id: int, work: Work, then: Callable[[], None] = lambda: None) -> None:
        try:
            await work()
        except KgctlError as error:
            self._errand_failed(correlation_id, error)
        else:
            self.last_error, self._warned = None, ""
            then()

    async def _find_coordinator(self, correlation_id: int) -> None:
        self._found(correlation_id, await self._errands.find_coordinator())

    async def _refresh(self) -> None:
        image = await self._errands.metadata(self._own_topics(), self._led_topics)
        self.post(lambda: self.member.on_metadata(image, self.now_us()))

    async def _list_offsets(self, action: ListOffsets) -> None:
        offsets = await self._errands.list_offsets(action.partitions, action.strategy)
        self._answer(action.correlation_id, ListOffsetsResult(offsets))

    async def _send(self, correlation_id: int, request: Request) -> None:
        connection = self._connection
        if connection is None:
            self._answer(correlation_id, NetworkError(correlation_id))
            return
        self._parked = request
        try:
            answer = await connection.ask(request)
        except KgctlError as error:
            self._unanswered(error)
            self._answer(correlation_id, NetworkError(correlation_id))
            return
        finally:
            self._parked = None
        if isinstance(answer, JoinGroupResult) and self._lacks_topics_of(answer):
            await self._errand(correlation_id, self._refresh, then=lambda: self._answer(correlation_id, answer))
        else:
            self._answer(correlation_id, answer)

    def _use_coordinator(self, node: Node) -> None:
        self._drop_coordinator()
        self.coordinator = node
        self._connection = AsyncCoordinatorConnection(node, self._settings)

    def _drop_coordinator(self) -> None:
        if self._connection is not None:
            self._connection.abort()
        self._connection = self.coordinator = None

    # --- the end

    def _send_beside(self, node: Node, request: Request) -> None:
        self._spawn(self._send_at_once(node, request))

    def _finish(self, error: KgctlError | None, node: Node | None, leaving: Request | None) -> None:
        self._loop.create_task(self._ended(error, node, leaving))

    async def _ended(self, error: KgctlError | None, node: Node | None, leaving: Request | None) -> None:
        if node is not None and leaving is not None:
            await self._send_at_once(node, leaving)
        self.has_ended.set()
        self._errands.close()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        _, late = await asyncio.wait(tasks, timeout=LEAVE_MS / 1000) if tasks else ((), ())
        for task in late:
            task.cancel()
        self._listener.on_end(error)
        await asyncio.sleep(0)  # transports that were closed are gone after a turn of the loop
        self._all_over.set()

    async def _send_at_once(self, node: Node, request: Request) -> None:
        connection = AsyncCoordinatorConnection(node, self._settings)
        try:
            await connection.ask(request, min(self._timeout_ms, LEAVE_MS))
        except KgctlError as error:
            self.last_error = error
        finally:
            connection.abort()
