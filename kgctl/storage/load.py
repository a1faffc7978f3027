"""From a record log to a running coordinator."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import DamagedError, StorageError
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import UpdateGroupConfig
from kgctl.serde.coordinator_records import RecordDecodeError
from kgctl.storage.files import WAY_OUT
from kgctl.storage.folder import DataFolder
from kgctl.storage.protocols import StoredRecord


def load_coordinator(
    folder: DataFolder,
    config: CoordinatorConfig,
    new_member_id: Callable[[str], str],
    now_ms: int,
    *,
    partitions: Collection[int] | None = None,
    group_configs: Mapping[str, Mapping[str, str]] | None = None,
) -> GroupCoordinator:
    """The coordinator with the durable state of the folder's record log, or of some of its partitions.

    ``group_configs`` are the settings that groups have of their own: their members' sessions start with those.
    Sessions of members start anew at ``now_ms``; what the coordinator appends at that is appended to the log. Raises
    `kgctl.errors.StorageError` naming partition and offset where a record cannot be read, as Kafka refuses to load such a log.
    """
    coordinator = GroupCoordinator(config, new_member_id, MetadataImage(folder.topics.topics()), now_ms)
    for group_id, settings in (group_configs or {}).items():
        coordinator.handle(UpdateGroupConfig(request_id=0, group_id=group_id, config=settings), now_ms)
    ends: dict[int, int] = {}
    with _without_garbage_collection():
        for stored in _readable(folder):
            ends[stored.partition] = max(ends.get(stored.partition, 0), stored.offset + 1)
            if partitions is None or stored.partition in partitions:
                _replay(coordinator, folder, stored)
    for partition, end in ends.items():
        if folder.record_log.end_offset(partition) != end:  # the log's end is looked up in an index
            raise DamagedError(f"{folder.path}: damaged: partition {partition} ends at {end}, its index says otherwise")
    effects = coordinator.loaded(now_ms)
    folder.record_log.append([effect for effect in effects if isinstance(effect, AppendRecord)], now_ms)
    return coordinator


def _readable(folder: DataFolder) -> Iterator[StoredRecord]:
    try:
        yield from folder.record_log.read()
    except DamagedError as error:
        raise DamagedError(f"{error.message}; {WAY_OUT}") from error


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """A load makes many objects and drops none: looking for garbage meanwhile takes a third of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _replay(coordinator: GroupCoordinator, folder: DataFolder, stored: StoredRecord) -> None:
    try:
        record = stored.decode()
    except RecordDecodeError as error:
        place = f"offset {stored.offset} of partition {stored.partition}"
        raise StorageError(f"{folder.path or 'memory'}: the record at {place} cannot be read: {error}") from error
    coordinator.replay(record, producer_id=stored.producer_id)
