"""What partitions hold, who waits for more of it, and where transactions are open or were aborted."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from kgctl.errors import StorageError
from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen_in_order
from kgctl.serde.record_batch import BatchHeader, build_marker, iterate_batches, parse_marker
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.storage.batches import read_batches
from kgctl.storage.cleaning import Cleaning, cleaned
from kgctl.storage.record_log import RecordLog, TopicStore


@frozen_in_order
class AbortedTransaction:
    """An aborted transaction's records lie from ``first_offset`` to its marker at ``last_offset``."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class TransactionIndex:
    """Fed with each transactional batch and each marker, in the order of the log. Kafka: ProducerStateManager."""

    open: dict[int, int] = field(default_factory=dict)
    """Producer id to the first offset of its open transaction."""
    aborted: list[AbortedTransaction] = field(default_factory=list)

    def wrote(self, header: BatchHeader, base_offset: int) -> None:
        """A batch was appended; only transactional ones matter."""
        if header.is_transactional and not header.is_control:
            self.open.setdefault(header.producer_id, base_offset)

    def ended(self, marker: TransactionMarker, offset: int) -> None:
        first = self.open.pop(marker.producer_id, None)
        if first is not None and not marker.committed:
            self.aborted.append(AbortedTransaction(marker.producer_id, first, offset))

    def stable_offset(self, end_offset: int) -> int:
        """The last stable offset: where the oldest open transaction begins, or the end."""
        return min(self.open.values(), default=end_offset)

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records among these offsets."""
        return [entry for entry in self.aborted if entry.last_offset >= start and entry.first_offset < end]

    def read(self, batches: bytes) -> int | None:
        """Take a piece of the log in; the offset after it, None for no batch."""
        next_offset = None
        for position, header in iterate_batches(batches):
            self.wrote(header, header.base_offset)
            marker = parse_marker(batches, position) if header.is_control else None
            if marker is not None:
                self.ended(marker, header.base_offset)
            next_offset = header.last_offset + 1
        return next_offset


class DataSignal:
    """Wakes the fetches that wait for data of a partition."""

    def __init__(self) -> None:
        self._waiting: defaultdict[Hashable, set[asyncio.Future[None]]] = defaultdict(set)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0

    @property
    def is_watched(self) -> bool:
        return bool(self._waiting)

    def notify(self, key: Hashable) -> None:
        """Wake who waits for this partition, to which something was appended or which is gone; from whichever thread."""
        if key not in self._waiting:
            return
        if self._loop is not None and threading.get_ident() != self._thread_id:
            self._loop.call_soon_threadsafe(self.notify, key)
            return
        for future in self._waiting.pop(key, ()):
            if not future.done():
                future.set_result(None)

    def notify_all(self) -> None:
        for key in list(self._waiting):
            self.notify(key)

    async def wait(self, keys: Iterable[Hashable], timeout_s: float) -> None:
        """Return when one of the keys is notified, or after the time."""
        with self.watched(keys) as notified:
            await until(notified, timeout_s)

    @contextmanager
    def watched(self, keys: Iterable[Hashable]) -> Iterator[asyncio.Future[None]]:
        """What is done as soon as one of the keys is notified inside the block: partitions, or what else fetches wait for."""
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        future: asyncio.Future[None] = self._loop.create_future()
        watched = list(keys)
        for key in watched:
            self._waiting[key].add(future)
        try:
            yield future
        finally:
            for key in watched:
                self._forget(key, future)

    def _forget(self, key: Hashable, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._waiting[key]


async def until(notified: asyncio.Future[None], timeout_s: float) -> None:
    """Return when it is notified, or after the time."""
    with suppress(TimeoutError):
        await asyncio.wait_for(notified, timeout_s)


T = TypeVar("T")

log = logging.getLogger(__name__)

LEADER_EPOCH = 0
"""Nobody is ever elected here."""

INDEXED_BYTES = 1 << 20

OffsetAndTimestamp = tuple[int, int]


class Worker:
    """One thread, started when it is first needed. After `stop` work is done at once."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return the result of ``work(*arguments)``, done in the worker's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *arguments))

    def stop(self) -> None:
        """End the thread when the work under way is done."""
        self._pool.shutdown(cancel_futures=True)


class PartitionData:
    """Reads and writes partition logs; the caller has checked that the partition exists.

    ``older_values`` shows commits in ``__consumer_offsets`` as Kafka 4.0 wrote them. ``path``: where data lies, None in memory.
    """

    def __init__(
        self, topics: TopicStore, record_log: RecordLog, *, older_values: bool = False, path: Path | None = None
    ) -> None:
        self._topics = topics
        self._log = record_log
        self._older_values = older_values
        self._path = path
        self.signal = DataSignal()
        self.codec = Worker("kgctl-codec")
        """Decodes and encodes what is large."""
        self._worker = Worker("kgctl-data")
        self._trouble = ""
        self._transactions: dict[TopicPartition, TransactionIndex] = {}

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work on partitions in the one thread for it, so that the event loop goes on meanwhile."""
        return await self._worker.run(work, *arguments)

    def stop(self) -> None:
        """End the threads when their work is done."""
        self.codec.stop()
        self._worker.stop()

    def storage_failed(self, error: StorageError) -> ErrorCode:
        """The code for a partition that cannot be read or written. One line, until it works again or something else is wrong."""
        if error.message != self._trouble:
            self._trouble = error.message
            log.error("%s", error.message)
        return ErrorCode.KAFKA_STORAGE_ERROR

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        if partition.topic == OFFSETS_TOPIC:
            return 0, self._log.end_offset(partition.partition)
        return self._topics.log_offsets(partition)

    @property
    def folder(self) -> str:
        """The folder that all partitions lie in, or what stands for it in memory."""
        return "memory" if self._path is None else str(self._path.resolve())

    def room(self) -> dict[str, int]:
        """How large the folder's disk is, and what is free of it; nothing in memory."""
        if self._path is None:
            return {}
        usage = shutil.disk_usage(self._path)
        return {"total_bytes": usage.total, "usable_bytes": usage.free}

    def size(self, partition: TopicPartition) -> int:
        """The bytes of the partition's records."""
        if partition.topic == OFFSETS_TOPIC:
            return sum(len(record.key or b"") + len(record.value or b"") for record in self._log.read(partition.partition))
        return self._topics.log_size(partition)

    def append(self, partition: TopicPartition, batch: bytes, header: BatchHeader, now_ms: int) -> int:
        """Append one record batch; its base offset. Whoever waits for data is told."""
        base_offset = self._topics.append_batch(partition, batch, now_ms)
        if self._trouble:
            log.warning("topics can be written again")
            self._trouble = ""
        if header.is_transactional:
            self._transactions.setdefault(partition, TransactionIndex()).wrote(header, base_offset)
        self.signal.notify(partition)
        return base_offset

    def flush(self) -> None:
        """Make what was appended survive a power cut."""
        self._topics.flush()

    def append_marker(self, partition: TopicPartition, marker: TransactionMarker, now_ms: int) -> None:
        """End the producer's transaction in this partition; nothing happens where it has none open."""
        index = self._transactions.get(partition)
        if index is not None and marker.producer_id in index.open:
            batch = build_marker(marker, 0, now_ms, leader_epoch=LEADER_EPOCH)
            index.ended(marker, self._topics.append_batch(partition, batch, now_ms))
            self.signal.notify(partition)

    def stable_offset(self, partition: TopicPartition, end_offset: int) -> int:
        """The end of what no open transaction can still change."""
        index = self._transactions.get(partition)
        return end_offset if index is None else max(index.stable_offset(end_offset), self.bounds(partition)[0])

    def aborted_between(self, partition: TopicPartition, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records among these offsets."""
        index = self._transactions.get(partition)
        return [] if index is None else index.aborted_between(start, end)

    def index_transactions(self, partition: TopicPartition) -> None:
        """Go through the log of a partition that has transactional records, as a start has to."""
        index = self._transactions[partition] = TransactionIndex()
        offset: int | None = self.bounds(partition)[0]
        while offset is not None:
            offset = index.read(self._topics.read_batches(partition, offset, INDEXED_BYTES))

    def forget(self, topic: str) -> None:
        for partition in [partition for partition in self._transactions if partition.topic == topic]:
            del self._transactions[partition]
        self.signal.notify_all()

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Whole batches from ``offset`` on: at least one where there is any, then as many as fit."""
        if partition.topic == OFFSETS_TOPIC:
            return read_batches(self._log, partition.partition, offset, max_bytes, older_values=self._older_values)
        return self._topics.read_batches(partition, offset, max_bytes)

    def offsets_appended(self, partitions: int) -> None:
        """The coordinator wrote to its log: wake who reads it."""
        if self.signal.is_watched:
            for partition in range(partitions):
                self.signal.notify(TopicPartition(OFFSETS_TOPIC, partition))

    def delete_records(self, partition: TopicPartition, offset: int) -> None:
        self._topics.set_log_start(partition, offset)

    def written_partitions(self, topic: str) -> Sequence[TopicPartition]:
        """Return the partitions of a topic of the users' that anything was ever written to."""
        return self._topics.written_partitions(topic)

    def uncleanable_offset(self, partition: TopicPartition, newest_ms: int | None) -> int:
        """Where an open transaction begins, or a batch that is newer than ``newest_ms``; the log's end where neither does."""
        stable = self.stable_offset(partition, self.bounds(partition)[1])
        headers = (header for _, header in self._batches(partition)) if newest_ms is not None else iter(())
        return min(next((each.base_offset for each in headers if each.max_timestamp_ms > (newest_ms or 0)), stable), stable)

    def clean(self, partition: TopicPartition, cleaning: Cleaning) -> int:
        """Compact a log; how many records went. Raises `UnsupportedCompressionError`; then nothing is changed."""
        found = cleaned((batch for batch, _ in self._batches(partition)), cleaning)
        self._topics.rewrite_batches(partition, found.changes)
        index = self._transactions.get(partition, TransactionIndex())
        for gone in [each for each in index.aborted if each.last_offset < cleaning.bound]:
            index.aborted.remove(gone)
        return found.removed

    def expired_until(self, partition: TopicPartition, oldest_ms: int | None, most_bytes: int | None) -> int:
        """Where the log should begin: after batches that are older than ``oldest_ms``, then at its newest ``most_bytes``.

        What has no time is never old: Kafka takes its file's.
        """
        start, end = self.bounds(partition)
        too_many = 0 if most_bytes is None else self.size(partition) - most_bytes
        is_old = oldest_ms is not None
        for _, header in self._batches(partition):
            is_old = is_old and 0 <= header.max_timestamp_ms < (oldest_ms or 0)
            if not is_old and (most_bytes is None or header.size_bytes > too_many):
                return max(start, header.base_offset)
            too_many -= header.size_bytes
        return end

    def _batches(self, partition: TopicPartition) -> Iterator[tuple[bytes, BatchHeader]]:
        """Every batch of a topic of the users', from the log's start on."""
        offset, end = self.bounds(partition)
        while offset < end:
            batches = self._topics.read_batches(partition, offset, INDEXED_BYTES)
            for position, header in iterate_batches(batches):
                yield batches[position : position + header.size_bytes], header
                offset = header.last_offset + 1
            if not batches:
                return

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> OffsetAndTimestamp | None:
        """The first record that is not older than ``timestamp_ms``."""
        if partition.topic != OFFSETS_TOPIC:
            return self._topics.offset_for_timestamp(partition, timestamp_ms)
        found = (record for record in self._log.read(partition.partition) if record.timestamp_ms >= timestamp_ms)
        return next(((record.offset, record.timestamp_ms) for record in found), None)

    def offset_of_max_timestamp(self, partition: TopicPartition) -> OffsetAndTimestamp | None:
        if partition.topic != OFFSETS_TOPIC:
            return self._topics.offset_of_max_timestamp(partition)
        newest = max(self._log.read(partition.partition), key=lambda record: (record.timestamp_ms, -record.offset), default=None)
        return None if newest is None else (newest.offset, newest.timestamp_ms)
