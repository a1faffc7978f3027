"""Sources at rest, cut into pieces that can be read anywhere: each names its files and opens them where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kgctl.pipeline.sources.log.parse import ParsedLog


class Piece(Protocol):
    """A stretch of records that is read in one go. Pickled to where the work is done."""

    @property
    def source(self) -> str:
        """What to call it when speaking to people: a path."""
        ...

    @property
    def size(self) -> int:
        """Roughly how much work it is, in bytes."""
        ...

    def read(self) -> Iterator[ParsedLog]:
        """Its records, in parts that fit into memory; each table holds one partition.

        Raises `kgctl.errors.KgctlError` where it cannot be read at all. What is damaged in it is data.
        """
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """Pieces that belong together, and the name of their cluster where they have one."""

    pieces: Sequence[Piece]
    cluster: str | None = None


def segments(path: Path) -> Source:
    """A partition's folder ``__consumer_offsets-N``, a folder of such, or one ``.log`` file in its partition's folder.

    Raises `NotFoundError`, `UsageError` (a file that is no segment) and `StorageError` (not readable).
    """
    from kgctl.pipeline.sources.segments import segment_pieces

    return Source(segment_pieces(path))


def record_log(path: Path) -> Source:
    """The data folder of ``kgctl serve`` or of ``kgctl simulate run --records-out``. Raises as `kgctl.storage.sqlite_files`."""
    from kgctl.pipeline.sources.record_log import record_log_pieces

    return Source(record_log_pieces(path))


def parquet(path: Path) -> Source:
    """A Parquet file of records, a folder of such, or another warehouse, of which the cluster is taken that there is only one of.

    Raises `NotFoundError`, `UsageError` (other columns, a warehouse of several clusters), `StorageError`.
    """
    from kgctl.pipeline.sources.parquet import parquet_source

    return parquet_source(path)
