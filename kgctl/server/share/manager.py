"""The share partitions that a broker leads: what members have acquired of them, kept by the persister, in real time.

`kgctl.share.partition.SharePartition` decides; here its effects are performed, and one timer of the loop serves all of a
broker's acquisition locks. Kafka: SharePartitionManager, SharePartitionCache.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from kgctl.coordinator.config import GroupConfig
from kgctl.errors import NotFoundError
from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.share import FROM_EARLIEST, FROM_LATEST, NO_START_OFFSET, PartitionState, SharePartitionKey, reset_age_ms
from kgctl.server.partition_data import LEADER_EPOCH, PartitionData
from kgctl.server.runtime import Clock
from kgctl.server.share.persister import Persister
from kgctl.server.share.sessions import SessionKey, ShareSession, ShareSessions, TopicIdPartition
from kgctl.share.partition import (
    AcknowledgementBatch,
    Effect,
    FetchesMayComplete,
    ReadState,
    ShareDone,
    ShareFailure,
    SharePartition,
    ShareSettings,
    WriteState,
)
from kgctl.share.state.shard import StateRefusal

log = logging.getLogger(__name__)

NOT_HERE, NOT_LEADER = (
    ShareFailure(error, KAFKAS_WORDS[error]) for error in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
)
FAILED = ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR)


class WholeRequestFailed(Exception):  # noqa: N818 - an answer
    """What is wrong with one partition is the answer to all of the request."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


Outcome = ShareFailure | None
Leads = Callable[[TopicIdPartition], TopicPartition | None]
"""The partition by its topic's name, where this broker leads it."""


class SharePartitionManager:
    """What one broker does for share groups. Everything happens in the event loop's thread; records are read beside it."""

    def __init__(
        self,
        data: PartitionData,
        clock: Clock,
        persister: Persister,
        *,
        settings: Callable[[str], GroupConfig],
        leads: Leads,
        max_sessions: int,
    ) -> None:
        """``settings`` are those of a group."""
        self.data = data
        self.clock = clock
        self.group_settings = settings
        self.sessions = ShareSessions(max_sessions, self.release_session, self.drop_group)
        self._persister = persister
        self._leads = leads
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self._waiting: dict[int, tuple[SharePartitionKey, asyncio.Future[Outcome]]] = {}
        self._tickets = itertools.count(1)
        self._deadlines: list[tuple[int, int, SharePartitionKey]] = []
        self._armed: dict[SharePartitionKey, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._looking_up: set[asyncio.Future[None]] = set()
        self._is_stopped = False

    def find(self, group_id: str, partition: TopicIdPartition) -> SharePartition | None:
        """What is known of a partition that this broker leads; one that it leads no longer is forgotten."""
        key = SharePartitionKey(group_id, *partition)
        if key in self._partitions and self._leads(partition) is None:
            self.drop(key)
        return self._partitions.get(key)

    def place(self, partition: TopicIdPartition) -> TopicPartition | None:
        """Where its records are, if this broker leads it."""
        return self._leads(partition)

    def find_or_make(self, group_id: str, partition: TopicIdPartition) -> SharePartition | None:
        """The share partition, or None where this broker does not lead the partition."""
        key, place = SharePartitionKey(group_id, *partition), self._leads(partition)
        if place is None or self._is_stopped:
            self.drop(key)
            return None
        if key not in self._partitions:
            self._partitions[key] = SharePartition(key, place.topic, LEADER_EPOCH, self._settings_of(group_id))
        found = self._partitions[key]
        found.settings = self._settings_of(group_id)
        return found

    def initialize(self, share_partition: SharePartition, when_failed: Callable[[ShareFailure], None]) -> None:
        """Let its state be read, if that has not happened yet. One that cannot be is forgotten, to be tried again."""
        key = share_partition.key
        done = self._begin(key, share_partition.maybe_initialize)
        was_done = done.done()

        def ended(done: asyncio.Future[Outcome]) -> None:
            failure = done.result()
            if failure is not None and failure.error is not ErrorCode.LEADER_NOT_AVAILABLE:
                self.drop(key)
                when_failed(failure)
            if not was_done:
                self.wake(key)

        if was_done:
            ended(done)
        else:
            done.add_done_callback(ended)

    def acknowledge(
        self, who: SessionKey, batches: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]]
    ) -> Mapping[TopicIdPartition, Outcome | Awaitable[Outcome]]:
        """What comes of it for each partition, at once or later. Raises `WholeRequestFailed`."""

        def acknowledged(share_partition: SharePartition, partition: TopicIdPartition, ticket: int) -> list[Effect]:
            return share_partition.acknowledge(ticket, who.member_id, batches[partition], self.clock())

        return self._for_each(who.group_id, batches, acknowledged)

    def release_session(self, who: SessionKey) -> None:
        """End a member's session; what it has acquired can be acquired again. Kafka: SharePartitionManager#releaseSession."""
        session = self.sessions.remove(who)
        partitions = () if session is None else tuple(session.partitions)

        def released(share_partition: SharePartition, _: TopicIdPartition, ticket: int) -> list[Effect]:
            return share_partition.release_acquired_records(ticket, who.member_id, self.clock())

        try:
            self._for_each(who.group_id, partitions, released)
        except WholeRequestFailed as failed:
            log.error("what %s of group %s has acquired could not be released: %s", who.member_id, who.group_id, failed)

    def _for_each(
        self,
        group_id: str,
        partitions: Iterable[TopicIdPartition],
        act: Callable[[SharePartition, TopicIdPartition, int], list[Effect]],
    ) -> Mapping[TopicIdPartition, Outcome | Awaitable[Outcome]]:
        results: dict[TopicIdPartition, Outcome | Awaitable[Outcome]] = {}
        for partition in partitions:
            share_partition = self.find(group_id, partition)
            if share_partition is None:
                results[partition] = NOT_HERE
                continue
            share_partition.settings = self._settings_of(group_id)
            key = share_partition.key
            done = self._begin(key, partial(act, share_partition, partition))
            if done.done() and (failure := done.result()) is not None and failure.whole_request:
                raise WholeRequestFailed(failure.error)
            done.add_done_callback(partial(self._over, key))
            results[partition] = done.result() if done.done() else done
        return results

    def _over(self, key: SharePartitionKey, done: asyncio.Future[Outcome]) -> None:
        """Let fetches look again: Kafka does so at once, which is too early where the persister takes its time."""
        failure = None if done.cancelled() else done.result()
        if failure is not None:
            self.failed(key, failure)
        self.wake(key)

    def failed(self, key: SharePartitionKey, failure: ShareFailure) -> None:
        """Forget a share partition whose failure says that this broker is not the one to ask any more."""
        if failure.fences:
            self.drop(key)

    def drop(self, key: SharePartitionKey) -> None:
        """Forget a share partition; fetches that wait for it look again."""
        share_partition = self._partitions.pop(key, None)
        if share_partition is not None:
            share_partition.mark_fenced()
            self._armed.pop(key, None)
            self.wake(key)

    def drop_group(self, group_id: str) -> None:
        """Forget a group that has no more members here; what it has acknowledged is kept."""
        for key in [key for key in self._partitions if key.group_id == group_id]:
            self.drop(key)

    def drop_all(self) -> None:
        """The broker leads nothing any more."""
        for key in list(self._partitions):
            self.drop(key)

    def topics_changed(self) -> None:
        """Forget partitions that are gone."""
        for key in list(self._partitions):
            self.find(key.group_id, TopicIdPartition(key.topic_id, key.partition))

    def wake(self, key: SharePartitionKey) -> None:
        """Let fetches that wait for this share partition look at it again."""
        self.data.signal.notify(key)

    def of_session(self, session: ShareSession) -> list[SharePartition]:
        """The share partitions of a session that are known."""
        group_id = session.key.group_id
        return [found for each in session.partitions if (found := self.find(group_id, each)) is not None]

    def _settings_of(self, group_id: str) -> ShareSettings:
        return ShareSettings.of(self.group_settings(group_id))

    def _begin(self, key: SharePartitionKey, act: Callable[[int], list[Effect]]) -> asyncio.Future[Outcome]:
        """Do something whose end is told with a ticket; the future of its end."""
        ticket = next(self._tickets)
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = key, done
        self.perform(key, act(ticket))
        return done

    def _do(self, key: SharePartitionKey, act: Callable[[], list[Effect]]) -> None:
        """What nobody waits for at this place. A failure is the share partition's own: it is forgotten, its locks end with it."""
        try:
            self.perform(key, act())
        except Exception:
            log.exception("a share partition failed and is read anew: %s", key)
            self.drop(key)
            for ticket in [ticket for ticket, (whose, _) in self._waiting.items() if whose == key]:
                self._end(ticket, FAILED)

    def _end(self, ticket: int, failure: Outcome) -> None:
        _, done = self._waiting.pop(ticket, (None, None))
        if done is not None and not done.done():
            done.set_result(failure)

    def perform(self, key: SharePartitionKey, effects: Iterable[Effect]) -> None:
        """Do what a share partition wants done, and watch the time for it."""
        for effect in effects:
            match effect:
                case ReadState():
                    self._read(key, effect)
                case WriteState():
                    self._write(key, effect)
                case ShareDone():
                    self._end(effect.ticket, effect.failure)
                case FetchesMayComplete():
                    self.wake(key)
        self.watch(key)

    def _read(self, key: SharePartitionKey, effect: ReadState) -> None:
        found = self._persister.read(key, effect.leader_epoch)
        self._persister.after_writes(partial(self._was_read, key, found))

    def _was_read(self, key: SharePartitionKey, found: PartitionState | StateRefusal, lost: StateRefusal | None) -> None:
        share_partition = self._partitions.get(key)
        if share_partition is None:
            return
        refusal = lost or (found if isinstance(found, StateRefusal) else None)
        if refusal is not None or not isinstance(found, PartitionState):
            assert refusal is not None
            self._do(key, partial(share_partition.read, refusal.error, refusal.message))
        elif found.start_offset == NO_START_OFFSET:
            task = asyncio.ensure_future(self._read_at_reset(share_partition, found))
            self._looking_up.add(task)
            task.add_done_callback(self._looking_up.discard)
        else:
            self._do(key, partial(share_partition.read, found))

    async def _read_at_reset(self, share_partition: SharePartition, found: PartitionState) -> None:
        """The group has not begun yet: where its settings say that it is to begin."""
        key = share_partition.key
        place = self._leads(TopicIdPartition(key.topic_id, key.partition))
        how = self.group_settings(key.group_id).share_auto_offset_reset
        reset: int | ShareFailure = NOT_LEADER
        if place is not None:
            reset = await self.data.in_thread(_reset_offset, self.data, place, how, self.clock())
        if self._partitions.get(key) is share_partition:
            self._do(key, partial(share_partition.read, found, reset_offset=reset))

    def _write(self, key: SharePartitionKey, effect: WriteState) -> None:
        refusal = self._persister.write(key, effect.change)
        share_partition = self._partitions.get(key)
        self._persister.after_writes(partial(self._was_written, key, share_partition, effect.token, refusal))

    def _was_written(
        self,
        key: SharePartitionKey,
        share_partition: SharePartition | None,
        token: int,
        refusal: StateRefusal | None,
        lost: StateRefusal | None,
    ) -> None:
        if share_partition is not None:
            told = lost or (refusal and StateRefusal(refusal.error, f"Error in write state RPC. {refusal.message}"))
            error = (ErrorCode.NONE, None) if told is None else (told.error, told.message)
            self._do(key, partial(share_partition.written, token, *error))

    def watch(self, key: SharePartitionKey) -> None:
        """See to it that the locks of this share partition end in time."""
        share_partition = self._partitions.get(key)
        deadline_ms = None if share_partition is None else share_partition.next_deadline_ms()
        if deadline_ms is not None and deadline_ms < self._armed.get(key, deadline_ms + 1):
            self._armed[key] = deadline_ms
            heapq.heappush(self._deadlines, (deadline_ms, next(self._tickets), key))
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._deadlines:
            delay_ms = max(0, self._deadlines[0][0] - self.clock())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self.fire_due)

    def fire_due(self) -> None:
        """End the locks that are due now."""
        now_ms = self.clock()
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            deadline_ms, _, key = heapq.heappop(self._deadlines)
            if self._armed.get(key) == deadline_ms:
                del self._armed[key]
                share_partition = self._partitions.get(key)
                if share_partition is not None:
                    self._do(key, partial(share_partition.expire, now_ms))
        self._set_timer()

    def stop(self) -> None:
        """Forget everything: fetches that wait look again and find nothing, the time is not looked at any more."""
        self._is_stopped = True
        self.drop_all()
        self._deadlines.clear()
        self._set_timer()


def _reset_offset(data: PartitionData, partition: TopicPartition, how: str, now_ms: int) -> int | ShareFailure:
    """The offset that ``share.auto.offset.reset`` stands for now. Kafka: SharePartition#startOffsetDuringInitialization."""
    try:
        start, end = data.bounds(partition)
        if how in (FROM_EARLIEST, FROM_LATEST):
            return start if how == FROM_EARLIEST else end
        timestamp_ms = now_ms - reset_age_ms(how)
        found = data.offset_for_timestamp(partition, timestamp_ms)
    except NotFoundError:  # deleted meanwhile
        return ShareFailure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    if found is None:
        return ShareFailure(ErrorCode.OFFSET_NOT_AVAILABLE, f"Offset for timestamp {timestamp_ms} not found")
    return found[0]
