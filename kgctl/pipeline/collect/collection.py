"""What a collection brought, partition by partition: the topics in its keys, and the proof that it is of a coordinator's log."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import KgctlError, RefusedError, StorageError, UsageError
from kgctl.pipeline.decode.records import decode_keys
from kgctl.pipeline.decode.schemas import Reason
from kgctl.pipeline.sources.batches import Damage
from kgctl.pipeline.store.warehouse import Staged

_DAMAGES_NAMED = 20


@dataclass(slots=True)
class PartitionSummary:
    """One partition of ``__consumer_offsets``.

    ``read`` counts what the source has, ``added`` what of it was new; offsets and times are the lowest and highest of the new
    ones, None where nothing was.
    """

    partition: int
    read: int = 0
    added: int = 0
    damaged: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None

    def see(self, staged: Iterable[Staged]) -> None:
        """Count these records, and widen the bounds by theirs."""
        for each in staged:
            self.added += each.rows
            self.widen((each.first_offset, each.last_offset), (each.first_ms, each.last_ms))

    def widen(self, offsets: tuple[int, int], times: tuple[int, int]) -> None:
        """Widen the bounds by a lowest and highest of each."""
        self.first_offset = offsets[0] if self.first_offset is None else min(self.first_offset, offsets[0])
        self.last_offset = offsets[1] if self.last_offset is None else max(self.last_offset, offsets[1])
        self.first_ms = times[0] if self.first_ms is None else min(self.first_ms, times[0])
        self.last_ms = times[1] if self.last_ms is None else max(self.last_ms, times[1])


@dataclass(slots=True)
class Collection:
    """The result of one collection. ``errors`` are partitions and files that could not be collected, and damage; ``samples``
    counts rows of log offsets; ``away``: why the cluster was not there at the end of a live one."""

    cluster: str
    partitions: dict[int, PartitionSummary] = field(default_factory=dict)
    errors: list[KgctlError] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    samples: int = 0
    away: KgctlError | None = None

    @property
    def records_read(self) -> int:
        """Return the records read, over all partitions."""
        return sum(summary.read for summary in self.partitions.values())

    @property
    def added(self) -> int:
        """Return the records added, over all partitions."""
        return sum(summary.added for summary in self.partitions.values())

    def of(self, partition: int) -> PartitionSummary:
        """The summary of a partition, made when it is first asked for."""
        return self.partitions.setdefault(partition, PartitionSummary(partition))

    def add_damage(self, partition: int, source: str, damaged: Sequence[Damage], *, is_all: bool = False) -> None:
        """Name each of the first, and count the rest. ``is_all``: there was nothing else in the source."""
        if is_all:
            self.errors.append(UsageError(f"{source}: holds no record batch of Kafka's: not a segment of its log"))
            return
        self.of(partition).damaged += len(damaged)
        for damage in damaged[:_DAMAGES_NAMED]:
            self.errors.append(StorageError(f"{source} {damage.describe()}", code="DAMAGED", partition=partition))
        if len(damaged) > _DAMAGES_NAMED:
            more = f"{len(damaged) - _DAMAGES_NAMED} more damaged places, in the warehouse's table damaged"
            self.errors.append(StorageError(f"{source}: {more}", code="DAMAGED", partition=partition))


class LastTroubles:
    """What went wrong at the last look of a collection that goes on: it is told once, and counts for as long as it lasts."""

    def __init__(self) -> None:
        self.now: Mapping[Any, KgctlError] = {}

    def look(self, found: Mapping[Any, KgctlError]) -> list[KgctlError]:
        """Take what is wrong now; what was not at the look before."""
        fresh = [error for place, error in found.items() if place not in self.now]
        self.now = found
        return fresh

    def sampled(self, errors: Iterable[KgctlError]) -> list[KgctlError]:
        """`look` at what a sample of log offsets lacks."""
        return self.look({(error.topic, error.partition, error.code): error for error in errors})


_SHORT = struct.Struct(">h")
_PARTITION_BYTES = 4
_OFFSET_COMMITS = (0, 1)


class TopicsSeen:
    """Collects the topics that appear in the records it is shown."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.topics = set(known)

    def see(self, keys: Any) -> None:
        """Keys of records of ``__consumer_offsets``, as an Arrow column. Those of other kinds, and damaged ones, tell nothing."""
        for key in pc.unique(pc.binary_slice(keys, 0, -_PARTITION_BYTES)).to_pylist():
            topic = _topic(key)
            if topic:
                self.topics.add(topic)


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


_MOST_TYPES = 256
"""Kafka numbers its record types from 0; what claims a higher one is text, a hash or JSON."""


def require_coordinator_records(source: str, tables: Iterable[Any]) -> None:
    """Look at the keys of records (columns of ``RAW``), markers of transactions left out.

    A few damaged keys are data. Raises `RefusedError`, naming ``source``, where most of the keys are none of a coordinator's.
    """
    fine = total = 0
    for table in tables:
        keys = table.column("key").filter(table.column("commits").is_null())
        found = decode_keys(pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], pa.binary()))
        is_foreign = np.zeros(len(found.types), np.bool_)
        for code, reason in found.reasons.items():
            is_foreign[code] = reason in (Reason.NO_KEY, Reason.DAMAGED_KEY) or _is_no_type(reason, int(found.types[code]))
        total += len(found.codes)
        fine += len(found.codes) - int(is_foreign[found.codes].sum())
    if fine * 2 < total:
        raise RefusedError(
            f"{source}: {total - fine} of {total} records have keys that no group coordinator writes: "
            "these are records of another topic than __consumer_offsets"
        )


def _is_no_type(reason: Reason, record_type: int) -> bool:
    return reason is Reason.UNKNOWN_TYPE and not 0 <= record_type < _MOST_TYPES
