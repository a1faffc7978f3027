"""The share coordinator of this process: the state of share partitions in memory, its records in ``__share_group_state``.

Kafka: DefaultStatePersister and ShareCoordinatorService, without the requests between brokers. The topic is made when something
is first kept, and is one like the users': consumers read it, and its log begins where its records are needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from uuid import UUID

from kgctl.errors import NotFoundError, StorageError
from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.model.groups import MetadataImage, TopicMetadata, TopicPartition
from kgctl.model.share import PartitionState, SharePartitionKey, ShareStateRecord
from kgctl.serde.record_batch import (
    CorruptBatchError,
    Record,
    UnsupportedCompressionError,
    build_batch,
    iterate_batches,
    iterate_records,
    parse_header,
    record_size,
)
from kgctl.serde.record_schema import RecordDecodeError, RecordEncodeError
from kgctl.serde.share_state_records import decode_record, encode_record
from kgctl.server.cluster import Catalog
from kgctl.server.partition_data import PartitionData
from kgctl.server.runtime import Clock
from kgctl.server.settings import Settings
from kgctl.share.state.config import ShareCoordinatorConfig
from kgctl.share.state.shard import ShareCoordinatorShard, StateAnswer, StateRefusal, state_partition_for

STATE_TOPIC = "__share_group_state"
STATE_TOPIC_SETTINGS = {"cleanup.policy": "delete", "retention.ms": "-1"}
"""Those of Kafka's that do something here (ShareCoordinatorService#shareGroupStateTopicConfigs)."""
READ_BYTES = BATCH_BYTES = 1 << 20
UNWRITTEN = StateRefusal(ErrorCode.NOT_COORDINATOR, KAFKAS_WORDS[ErrorCode.NOT_COORDINATOR])
"""Kafka's answer where the log cannot be written."""
TOO_LONG = StateRefusal(ErrorCode.UNKNOWN_SERVER_ERROR, KAFKAS_WORDS[ErrorCode.UNKNOWN_SERVER_ERROR])

log = logging.getLogger(__name__)

A = TypeVar("A")
Lost = StateRefusal | None
KeyAndValue = tuple[bytes, bytes | None]


@dataclass(slots=True)
class _KeptShard:
    """A shard, and the end of its log with what is still to be written."""

    shard: ShareCoordinatorShard
    end_offset: int = 0
    pruned_until: int | None = None


@dataclass(slots=True)
class _Pending:
    """What is to be done to the log: records to append, and then where the log of a partition is to begin."""

    records: dict[int, list[KeyAndValue]] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.records or self.starts)


class Persister:
    """Answers at once, from memory; `after_writes` tells when what was answered is durable.

    Everything but writing happens in the event loop's thread. What one turn of it appends is written together, with a data
    folder in the thread for partition data. Where that fails the memory goes back to what is written; ``on_failure`` must end
    the server when not even that can be read.
    """

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        data: PartitionData,
        catalog: Catalog,
        settings: Settings,
        *,
        clock: Clock,
        on_failure: Callable[[BaseException], None],
        in_thread: bool,
    ) -> None:
        self._config = config
        self._data = data
        self._catalog = catalog
        self._settings = settings
        self._clock = clock
        self._on_failure = on_failure
        self._in_thread = in_thread
        self._shards: dict[int, _KeptShard] = {}
        self._image = MetadataImage()
        self._partition_count = config.state_topic_num_partitions
        self._counts: Mapping[UUID, int] = {}
        self._pending = _Pending()
        self._held: list[Callable[[Lost], None]] = []
        self._writing: asyncio.Future[dict[int, _KeptShard] | None] | None = None
        self._is_scheduled = self._has_failed = False
        self._cold_ms = clock() + config.cold_partition_snapshot_interval_ms
        self._prune_ms = clock() + config.state_topic_prune_interval_ms

    def load(self) -> None:
        """Take over what the log says. Raises `StorageError`, also for what is no record of it."""
        self.topics_changed()
        self._shards = self._read_all()

    async def stop(self) -> None:
        """Return when everything is written, or writing has failed."""
        while not self._is_idle and not self._has_failed:
            if self._writing is not None:
                await asyncio.wait([self._writing])
            await asyncio.sleep(0)

    def initialize(
        self, group_id: str, topics: Mapping[UUID, Mapping[int, tuple[int, int]]]
    ) -> dict[SharePartitionKey, StateRefusal | None]:
        """Topic id to partition to state epoch and start offset."""
        return {
            (key := SharePartitionKey(group_id, topic_id, partition)): self._do(
                key,
                lambda shard, key=key, start=start: shard.initialize(key, *start, self._clock()),  # type: ignore[misc]
            )
            for topic_id, partitions in topics.items()
            for partition, start in partitions.items()
        }

    def read(self, key: SharePartitionKey, leader_epoch: int) -> PartitionState | StateRefusal:
        """Its leader's state epoch, start offset and batches."""
        return self._do(key, lambda shard: shard.read(key, leader_epoch, self._clock()))

    def write(self, key: SharePartitionKey, state: PartitionState) -> StateRefusal | None:
        return self._do(key, lambda shard: shard.write(key, state, self._clock()))

    def read_summary(self, keys: Iterable[SharePartitionKey]) -> dict[SharePartitionKey, PartitionState | StateRefusal]:
        """Epochs, start offset and count of what is done."""
        return {key: self._do(key, lambda shard, key=key: shard.read_summary(key)) for key in keys}  # type: ignore[misc]

    def delete(self, keys: Iterable[SharePartitionKey]) -> dict[SharePartitionKey, StateRefusal | None]:
        return {key: self._do(key, lambda shard, key=key: shard.delete(key)) for key in keys}  # type: ignore[misc]

    def after_writes(self, call: Callable[[Lost], None]) -> None:
        """Call with None when everything answered so far is durable, with why not when it could not be written."""
        if self._is_idle:
            call(None)
            return
        self._held.append(call)
        self._schedule()

    def tend(self, now_ms: int) -> None:
        """Write again what is cold, and prune the log, each as often as its setting says."""
        if now_ms >= self._cold_ms:
            self._cold_ms = now_ms + self._config.cold_partition_snapshot_interval_ms
            for number, kept in self._shards.items():
                self._keep(number, kept, kept.shard.snapshot_cold_partitions(now_ms))
        if now_ms >= self._prune_ms:
            self._prune_ms = now_ms + self._config.state_topic_prune_interval_ms
            self._prune()

    def _prune(self) -> None:
        for number, kept in self._shards.items():
            needed = kept.shard.first_needed_offset
            if needed is not None and needed != kept.pruned_until:
                kept.pruned_until = self._pending.starts[number] = needed
                self._schedule()

    def _do(self, key: SharePartitionKey, ask: Callable[[ShareCoordinatorShard], StateAnswer[A]]) -> A | StateRefusal:
        self.topics_changed()
        number = state_partition_for(key, self._partition_count)
        kept = self._shards.setdefault(number, _KeptShard(self._new_shard()))
        answer = ask(kept.shard)
        try:
            self._keep(number, kept, answer.records)
        except RecordEncodeError:
            return TOO_LONG
        return answer.value

    def topics_changed(self) -> None:
        """Take the topics as they are now, and forget what is kept of those that are gone."""
        image, before = self._catalog.image, self._image
        if image is before:
            return
        self._image = image
        counts = {topic.topic_id: topic.partition_count for topic in image.topics.values()}
        gone, self._counts = self._counts.keys() - counts.keys(), counts
        self._see_log(before.topics.get(STATE_TOPIC), image.topics.get(STATE_TOPIC))
        for number, kept in self._shards.items():
            kept.shard.partition_counts = counts
            self._keep(number, kept, kept.shard.forget_topics(gone) if gone else ())

    def _see_log(self, before: TopicMetadata | None, now: TopicMetadata | None) -> None:
        """Take its number of partitions; one that is changed counts from the next start on, as in Kafka."""
        if before is not None and now is not None and before.topic_id == now.topic_id:
            return
        self._partition_count = self._config.state_topic_num_partitions if now is None else now.partition_count
        if before is not None:
            log.warning("%s is gone, with all that was kept there", STATE_TOPIC)
            self._go_back_to({})

    def _new_shard(self) -> ShareCoordinatorShard:
        shard = ShareCoordinatorShard(self._config)
        shard.partition_counts = self._counts
        return shard

    def _keep(self, number: int, kept: _KeptShard, records: Sequence[ShareStateRecord]) -> None:
        """Take records over, and see to it that they are written. Raises `RecordEncodeError`; nothing is changed."""
        encoded = [encode_record(record) for record in records]
        for record in records:
            kept.shard.replay(kept.end_offset, record)
            kept.end_offset += 1
        if encoded:
            self._pending.records.setdefault(number, []).extend(encoded)
            self._schedule()

    # Writing.

    @property
    def _is_idle(self) -> bool:
        return not (self._pending or self._held or self._writing is not None)

    def _schedule(self) -> None:
        if not self._is_scheduled and self._writing is None:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if self._has_failed:
            return
        pending, self._pending = self._pending, _Pending()
        held, self._held = self._held, []
        if pending and self._in_thread:
            self._writing = asyncio.ensure_future(self._data.in_thread(self._write, pending, self._clock()))
        else:
            self._writing = asyncio.get_running_loop().create_future()
            try:
                self._writing.set_result(self._write(pending, self._clock()))
            except Exception as error:  # noqa: BLE001 - told as in the thread
                self._writing.set_exception(error)
        self._writing.add_done_callback(partial(self._finished, held))

    def _finished(self, held: list[Callable[[Lost], None]], write: asyncio.Future[dict[int, _KeptShard] | None]) -> None:
        self._writing = None
        self.topics_changed()
        error = write.exception()
        if error is not None:
            self._has_failed = True
            log.critical("cannot go on from %s: %s", STATE_TOPIC, error, exc_info=error)
            self._on_failure(error)
            return
        written = write.result()
        if written is not None:
            self._go_back_to(written)
        for call in held:
            call(None if written is None else UNWRITTEN)
        if self._pending or self._held:
            self._schedule()

    def _go_back_to(self, written: dict[int, _KeptShard]) -> None:
        """Keep what is written, and nothing that was to follow it."""
        self._shards, self._pending = written, _Pending()
        for kept in written.values():
            kept.shard.partition_counts = self._counts
        held, self._held = self._held, []
        for call in held:
            asyncio.get_running_loop().call_soon(call, UNWRITTEN)

    def _write(self, pending: _Pending, now_ms: int) -> dict[int, _KeptShard] | None:
        """Beside the event loop. Where it could not be written: all that is. Raises what reading it raises."""
        try:
            if pending.records:
                self._make_topic()
            for number, records in pending.records.items():
                for batch in _batches(records, now_ms):
                    self._data.append(TopicPartition(STATE_TOPIC, number), batch, parse_header(batch), now_ms)
            self._data.flush()
            for number, offset in pending.starts.items():
                self._data.delete_records(TopicPartition(STATE_TOPIC, number), offset)
        except StorageError as error:
            self._data.storage_failed(error)
            return self._read_all()
        except NotFoundError:  # deleted meanwhile, which `topics_changed` tells
            return self._read_all()
        return None

    def _make_topic(self) -> None:
        if self._catalog.get(STATE_TOPIC) is None:
            self._settings.put_topics({STATE_TOPIC: STATE_TOPIC_SETTINGS})
            self._catalog.create({STATE_TOPIC: self._config.state_topic_num_partitions})

    # Reading.

    def _read_all(self) -> dict[int, _KeptShard]:
        if self._catalog.get(STATE_TOPIC) is None:
            return {}
        return {each.partition: self._read_one(each) for each in self._data.written_partitions(STATE_TOPIC)}

    def _read_one(self, partition: TopicPartition) -> _KeptShard:
        offset, end = self._data.bounds(partition)
        kept = _KeptShard(self._new_shard(), end)
        try:
            while offset < end and (batches := self._data.read(partition, offset, READ_BYTES)):
                for position, header in iterate_batches(batches):
                    _replay(kept.shard, iterate_records(batches, position), offset)
                    offset = header.last_offset + 1
        except (RecordDecodeError, CorruptBatchError, UnsupportedCompressionError) as error:
            raise StorageError(f"partition {partition} cannot be read at offset {offset}: {error}") from error
        return kept


def _replay(shard: ShareCoordinatorShard, records: Iterable[Record], first_offset: int) -> None:
    for record in records:
        found = decode_record(record.key or b"", record.value) if record.offset >= first_offset else None
        if found is not None:
            shard.replay(record.offset, found)


def _batches(records: Sequence[KeyAndValue], now_ms: int) -> Iterable[bytes]:
    """Yield these records in batches that are not much too large for whoever reads them."""
    batch: list[Record] = []
    size = 0
    for key, value in records:
        more = record_size(len(key), len(value or b""), len(batch))
        if batch and size + more > BATCH_BYTES:
            yield build_batch(batch)
            batch, size = [], 0
        batch.append(Record(len(batch), now_ms, key, value))
        size += more
    if batch:
        yield build_batch(batch)
