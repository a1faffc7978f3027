"""Records become state: the only writer of what survives, when a log is loaded and when a record has just been appended.

A classic group keeps its last record; the members, generation and leader that requests work with are taken from it when the log
has been loaded (`kgctl.coordinator.classic.load`), and run ahead of it during a rebalance, as in Kafka, where a rebalance under
way is lost with the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.replay import REPLAYERS as CONSUMER_REPLAYERS
from kgctl.coordinator.opaque_group import OpaqueGroup, opaque_type
from kgctl.model.records import (
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
    TransactionMarker,
)

if TYPE_CHECKING:
    from kgctl.coordinator.shard import Shard

Replayer = Callable[["Shard", Any, Any], None]


def apply_record(shard: Shard, record: CoordinatorRecord, producer_id: int | None = None) -> None:
    """Apply one record. A tombstone of something that does not exist changes nothing, as in Kafka."""
    if type(record.key) is OffsetCommitKey:
        _replay_offset(shard, record.key, cast("OffsetCommitValue | None", record.value), producer_id)
    else:
        REPLAYERS[type(record.key)](shard, record.key, record.value)


def load_record(shard: Shard, record: CoordinatorRecord, producer_id: int | None = None) -> None:
    """Apply one record of a log that is being read.

    A classic group's record replaces whatever bears its name, and its tombstone removes that. In live use the coordinator has
    seen to it itself, so there `apply_record` touches classic groups alone.
    """
    key = record.key
    if type(key) is GroupMetadataKey and key.group in shard.groups:
        if record.value is None:
            _remove(shard, key.group)
            return
        # Kafka makes a new group for each record, and putting it may enlarge the table that decides the order of groups.
        shard.groups[key.group] = shard.groups[key.group]
    apply_record(shard, record, producer_id)


def apply_marker(shard: Shard, marker: TransactionMarker) -> None:
    """Apply the end of a transaction."""
    shard.offsets.end_transaction(marker.producer_id, committed=marker.committed)


def _replay_offset(shard: Shard, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int | None) -> None:
    if value is None:
        shard.offsets.remove(key)
        return
    if key.group not in shard.groups:
        # A group that only ever has commits: Kafka's "simple" group.
        shard.groups[key.group] = ClassicGroup(key.group, shard.now_ms)
    if producer_id is None:
        shard.offsets.put(key, value)
    else:
        shard.offsets.put_pending(producer_id, key, value)


def _replay_group_metadata(shard: Shard, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    group = shard.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            _remove(shard, key.group)
        return
    if not isinstance(group, ClassicGroup):
        group = shard.groups[key.group] = ClassicGroup(key.group, shard.now_ms)
    group.recorded = value


def _replay_opaque(shard: Shard, key: OpaqueKey, value: bytes | None) -> None:
    group_type = opaque_type(key.record_type)
    if group_type is None or key.group is None:
        return
    group = shard.groups.get(key.group)
    if value is None:
        if isinstance(group, OpaqueGroup):
            group.records.pop(key, None)
            if not group.records:
                _remove(shard, key.group)
        return
    if not isinstance(group, OpaqueGroup):
        group = shard.groups[key.group] = OpaqueGroup(key.group, group_type)
    group.records[key] = value


def _remove(shard: Shard, group_id: str) -> None:
    del shard.groups[group_id]
    shard.story.forget(group_id)


REPLAYERS: dict[type, Replayer] = {
    GroupMetadataKey: _replay_group_metadata,
    OpaqueKey: _replay_opaque,
    **CONSUMER_REPLAYERS,
}
"""Key class -> what a record with such a key does."""
