"""Commits in the name of a generation: with a connection of their own, since a JoinGroup that the coordinator holds back holds up
what follows it on its connection."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kgctl.errors import CommitError, KgctlError, MisuseError, UnreachableError
from kgctl.group.async_lines import AsyncCoordinatorConnection
from kgctl.group.driver import MemberDriver
from kgctl.group.lines import CoordinatorConnection
from kgctl.member.api import MemberState
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Committable, Node, TopicPartition
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, PartitionErrors, Result, offset_to_commit
from kgctl.wire.settings import WireSettings

if TYPE_CHECKING:
    from kgctl.group.generation import Generation

PASSING = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
OVERTAKEN = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.REBALANCE_IN_PROGRESS})
PAUSE_S = 0.1
_SHOWN = 5


class _Rules(ABC):
    """What is sent, and what an answer means; the sockets are those of `Commits` and `AsyncCommits`."""

    def __init__(self, driver: MemberDriver, settings: WireSettings, timeout_ms: int) -> None:
        self._driver = driver
        self._member = driver.member
        self._group_id = driver.member.identity.group_id
        self._settings = settings
        self._timeout_ms = timeout_ms

    def _request(self, generation: Generation, partitions: tuple[OffsetCommitPartition, ...]) -> OffsetCommit:
        current = self._member.generation_id  # may be a later one: cooperative members keep partitions over generations
        return OffsetCommit(
            request_id=0,
            group_id=self._group_id,
            generation_id=max(current, generation.generation_id),
            member_id=generation.member_id,
            group_instance_id=self._member.identity.group_instance_id,
            partitions=partitions,
        )

    def _node(self) -> Node:
        node = self._driver.coordinator
        if node is None:
            raise UnreachableError(f"the coordinator of group '{self._group_id}' is not known at present", group=self._group_id)
        return node

    def _judged(self, request: OffsetCommit, result: Result | UnreachableError) -> KgctlError | None:
        """None: stored. An error that is returned is worth another try, on another connection; all others are raised."""
        if not isinstance(result, UnreachableError):
            refused: KgctlError | None = self._outcome(request, result)
        elif self._driver.has_ended.is_set():
            self._drop()
            raise self._ended(request.partitions, result) from result
        else:
            refused = result
        if refused is not None:
            self._drop()
        return refused

    @abstractmethod
    def _drop(self) -> None:
        """Give the connection up."""

    def _outcome(self, request: OffsetCommit, result: Result) -> CommitError | None:
        """None: stored. An error that is returned is worth another try; all others are raised."""
        assert isinstance(result, PartitionErrors)
        failed = {partition: error for partition, error in result.partitions if error is not ErrorCode.NONE}
        if not failed:
            return None
        refused = _refused(self._group_id, failed)
        if set(failed.values()) <= PASSING or (set(failed.values()) <= OVERTAKEN and self._goes_on(request)):
            return refused
        raise refused

    def _goes_on(self, request: OffsetCommit) -> bool:
        """Whether the member is, or may soon be, in a later generation with these partitions still its own.

        The commit has a connection of its own: that the coordinator has gone on is heard here before the member hears it, whose
        JoinGroup or heartbeat is under way.
        """
        member = self._member
        if member.generation_id > request.generation_id:
            return True
        is_asking = member.state is MemberState.JOINING or not self._driver.is_classic
        return is_asking and {TopicPartition(each.topic, each.partition) for each in request.partitions} <= {
            *member.owned_partitions
        }

    def _ended(self, partitions: tuple[OffsetCommitPartition, ...], unreachable: KgctlError) -> CommitError:
        """The member has learnt elsewhere why it cannot go on (fenced, most often): nobody looks for the coordinator any more."""
        why = self._driver.end_error or unreachable
        return CommitError(
            f"group '{self._group_id}': {len(partitions)} partition(s) were not committed: {why.message}",
            errors={TopicPartition(each.topic, each.partition): why.code for each in partitions},
            code=why.code,
            group=self._group_id,
        )


class Commits(_Rules):
    """Commits in the name of generations; from any thread, one at a time. What passes is tried again within ``timeout_ms``."""

    may_wait = True

    def __init__(self, driver: MemberDriver, settings: WireSettings, timeout_ms: int) -> None:
        super().__init__(driver, settings, timeout_ms)
        self._lock = threading.Lock()
        self._open: tuple[Node, CoordinatorConnection] | None = None
        self._given_up = 0

    def commit(self, generation: Generation, offsets: Committable) -> None:
        """See `Generation.commit`."""
        partitions = _sorted(offsets)
        until_s, given_up = time.monotonic() + self._timeout_ms / 1000, self._given_up
        while True:
            result = self._try_commit(generation, partitions)
            if result is None or time.monotonic() > until_s or self._given_up > given_up:
                break
            time.sleep(PAUSE_S)
        if result is not None:
            raise result

    async def commit_async(self, generation: Generation, offsets: Committable) -> None:
        """As `commit`, in a thread. Cancelled, what is under way is broken off."""
        try:
            await asyncio.to_thread(self.commit, generation, offsets)
        except asyncio.CancelledError:
            self.give_up()
            raise

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
        request = self._request(generation, partitions)
        with self._lock:
            try:
                result: Result | UnreachableError = self._connection().ask(request, self._timeout_ms)
            except UnreachableError as error:
                result = error
            return self._judged(request, result)

    def _drop(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection[1].close()

    def _connection(self) -> CoordinatorConnection:
        """Return a connection of the commits' own: a JoinGroup that is held back holds up everything behind it."""
        node = self._node()
        if self._open is None or self._open[0] != node:
            self._drop()
            self._open = (node, CoordinatorConnection(node, self._settings))
        return self._open[1]


class AsyncCommits(_Rules):
    """As `Commits`, in the event loop; one at a time, in the order in which they are asked for."""

    may_wait = False

    def __init__(self, driver: MemberDriver, settings: WireSettings, timeout_ms: int) -> None:
        super().__init__(driver, settings, timeout_ms)
        self._turn = asyncio.Lock()
        self._open: AsyncCoordinatorConnection | None = None
        self._is_closed = False

    def commit(self, generation: Generation, offsets: Committable) -> None:  # noqa: ARG002 - as `Commits` has it
        """Refused: nobody may wait in the event loop."""
        raise MisuseError(
            f"group '{self._group_id}': this generation is of an AsyncConsumerGroup: await generation.commit_async(...)"
        )

    async def commit_async(self, generation: Generation, offsets: Committable) -> None:
        """See `Generation.commit_async`."""
        partitions = _sorted(offsets)
        until_s = time.monotonic() + self._timeout_ms / 1000
        while True:
            async with self._turn:
                result = await self._try_commit(generation, partitions)
            if result is None:
                return
            if time.monotonic() > until_s or self._is_closed:
                raise result
            await asyncio.sleep(PAUSE_S)

    def close(self) -> None:
        """Break off what is under way, and give the connection back."""
        self._is_closed = True
        self._drop()

    async def _try_commit(self, generation: Generation, partitions: tuple[OffsetCommitPartition, ...]) -> KgctlError | None:
        request = self._request(generation, partitions)
        try:
            result: Result | UnreachableError = await self._connection().ask(request, self._timeout_ms)
        except UnreachableError as error:
            result = error
        return self._judged(request, result)

    def _drop(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.abort()

    def _connection(self) -> AsyncCoordinatorConnection:
        node = self._node()
        if self._open is None or self._open.node != node or self._open.is_aborted:
            self._drop()
            self._open = AsyncCoordinatorConnection(node, self._settings)
        return self._open


def _sorted(offsets: Committable) -> tuple[OffsetCommitPartition, ...]:
    return tuple(sorted((offset_to_commit(*each) for each in offsets.items()), key=lambda each: (each.topic, each.partition)))


def _refused(group_id: str, failed: Mapping[TopicPartition, ErrorCode]) -> CommitError:
    names = sorted({error.name for error in failed.values()})
    shown = ", ".join(map(str, sorted(failed)[:_SHOWN])) + (", ..." if len(failed) > _SHOWN else "")
    return CommitError(
        f"group '{group_id}': {len(failed)} partition(s) were not committed ({shown}): {', '.join(names)}",
        errors={partition: error.name for partition, error in failed.items()},
        code=names[0],
        group=group_id,
    )
