"""One partition of ``__share_group_state`` and the share partitions whose state it keeps.

A request is answered from memory, with records: whoever keeps the log appends them and gives each with its offset to
`ShareCoordinatorShard.replay` before the next request, as when the log is loaded. Time is an argument, in milliseconds.

Kafka: ShareCoordinatorShard; the requests are those that its service splits into one share partition each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar
from uuid import UUID

from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.model.share import (
    ANY_EPOCH,
    NO_DELIVERY_COMPLETE_COUNT,
    NO_START_OFFSET,
    PartitionState,
    SharePartitionKey,
    ShareSnapshot,
    ShareStateRecord,
    ShareUpdate,
    share_partition_hash,
)
from kgctl.model.values import TimelineHashMap, frozen_in_order, hash_map_order, partition_for
from kgctl.serde.record_schema import uuid_text
from kgctl.share.state.combining import combined
from kgctl.share.state.config import ShareCoordinatorConfig

NO_EPOCH = -(2**31)
"""Below any epoch."""


@frozen_in_order
class StateRefusal:
    """Why a request about a share partition's state came to nothing, in Kafka's words."""

    error: ErrorCode
    message: str


_NEGATIVE_PARTITION = StateRefusal(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
_FENCED_LEADER, _FENCED_STATE, _UNKNOWN_PARTITION = (
    StateRefusal(error, KAFKAS_WORDS[error])
    for error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
)

A_co = TypeVar("A_co", covariant=True)


@frozen_in_order
class StateAnswer(Generic[A_co]):
    """What a request comes to, and the records to append."""

    value: A_co | StateRefusal
    records: tuple[ShareStateRecord, ...] = ()


@dataclass(slots=True)
class _Kept:
    """A share partition. The epochs are the highest seen, which may be above those of its state."""

    state: ShareSnapshot
    leader_epoch: int
    state_epoch: int = NO_EPOCH
    updates: int = 0
    """How many were written since the last snapshot; one that was written before it was due counts on."""


class RedundantOffsets:
    """Knows the last snapshot of each share partition: what lies before the first of these may go.

    Kafka: ShareCoordinatorOffsetsManager.
    """

    def __init__(self) -> None:
        self._snapshots: dict[SharePartitionKey, int] = {}
        self._first_needed: int | None = None

    def snapshot(self, key: SharePartitionKey, offset: int) -> None:
        """All of a share partition is written, at this offset."""
        self._snapshots[key] = offset
        self._first_needed = min(self._snapshots.values())

    def tombstone(self, key: SharePartitionKey, offset: int) -> None:
        """A share partition is gone; nothing will follow its tombstone, at this offset."""
        self.snapshot(key, offset)
        del self._snapshots[key]

    @property
    def first_needed(self) -> int | None:
        """The first offset that is needed; None where nothing can go."""
        return self._first_needed or None


class ShareCoordinatorShard:
    """The share partitions of one partition of the log.

    ``partition_counts`` are the topics that there are, and is to be replaced when they change.
    """

    def __init__(self, config: ShareCoordinatorConfig) -> None:
        self.config = config
        self.partition_counts: Mapping[UUID, int] = {}
        self._kept: TimelineHashMap[SharePartitionKey, _Kept] = TimelineHashMap(hash_of=share_partition_hash)
        self._offsets = RedundantOffsets()

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int) -> StateAnswer[None]:
        """Begin anew with this start offset; -1: the first reader will set it. What there was is forgotten."""
        if refusal := self._refusal(key, state_epoch=state_epoch):
            return StateAnswer(refusal)
        kept = self._kept.get(key)
        snapshot = ShareSnapshot(
            snapshot_epoch=0 if kept is None else kept.state.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=NO_DELIVERY_COMPLETE_COUNT if start_offset == NO_START_OFFSET else 0,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )
        return StateAnswer(None, (ShareStateRecord(key, snapshot),))

    def read(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> StateAnswer[PartitionState]:
        """What its leader of this epoch is to go on from; an epoch that is new is written down."""
        if refusal := self._refusal(key, "Read", leader_epoch=leader_epoch):
            return StateAnswer(refusal)
        kept = self._kept[key]
        state = kept.state
        answer = PartitionState(state.state_epoch, state.start_offset, batches=state.batches)
        if leader_epoch in (ANY_EPOCH, kept.leader_epoch):
            return StateAnswer(answer)
        as_it_is = PartitionState(state.state_epoch, state.start_offset, state.delivery_complete_count)
        return StateAnswer(answer, (self._written(key, as_it_is, leader_epoch, now_ms),))

    def read_summary(self, key: SharePartitionKey) -> StateAnswer[PartitionState]:
        """The epochs, start offset and count of what is done; those of `PartitionState`'s defaults where nothing is kept."""
        if refusal := self._refusal(key):
            return StateAnswer(refusal)
        kept = self._kept.get(key)
        if kept is None:
            return StateAnswer(PartitionState())
        state = kept.state
        return StateAnswer(
            PartitionState(state.state_epoch, state.start_offset, state.delivery_complete_count, (), state.leader_epoch)
        )

    def write(self, key: SharePartitionKey, change: PartitionState, now_ms: int) -> StateAnswer[None]:
        """Take over what the partition's leader tells: its batches win over older ones as `combined` has it."""
        if refusal := self._refusal(key, "Write", change.leader_epoch, change.state_epoch):
            return StateAnswer(refusal)
        return StateAnswer(None, (self._written(key, change, self._kept[key].state.leader_epoch, now_ms),))

    def delete(self, key: SharePartitionKey) -> StateAnswer[None]:
        """Forget it; one that is not there is as good as forgotten."""
        if refusal := self._refusal(key):
            return StateAnswer(refusal)
        return StateAnswer(None, (ShareStateRecord(key),) if key in self._kept else ())

    def _refusal(
        self, key: SharePartitionKey, operation: str | None = None, leader_epoch: int = ANY_EPOCH, state_epoch: int = ANY_EPOCH
    ) -> StateRefusal | None:
        """Why not; ``operation`` for one that needs an initialized share partition. In Kafka's order."""
        if key.partition < 0:
            return _NEGATIVE_PARTITION
        kept = self._kept.get(key)
        if kept is None and operation is not None:
            message = f"{operation} operation on uninitialized share partition not allowed."
            return StateRefusal(ErrorCode.INVALID_REQUEST, message)
        if kept is not None and ANY_EPOCH != leader_epoch < kept.leader_epoch:
            return _FENCED_LEADER
        if kept is not None and ANY_EPOCH != state_epoch < kept.state_epoch:
            return _FENCED_STATE
        return None if key.partition < self.partition_counts.get(key.topic_id, 0) else _UNKNOWN_PARTITION

    def _written(self, key: SharePartitionKey, change: PartitionState, leader_epoch: int, now_ms: int) -> ShareStateRecord:
        """The record of a change: an update, or a snapshot after so many of them."""
        kept = self._kept[key]
        count, start = change.delivery_complete_count, change.start_offset
        if kept.updates < self.config.snapshot_update_records_per_snapshot:
            batches = combined(change.batches, start)
            return ShareStateRecord(key, ShareUpdate(kept.state.snapshot_epoch, leader_epoch, start, count, batches))
        update = ShareUpdate(kept.state.snapshot_epoch + 1, leader_epoch, start, count, change.batches)
        snapshot = replace(_merged(kept.state, update), create_timestamp_ms=now_ms, write_timestamp_ms=now_ms)
        return ShareStateRecord(key, replace(snapshot, snapshot_epoch=update.snapshot_epoch))

    def snapshot_cold_partitions(self, now_ms: int) -> tuple[ShareStateRecord, ...]:
        """Snapshots of those that had none for `ShareCoordinatorConfig.cold_partition_snapshot_interval_ms`: records to append.

        None where all that there are had such a snapshot last: nothing goes on, and nothing would come of it.
        """
        if all(kept.state.create_timestamp_ms != kept.state.write_timestamp_ms for kept in self._kept.values()):
            return ()
        oldest_ms = now_ms - self.config.cold_partition_snapshot_interval_ms
        states = ((key, self._kept[key].state) for key in self._kept.java_order())
        return tuple(
            ShareStateRecord(key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms))
            for key, state in states
            if state.write_timestamp_ms <= oldest_ms
        )

    def forget_topics(self, topic_ids: Collection[UUID]) -> tuple[ShareStateRecord, ...]:
        """The tombstones, to append, of all that is kept of topics that are gone. Kafka: #maybeCleanupShareState."""
        gone = [key for key in self._kept.java_order() if key.topic_id in topic_ids]
        return tuple(map(ShareStateRecord, hash_map_order(gone, hash_of=share_partition_hash)))

    @property
    def first_needed_offset(self) -> int | None:
        """Records before it are overridden and may be deleted; None where that is not known. Kafka: #lastRedundantOffset."""
        return self._offsets.first_needed

    def replay(self, offset: int, record: ShareStateRecord) -> None:
        """Take over a record of the log."""
        key, value = record.key, record.value
        if isinstance(value, ShareUpdate):
            self._replay_update(key, value)
        elif value is not None:
            self._replay_snapshot(key, value)
            self._offsets.snapshot(key, offset)
        else:
            self._kept.pop(key, None)
            self._offsets.tombstone(key, offset)

    def _replay_snapshot(self, key: SharePartitionKey, snapshot: ShareSnapshot) -> None:
        kept = self._kept.get(key)
        if kept is None:
            self._kept[key] = _Kept(snapshot, snapshot.leader_epoch, snapshot.state_epoch)
            return
        self._kept[key] = _Kept(
            snapshot,
            max(kept.leader_epoch, snapshot.leader_epoch),
            max(kept.state_epoch, snapshot.state_epoch),
            0 if kept.updates >= self.config.snapshot_update_records_per_snapshot else kept.updates,
        )

    def _replay_update(self, key: SharePartitionKey, update: ShareUpdate) -> None:
        kept = self._kept.get(key)
        if kept is None:
            alone = ShareSnapshot(
                update.snapshot_epoch, 0, update.leader_epoch, update.start_offset, update.delivery_complete_count, update.batches
            )
            self._kept[key] = _Kept(alone, update.leader_epoch, updates=1)
            return
        self._kept[key] = _Kept(
            _merged(kept.state, update), max(kept.leader_epoch, update.leader_epoch), kept.state_epoch, kept.updates + 1
        )


def state_partition_for(key: SharePartitionKey, partition_count: int) -> int:
    """The partition of ``__share_group_state`` that keeps this share partition. Kafka: ShareCoordinatorService#partitionFor."""
    return partition_for(f"{key.group_id}:{uuid_text(key.topic_id.bytes)}:{key.partition}", partition_count)


def _merged(state: ShareSnapshot, update: ShareUpdate) -> ShareSnapshot:
    """The state after an update, of the same snapshot and state epoch."""
    start = state.start_offset if update.start_offset == NO_START_OFFSET else update.start_offset
    return replace(
        state,
        leader_epoch=state.leader_epoch if update.leader_epoch == ANY_EPOCH else update.leader_epoch,
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=combined((*state.batches, *update.batches), start),
    )
