"""Offsets on their way into a storage of the user's, which is behind a border, and the log of what was committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kgctl.coordinator.effects import AppendRecord, Effect
from kgctl.errors import StorageError, users_code
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue, TransactionMarker
from kgctl.model.groups import TopicPartition
from kgctl.storage.folder import OffsetStorage, StoredOffset
from kgctl.storage.record_log import CommitEntry

COMMITS_KEPT = 10_000

Written = tuple[CoordinatorRecord, str | None]
"""A record of a commit, and the member that made it."""


class KeptOffsets:
    """Stores what the coordinator's records say of offsets. ``commits`` is what was stored since the start."""

    def __init__(self, storage: OffsetStorage, now_ms: Callable[[], int]) -> None:
        self.storage = storage
        self.commits: deque[CommitEntry] = deque(maxlen=COMMITS_KEPT)
        self._now_ms = now_ms
        self._pending: dict[int, list[Written]] = {}

    def store(self, effects: Sequence[Effect]) -> StorageError | None:
        """Store what these say, group by group; the last group's error where a storage failed."""
        failure = None
        for group_id, records in self._to_store(effects).items():
            try:
                self._store(group_id, records)
            except StorageError as error:
                failure = error
        return failure

    def _to_store(self, effects: Sequence[Effect]) -> dict[str, list[Written]]:
        """The offsets among the records, by group; what members do is not kept, and a transaction's when it is committed."""
        found: dict[str, list[Written]] = {}
        for effect in effects:
            if not isinstance(effect, AppendRecord):
                continue
            record, written = effect.record, []
            if isinstance(record, TransactionMarker):
                pending = self._pending.pop(record.producer_id, [])
                written = pending if record.committed else []
            elif isinstance(record.key, OffsetCommitKey) and effect.producer_id is not None:
                self._pending.setdefault(effect.producer_id, []).append((record, effect.member_id))
            elif isinstance(record.key, OffsetCommitKey):
                written = [(record, effect.member_id)]
            for each in written:
                key = each[0].key
                assert isinstance(key, OffsetCommitKey)
                found.setdefault(key.group, []).append(each)
        return found

    def _store(self, group_id: str, records: list[Written]) -> None:
        saved: dict[TopicPartition, StoredOffset] = {}
        gone: list[TopicPartition] = []
        for record, _ in records:
            key, value = record.key, record.value
            assert isinstance(key, OffsetCommitKey)
            partition = TopicPartition(key.topic, key.partition)
            if isinstance(value, OffsetCommitValue):
                saved[partition] = _stored(value)
            else:
                gone.append(partition)
        with users_code(_called(self.storage), StorageError, lets_by=(StorageError,)):
            if saved:
                self.storage.save(group_id, saved)
            if gone:
                self.storage.delete(group_id, gone)
        self.commits += [_entry(record, member_id, self._now_ms()) for record, member_id in records]


def _entry(record: CoordinatorRecord, member_id: str | None, now_ms: int) -> CommitEntry:
    key, value = record.key, record.value
    assert isinstance(key, OffsetCommitKey)
    if not isinstance(value, OffsetCommitValue):
        return CommitEntry(key.group, key.topic, key.partition, None, now_ms, member_id=member_id)
    return CommitEntry(
        key.group, key.topic, key.partition, value.offset, now_ms, value.metadata, value.leader_epoch, member_id=member_id
    )


def _stored(value: OffsetCommitValue) -> StoredOffset:
    return StoredOffset(value.offset, value.leader_epoch, value.metadata, value.commit_timestamp_ms, value.expire_timestamp_ms)


def _called(storage: OffsetStorage) -> str:
    kind = type(storage)
    return f"the offset storage {kind.__module__}:{kind.__qualname__}"


def stored_offsets(storage: OffsetStorage) -> Iterator[tuple[str, tuple[str, int], StoredOffset]]:
    """Return all that a storage has, as (group, partition, offset). Raises `StorageError`, also for what no commit can be."""
    called = _called(storage)
    with users_code(f"{called}, list()", StorageError, lets_by=(StorageError,), called=storage.list):
        group_ids = list(storage.list())
    with users_code(f"{called}, load()", StorageError, lets_by=(StorageError,), called=storage.load):
        found: dict[str, Mapping[Any, Any]] = {group_id: dict(storage.load(group_id)) for group_id in group_ids}
    for group_id, offsets in found.items():
        for key, stored in offsets.items():
            is_partition = isinstance(key, tuple) and list(map(type, key)) == [str, int]
            if not (is_partition and isinstance(stored, StoredOffset)):
                raise StorageError(f"{called} has {key!r}: {stored!r} for group {group_id!r}, which is no commit")
            yield group_id, key, stored
