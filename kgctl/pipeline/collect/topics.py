"""Which topics groups have commits on, from the keys of the records that pass.

They are kept beside what was collected. A topic must not be forgotten because a sample failed, or because its records were
collected by a run that ended before its first sample: a group that has stalled commits nothing that would bring it back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import pyarrow.compute as pc

from kgctl.pipeline.warehouse import layout
from kgctl.pipeline.warehouse.files import read_json, read_table, storage_errors, write_json
from kgctl.pipeline.warehouse.warehouse import Warehouse

_SHORT = struct.Struct(">h")
_PARTITION_BYTES = 4
_OFFSET_COMMITS = (0, 1)


class TopicsSeen:
    """Grows with what it is shown."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.topics = set(known)

    def see(self, keys: Any) -> None:
        """Keys of records of ``__consumer_offsets``, as an Arrow column. Those of other kinds, and damaged ones, tell nothing."""
        for key in pc.unique(pc.binary_slice(keys, 0, -_PARTITION_BYTES)).to_pylist():
            topic = _topic(key)
            if topic:
                self.topics.add(topic)


class KnownTopics(TopicsSeen):
    """Those of all records of a cluster that were collected so far, and of what is shown. Use it where the lock is held."""

    def __init__(self, warehouse: Warehouse, cluster: str) -> None:
        """Raises `StorageError`."""
        self._path = warehouse.path / layout.topics_file(cluster)
        kept = (read_json(self._path) or {}).get("topics")
        super().__init__(kept or ())
        self._kept = None if kept is None else set(kept)
        if kept is None:
            self._read(warehouse, cluster)

    def keep(self) -> None:
        """Write down what is new, before the records that tell of it are. Raises `StorageError`."""
        if self._kept != self.topics:
            self._kept = set(self.topics)
            write_json(self._path, {"topics": sorted(self._kept)})

    def _read(self, warehouse: Warehouse, cluster: str) -> None:
        for partition in warehouse.partitions(cluster):
            for file in warehouse.bronze_files(cluster, partition):
                self.see(read_table(warehouse.path / file.path, ["key"]).column("key"))


def forget_topics(warehouse: Warehouse, cluster: str) -> None:
    """Have them read again from the records, which nobody has looked at, the next time that they are asked for."""
    path = warehouse.path / layout.topics_file(cluster)
    with storage_errors(path):
        path.unlink(missing_ok=True)


def _topic(key: bytes | None) -> str | None:
    """From version, group and topic, each with its length before it."""
    try:
        if key is None or _SHORT.unpack_from(key)[0] not in _OFFSET_COMMITS:
            return None
        at = 4 + _SHORT.unpack_from(key, 2)[0]
        size = _SHORT.unpack_from(key, at)[0]
        return key[at + 2 :].decode() if at >= 4 and len(key) == at + 2 + size else None
    except (struct.error, UnicodeDecodeError):
        return None
