"""What a collection brought, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kgctl.errors import KgctlError, StorageError, UsageError
from kgctl.pipeline.sources.log.damage import Damage
from kgctl.pipeline.store.records import Staged

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
    counts rows of log offsets."""

    cluster: str
    partitions: dict[int, PartitionSummary] = field(default_factory=dict)
    errors: list[KgctlError] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    samples: int = 0

    @property
    def records_read(self) -> int:
        """Of all partitions."""
        return sum(summary.read for summary in self.partitions.values())

    @property
    def added(self) -> int:
        """Of all partitions."""
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
