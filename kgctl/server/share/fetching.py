"""One share fetch: it waits until its member can acquire something, or its time is up. Kafka: DelayedShareFetch, ShareFetchUtils.

A fetch takes the locks of the share partitions that have anything to give, reads the log beside the event loop, and acquires what
it has read. While it holds these locks other fetches of the group look elsewhere, or wait for them.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from kgctl.errors import NotFoundError, StorageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen_in_order
from kgctl.serde.record_batch import iterate_batches, parse_marker
from kgctl.server.partition_data import PartitionData, until
from kgctl.server.share.manager import NOT_LEADER, SharePartitionManager
from kgctl.server.share.sessions import SessionKey, TopicIdPartition
from kgctl.share.partition import (
    Aborted,
    Acquired,
    AcquireMode,
    FetchedBatch,
    ShareFailure,
    SharePartition,
    sliced,
)

log = logging.getLogger(__name__)

_fetch_ids = itertools.count(1)


@frozen_in_order
class FetchWish:
    """What a share fetch asks for. ``max_bytes`` is what the server gives at most, too."""

    who: SessionKey
    partitions: Sequence[TopicIdPartition]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: AcquireMode
    is_read_committed: bool


class Granted(NamedTuple):
    """What a fetch gives of one partition: batches, and which of their records are acquired; or why nothing."""

    error: ErrorCode = ErrorCode.NONE
    records: bytes = b""
    acquired: Acquired = Acquired()


class LogRead(NamedTuple):
    """What was found in a log: batches from the wanted offset on. ``error``: why there are none."""

    error: ErrorCode = ErrorCode.NONE
    records: bytes = b""
    batches: Sequence[FetchedBatch] = ()
    positions: Sequence[int] = ()
    aborted: Sequence[Aborted] = ()
    is_behind: bool = False
    """The offset lies behind what may be given: nothing is to be waited for."""


class LogWish(NamedTuple):
    """What is to be read of a partition."""

    place: TopicPartition
    offset: int
    max_bytes: int
    is_read_committed: bool


@dataclass(slots=True)
class ShareFetch:
    """A fetch under way."""

    manager: SharePartitionManager
    wish: FetchWish
    fetch_id: int = field(default_factory=lambda: next(_fetch_ids))
    _failed: dict[TopicIdPartition, ErrorCode] = field(default_factory=dict)
    _shared: dict[TopicIdPartition, SharePartition] = field(default_factory=dict)

    async def run(self) -> Mapping[TopicIdPartition, Granted]:
        """Wait for it; what is given of each partition that has something to say."""
        wish = self.wish
        if not wish.partitions or wish.max_records == 0 or wish.max_bytes == 0:
            return {}
        self._find()
        if len(self._failed) == len(wish.partitions):
            return self._with_failed({})
        deadline_ms = self.manager.clock() + wish.max_wait_ms
        while self.manager.clock() < deadline_ms:
            with self.manager.data.signal.watched(self._watched()) as notified:  # from here on: nothing is missed meanwhile
                given = await self._attempt(wish.min_bytes)
                if given is not None:
                    return given
                await until(notified, (deadline_ms - self.manager.clock()) / 1000)
        given = await self._attempt(least_bytes=None)
        return self._with_failed({}) if given is None else given

    def _find(self) -> None:
        for partition in self.wish.partitions:
            shared = self.manager.find_or_make(self.wish.who.group_id, partition)
            if shared is None:
                self._failed[partition] = NOT_LEADER.error
                continue
            self._shared[partition] = shared
            self.manager.initialize(shared, partial(self._fail, partition))

    def _fail(self, partition: TopicIdPartition, failure: ShareFailure) -> None:
        self._failed[partition] = failure.error

    def _with_failed(self, given: Mapping[TopicIdPartition, Granted]) -> Mapping[TopicIdPartition, Granted]:
        return {**given, **{partition: Granted(error) for partition, error in self._failed.items()}}

    def _watched(self) -> Iterable[Any]:
        for partition, shared in self._shared.items():
            yield shared.key
            if (place := self.manager.place(partition)) is not None:
                yield place

    async def _attempt(self, least_bytes: int | None) -> Mapping[TopicIdPartition, Granted] | None:
        """Acquire what there is; None where it is less than ``least_bytes``, None for: whatever there is."""
        offsets = self._lock()
        is_done = False
        try:
            if offsets and self.wish.max_bytes < 0:  # Kafka: PartitionMaxBytesStrategy#checkValidArguments
                is_done = True
                return self._with_failed(self._all_failed(offsets, ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR)))
            read = await self._read(offsets)
            if offsets and (least_bytes is None or self._is_enough(read, least_bytes)):
                is_done = True
                return self._with_failed(self._acquire(offsets, read))
            return None
        finally:
            self._unlock(offsets, is_done=is_done)

    def _lock(self) -> dict[TopicIdPartition, int]:
        """Take the fetch locks that can be had; where each of these partitions goes on."""
        offsets = {}
        for partition, shared in self._shared.items():
            if shared.maybe_acquire_fetch_lock(self.fetch_id):
                if shared.can_acquire_records():
                    offsets[partition] = shared.next_fetch_offset()
                else:
                    shared.release_fetch_lock(self.fetch_id)
        return offsets

    def _unlock(self, offsets: Iterable[TopicIdPartition], *, is_done: bool) -> None:
        for partition in offsets:
            self._shared[partition].release_fetch_lock(self.fetch_id)
        if is_done:
            for partition in offsets:
                self.manager.wake(self._shared[partition].key)

    async def _read(self, offsets: Mapping[TopicIdPartition, int]) -> dict[TopicIdPartition, LogRead]:
        wishes = {}
        limits = _uniform(self.wish.max_bytes, len(offsets), self.fetch_id)
        for (partition, offset), limit in zip(offsets.items(), limits, strict=True):
            place = self.manager.place(partition)
            if partition in self._failed:
                continue
            if place is None:
                self._fail(partition, NOT_LEADER)
                continue
            wishes[partition] = LogWish(place, offset, limit, self.wish.is_read_committed)
        data = self.manager.data
        if all(_has_nothing(data, each) for each in wishes.values()):
            return {partition: LogRead() for partition in wishes}
        found = await data.in_thread(_read_all, data, list(wishes.values()), self.wish.max_bytes)
        return dict(zip(wishes, found, strict=True))

    def _is_enough(self, read: Mapping[TopicIdPartition, LogRead], least_bytes: int) -> bool:
        if any(each.error is not ErrorCode.NONE or each.is_behind for each in read.values()):
            return True
        return sum(len(each.records) for each in read.values()) >= least_bytes

    def _acquire(self, offsets: Mapping[TopicIdPartition, int], read: Mapping[TopicIdPartition, LogRead]) -> dict[Any, Granted]:
        given: dict[TopicIdPartition, Granted] = {}
        left = self.wish.max_records
        for partition, found in read.items():
            granted = self._acquired(partition, offsets[partition], found, left)
            if granted is None:
                continue
            given[partition] = granted
            left -= granted.acquired.count
            if granted.acquired.failure is not None:  # Kafka: DelayedShareFetch#handleFetchException
                return self._all_failed(offsets, granted.acquired.failure)
        return given

    def _acquired(self, partition: TopicIdPartition, offset: int, found: LogRead, left: int) -> Granted | None:
        shared, wish = self._shared[partition], self.wish
        if found.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._moved_on(partition, shared)
        if found.error is not ErrorCode.NONE:
            return Granted(found.error)
        acquired = shared.acquire(
            wish.who.member_id,
            wish.mode,
            batch_size=wish.batch_size,
            max_fetch_records=left,
            fetch_offset=offset,
            batches=found.batches,
            now_ms=self.manager.clock(),
            aborted=found.aborted,
        )
        self.manager.watch(shared.key)
        if not acquired.records or acquired.failure is not None:
            return Granted(acquired=acquired)
        return Granted(records=_cut(found, sliced(found.batches, acquired)), acquired=acquired)

    def _moved_on(self, partition: TopicIdPartition, shared: SharePartition) -> Granted | None:
        """The log begins later by now: so does the group, and the client asks again."""
        place = self.manager.place(partition)
        if place is None:
            self._fail(partition, NOT_LEADER)
            self.manager.failed(shared.key, NOT_LEADER)
            return None
        shared.update_cache_and_offsets(self.manager.data.bounds(place)[0])
        return Granted()

    def _all_failed(self, offsets: Iterable[TopicIdPartition], failure: ShareFailure) -> dict[Any, Granted]:
        for partition in offsets:
            self.manager.failed(self._shared[partition].key, failure)
            self._fail(partition, failure)
        return {}


def _uniform(max_bytes: int, count: int, turn: int) -> list[int]:
    """How many bytes each partition may give; what is left over goes to one of them, by ``turn``.

    Kafka: PartitionMaxBytesStrategy, of which there is one, and where chance says to which.
    """
    if not count:
        return []
    if max_bytes < count:
        chosen = {(turn + step) % count for step in range(max(max_bytes, 0))}
        return [int(place in chosen) for place in range(count)]
    limits = [max_bytes // count] * count
    limits[turn % count] += max_bytes % count
    return limits


def _has_nothing(data: PartitionData, wish: LogWish) -> bool:
    """Whether the log ends where the group goes on."""
    try:
        return data.bounds(wish.place)[1] == wish.offset
    except NotFoundError:
        return False


def _read_all(data: PartitionData, wishes: Sequence[LogWish], max_bytes: int) -> list[LogRead]:
    """In the data's thread. The first batch is given however large it is, and what comes after it as far as there is room."""
    found: list[LogRead] = []
    left, has_some = max_bytes, False
    for wish in wishes:
        limit = min(wish.max_bytes, left)
        read = _read_one(data, wish, limit, is_first=not has_some)
        has_some = has_some or bool(read.records)
        left = max(left - len(read.records), 0)
        found.append(read)
    return found


def _read_one(data: PartitionData, wish: LogWish, limit: int, *, is_first: bool) -> LogRead:
    try:
        start, end = data.bounds(wish.place)
        if not start <= wish.offset <= end:
            return LogRead(ErrorCode.OFFSET_OUT_OF_RANGE)
        upper = data.stable_offset(wish.place, end) if wish.is_read_committed else end
        if wish.offset >= upper:
            return LogRead(is_behind=wish.offset > upper)
        records = data.read(wish.place, wish.offset, max(limit, 0))
        aborted = data.aborted_between(wish.place, wish.offset, upper) if wish.is_read_committed else ()
    except NotFoundError:
        return LogRead(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except StorageError as failure:
        return LogRead(data.storage_failed(failure))
    return _described(records, upper, limit if not is_first else None, aborted)


def _described(records: bytes, upper: int, limit: int | None, aborted: Sequence[Aborted]) -> LogRead:
    """The batches below ``upper``; none where the first of them is above ``limit``."""
    batches, positions, end = [], [], 0
    for position, header in iterate_batches(records):
        if header.base_offset >= upper or (limit is not None and position + header.size_bytes > limit):
            break
        marker = parse_marker(records, position) if header.is_control else None
        batches.append(
            FetchedBatch(
                header.base_offset,
                header.last_offset,
                header.producer_id,
                header.is_transactional,
                marker is not None and not marker.committed,
            )
        )
        positions.append(position)
        end = position + header.size_bytes
    return LogRead(records=records[:end], batches=batches, positions=positions, aborted=aborted)


def _cut(found: LogRead, which: slice) -> bytes:
    """The bytes of these batches."""
    begin, end, _ = which.indices(len(found.batches))
    last = found.positions[end] if end < len(found.positions) else len(found.records)
    return found.records[found.positions[begin] : last]
