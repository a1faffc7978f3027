"""What could not be read, and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kgctl.pipeline.store.raw import DAMAGED, DAMAGED_DATA_BYTES, rows_of


@dataclass(frozen=True, slots=True)
class Damage:
    """``size`` bytes at byte ``position``; ``base_offset`` and ``records`` are what their header says, where one can be read."""

    position: int
    size: int
    reason: str
    base_offset: int | None = None
    records: int | None = None
    data: bytes = field(default=b"", repr=False)

    def describe(self) -> str:
        """One line without the source's name."""
        count = "" if self.records is None else f", {self.records} records from offset {self.base_offset}"
        return f"at byte {self.position}: {self.reason} ({self.size} bytes{count})"


def cut(data: memoryview | bytes) -> bytes:
    """As much of the bytes as is kept."""
    return bytes(data[:DAMAGED_DATA_BYTES])


def damaged_table(source: str, partition: int, damaged: Sequence[Damage]) -> Any:
    """Rows of `kgctl.pipeline.store.raw.DAMAGED`."""
    columns: dict[str, list[Any]] = {
        name: [getattr(each, name) for each in damaged]
        for name in ("position", "size", "base_offset", "records", "reason", "data")
    }
    size = len(damaged)
    return rows_of({"source": [source] * size, "partition": [partition] * size, **columns}, DAMAGED)
