"""Topics in SQLite, in a file of their own, so that produced data never holds up a commit."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from uuid import UUID

from kgctl.errors import DamagedError
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.serde.crc32c import crc32c, crc32c_on
from kgctl.serde.record_batch import CorruptBatchError, check_batch, parse_header, place
from kgctl.storage.batches import LEADER_EPOCH, checked_batch, first_at_or_after
from kgctl.storage.memory import checked_growth, checked_new_topics, unknown_partition, unknown_topic
from kgctl.storage.record_log import MAX_PARTITIONS
from kgctl.storage.sqlite import DamagedRow, Database, Queried

log = logging.getLogger(__name__)

CHANGES = "topic_changes"

_PLACE = """topic = ? AND "partition" = ?"""
_READ_AT_A_TIME = 64


@dataclass(slots=True)
class _Topic:
    """A topic's row, and the bounds of those partitions' logs that ever had records."""

    id: int
    metadata: TopicMetadata
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def start(self, partition: int) -> int:
        return self.starts.get(partition, 0)

    def end(self, partition: int) -> int:
        return self.ends.get(partition, 0)


class SqliteTopicStore:
    """See `kgctl.storage.record_log.TopicStore`. Safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._topics: dict[str, _Topic] = {}
        self.changes = int(database.read_meta(CHANGES) or 0)
        """How often topics were made, grown or deleted."""
        self.newest_batch = self._newest_batch()
        """The number of the newest batch; it goes down when that is deleted."""
        self.on_write: Callable[[], None] = lambda: None
        """Called when a change or a batch is in the file; an outer transaction's owner does it itself."""
        for number, name, topic_id, count in database.rows("SELECT id, name, topic_id, partition_count FROM topic"):
            self._topics[name] = self._load(number, TopicMetadata(name, UUID(bytes=topic_id), count))
        for name, count in self.oversized_topics().items():
            log.warning(
                "%s: topic %s has %d partitions, a topic can have %d: it is left out, and DeleteTopics removes it",
                *(database.path, name, count, MAX_PARTITIONS),
            )

    def topics(self) -> Mapping[str, TopicMetadata]:
        with self._database.lock:
            topics = (topic.metadata for _, topic in sorted(self._topics.items()))
            return {topic.name: topic for topic in topics if topic.partition_count <= MAX_PARTITIONS}

    def oversized_topics(self) -> Mapping[str, int]:
        with self._database.lock:
            counts = ((name, topic.metadata.partition_count) for name, topic in sorted(self._topics.items()))
            return {name: count for name, count in counts if count > MAX_PARTITIONS}

    def create_topics(self, topics: Sequence[TopicMetadata]) -> None:
        with self._database.lock:
            checked_new_topics(topics, self._topics)
            made: dict[str, _Topic] = {}
            with self._change() as connection:
                for topic in topics:
                    number = connection.execute(
                        "INSERT INTO topic (name, topic_id, partition_count, crc) VALUES (?, ?, ?, ?)",
                        (topic.name, topic.topic_id.bytes, topic.partition_count, _topic_checksum(topic)),
                    ).lastrowid
                    assert number is not None
                    made[topic.name] = _Topic(number, topic)
            self._topics.update(made)
            self._written()

    def delete_topics(self, names: Collection[str]) -> None:
        with self._database.lock:
            topics = [self._topic(name) for name in names]
            with self._change() as connection:
                connection.executemany("DELETE FROM topic WHERE id = ?", [(topic.id,) for topic in topics])
            for name in set(names):
                del self._topics[name]
            self.newest_batch = self._newest_batch()
            self._written()

    def set_partition_counts(self, counts: Mapping[str, int]) -> None:
        with self._database.lock:
            topics = {name: self._topic(name) for name in counts}
            grown = checked_growth({name: topic.metadata for name, topic in topics.items()}, counts)
            with self._change() as connection:
                rows = [(count, _topic_checksum(grown[name]), topics[name].id) for name, count in counts.items()]
                connection.executemany("UPDATE topic SET partition_count = ?, crc = ? WHERE id = ?", rows)
            for name, topic in topics.items():
                topic.metadata = grown[name]
            self._written()

    def append_batch(
        self,
        partition: TopicPartition,
        batch: bytes,
        now_ms: int,  # noqa: ARG002 - CreateTime
        *,
        at: int | None = None,
    ) -> int:
        header = checked_batch(batch)
        with self._database.lock:
            topic = self._partition(partition)
            base = max(topic.end(partition.partition), at or 0)
            end = base + header.last_offset_delta + 1
            row = (topic.id, partition.partition, base, end - 1, header.max_timestamp_ms, place(batch, base, LEADER_EPOCH))
            with self._database.transaction() as connection:
                number = connection.execute(
                    """INSERT INTO batch (topic, "partition", base_offset, last_offset, max_timestamp_ms, data)
                       VALUES (?, ?, ?, ?, ?, ?)""",
                    row,
                ).lastrowid
            topic.ends[partition.partition] = end
            self.newest_batch = number or self.newest_batch
            self._written()
            return base

    def flush(self) -> None:
        """Put all that was appended on the device, by a transaction that goes there."""
        with self._change():
            pass

    def read_batches(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Return batches from ``offset`` on."""
        found = bytearray()
        topic = self._partition(partition)
        while offset < topic.end(partition.partition):
            rows = self._database.rows(
                f"""SELECT data, base_offset, last_offset FROM batch WHERE {_PLACE} AND base_offset >= coalesce((
                        SELECT max(base_offset) FROM batch WHERE {_PLACE} AND base_offset <= ?), 0)
                    AND last_offset >= ? ORDER BY base_offset LIMIT {_READ_AT_A_TIME}""",  # noqa: S608
                (topic.id, partition.partition, topic.id, partition.partition, offset, offset),
            )
            for data, base_offset, last_offset in rows:
                self._check(partition, data, base_offset)
                if found and len(found) + len(data) > max_bytes:
                    return bytes(found)
                found += data
                offset = last_offset + 1
            if not rows:
                break
        return bytes(found)

    def log_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (log start offset, log end offset)."""
        topic = self._partition(partition)  # no lock: whoever asks does not wait for a batch that is being written
        return topic.start(partition.partition), topic.end(partition.partition)

    def log_size(self, partition: TopicPartition) -> int:
        """Return how many bytes its batches have."""
        place = (self._partition(partition).id, partition.partition)
        return int(self._database.value(f"SELECT sum(length(data)) FROM batch WHERE {_PLACE}", place) or 0)  # noqa: S608

    def set_log_start(self, partition: TopicPartition, offset: int) -> None:
        """Move the log start forwards."""
        with self._database.lock:
            topic = self._partition(partition)
            number = partition.partition
            start = max(topic.start(number), min(offset, topic.end(number)))
            with self._database.transaction() as connection:
                # The newest batch stays: the log's end is read from it.
                connection.execute(
                    f"""DELETE FROM batch WHERE {_PLACE} AND last_offset < ? AND last_offset < ?""",  # noqa: S608
                    (topic.id, number, start, topic.end(number) - 1),
                )
                row = (topic.id, number, start, _start_checksum(topic.id, number, start))
                connection.execute("INSERT OR REPLACE INTO log_start VALUES (?, ?, ?, ?)", row)
            topic.starts[number] = start

    def written_partitions(self, topic: str) -> Sequence[TopicPartition]:
        """Return the partitions that have an end, in order."""
        return [TopicPartition(topic, number) for number in sorted(self._topic(topic).ends)]

    def rewrite_batches(self, partition: TopicPartition, changes: Mapping[int, bytes | None]) -> None:
        """Put other batches of the same offsets in place of these, or none."""
        with self._database.lock:
            place = (self._partition(partition).id, partition.partition)
            with self._database.transaction() as connection:
                for base, batch in changes.items():
                    if batch is None:
                        connection.execute(f"DELETE FROM batch WHERE {_PLACE} AND base_offset = ?", (*place, base))  # noqa: S608
                        continue
                    connection.execute(
                        f"UPDATE batch SET data = ?, max_timestamp_ms = ? WHERE {_PLACE} AND base_offset = ?",  # noqa: S608
                        (batch, parse_header(batch).max_timestamp_ms, *place, base),
                    )
            self._written()

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """Return the first record at or after that time."""
        topic = self._partition(partition)
        start, last = topic.start(partition.partition), -1
        while True:
            rows = self._database.rows(
                f"""SELECT data, base_offset FROM batch WHERE {_PLACE} AND base_offset > ? AND last_offset >= ?
                    AND max_timestamp_ms >= ? ORDER BY base_offset LIMIT 1""",  # noqa: S608
                (topic.id, partition.partition, last, start, timestamp_ms),
            )
            if not rows:
                return None
            data, last = rows[0]
            self._check(partition, data, last)
            found = first_at_or_after(data, parse_header(data), timestamp_ms, start)
            if found is not None:
                return found

    def offset_of_max_timestamp(self, partition: TopicPartition) -> tuple[int, int] | None:
        """Return the first record with the largest timestamp."""
        topic = self._partition(partition)
        newest = self._database.value(
            f"SELECT max(max_timestamp_ms) FROM batch WHERE {_PLACE} AND last_offset >= ?",  # noqa: S608
            (topic.id, partition.partition, topic.start(partition.partition)),
        )
        return None if newest is None else self.offset_for_timestamp(partition, newest)

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """A transaction that survives a power cut, and is counted."""
        outer = nullcontext() if self._database.is_in_transaction else self._database.flushing()
        with outer, self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (CHANGES, self.changes + 1))
            yield connection
        self.changes += 1

    def _check(self, partition: TopicPartition, batch: bytes, base_offset: int) -> None:
        """See that it is the batch that was written there: its checksum leaves out its place (`place`)."""
        try:
            check_batch(batch)
            if batch[:8] != base_offset.to_bytes(8, "big"):
                raise CorruptBatchError(f"it says offset {parse_header(batch).base_offset}, it is at {base_offset}")
        except CorruptBatchError as error:
            raise DamagedError(f"{self._database.path}: a batch of {partition} is damaged ({error})") from error

    def _written(self) -> None:
        if not self._database.is_in_transaction:
            self.on_write()

    def _newest_batch(self) -> int:
        return int(self._database.value("SELECT max(id) FROM batch") or 0)

    def _load(self, number: int, metadata: TopicMetadata) -> _Topic:
        topic = _Topic(number, metadata)
        ends = """SELECT "partition", max(last_offset) + 1 FROM batch WHERE topic = ? GROUP BY "partition" """
        for partition, end in self._database.rows(ends, (number,)):
            topic.ends[partition] = end
        for partition, start in self._database.rows("""SELECT "partition", "offset" FROM log_start WHERE topic = ?""", (number,)):
            topic.starts[partition] = start
        return topic

    def _topic(self, name: str) -> _Topic:
        try:
            return self._topics[name]
        except KeyError:
            raise unknown_topic(name) from None

    def _partition(self, partition: TopicPartition) -> _Topic:
        topic = self._topics.get(partition.topic)
        if topic is None or not 0 <= partition.partition < topic.metadata.partition_count:
            raise unknown_partition(partition)
        return topic


_PLACED_BADLY = """hex(substr(b.data, 1, 8)) <> printf('%016X', b.base_offset) OR length(b.data) < 61
    OR hex(substr(b.data, 13, 4)) <> printf('%08X', {epoch})
    OR hex(substr(b.data, 24, 4)) <> printf('%08X', b.last_offset - b.base_offset)
    OR hex(substr(b.data, 36, 8)) <> printf('%016X', b.max_timestamp_ms)""".format(epoch=LEADER_EPOCH)  # noqa: UP032 - SQL has no braces
"""Where the header of a batch (base offset, leader epoch, last offset delta, newest timestamp) says other than its row."""


def damaged_topics(database: Queried, *, has_checksums: bool = True) -> Iterator[DamagedRow]:
    """Each row of topics, log starts and batches that is not what was written. What batches hold is checked when it is read."""
    crc = "crc" if has_checksums else "NULL"
    names: dict[int, str] = {}
    for number, name, topic_id, count, checksum in database.rows(f"SELECT id, name, topic_id, partition_count, {crc} FROM topic"):  # noqa: S608
        names[number] = name
        if checksum not in (None, _checksum(f"{name},{count}", topic_id)) and not _is_oversized(count):
            yield DamagedRow("topic", "id = ?", (number,), f"{database.path}: topic {name} is damaged (its checksum is wrong)")
    for number, partition, offset, checksum in database.rows(f'SELECT topic, "partition", "offset", {crc} FROM log_start'):  # noqa: S608
        if checksum is not None and checksum != _start_checksum(number, partition, offset):
            place = f"{names.get(number)}-{partition}"
            message = f"{database.path}: the log start of {place} is damaged (its checksum is wrong)"
            yield DamagedRow("log_start", 'topic IS ? AND "partition" IS ?', (number, partition), message)
    for row, number, partition, base in database.rows(
        f'SELECT b.id, b.topic, b."partition", b.base_offset FROM batch b WHERE {_PLACED_BADLY}'  # noqa: S608
    ):
        place = f"offset {base} of {names.get(number)}-{partition}"
        yield DamagedRow("batch", "id = ?", (row,), f"{database.path}: the batch at {place} is damaged (its header is another)")


def damaged_batches(database: Database) -> Iterator[DamagedRow]:
    """Each batch whose checksum is wrong: all of them are read."""
    last = 0
    while rows := database.rows(f"SELECT id, data FROM batch WHERE id > ? ORDER BY id LIMIT {_READ_AT_A_TIME}", (last,)):  # noqa: S608
        for number, data in rows:
            try:
                check_batch(data)
            except CorruptBatchError as error:
                yield DamagedRow("batch", "id = ?", (number,), f"{database.path}: batch {number} is damaged ({error})")
        last = rows[-1][0]


def _is_oversized(count: object) -> bool:
    """Whether the store leaves the topic out anyway, and says so."""
    return isinstance(count, int) and count > MAX_PARTITIONS


def _topic_checksum(topic: TopicMetadata) -> int:
    return _checksum(f"{topic.name},{topic.partition_count}", topic.topic_id.bytes)


def _start_checksum(topic: int, partition: int, offset: int) -> int:
    return _checksum(f"{topic},{partition},{offset}")


def _checksum(text: str, data: object = b"") -> int:
    """CRC-32C; of a value that is no bytes, as none was written, a number that is no checksum."""
    return crc32c_on(crc32c(data), text.encode("utf-8", "surrogatepass")) if isinstance(data, bytes) else -1
