"""Sources at rest, cut into pieces that can be read anywhere: each names its files and opens them where it is read.

Segment files of a broker, the record log of a data folder (``kgctl serve``), Parquet of an earlier collection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgctl.errors import NotFoundError, UsageError
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.sources.batches import Damage, cut
from kgctl.pipeline.sources.live import OFFSETS_TOPIC
from kgctl.pipeline.sources.parse import ParsedLog, parse_log
from kgctl.pipeline.store.files import one_line, parquet_errors, storage_errors
from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW, conform, from_stored, rows_of
from kgctl.pipeline.store.warehouse import OLD_MARKER, Warehouse
from kgctl.storage.bulk import BulkReader, RecordColumns


class LogPiece(Protocol):
    """A stretch of records that is read in one go. Pickled to where the work is done."""

    @property
    def source(self) -> str:
        """What to call it when speaking to people: a path."""
        ...

    @property
    def size(self) -> int:
        """Return the approximate amount of work, in bytes."""
        ...

    def read(self) -> Iterator[ParsedLog]:
        """Its records, in parts that fit into memory; each table holds one partition.

        Raises `kgctl.errors.KgctlError` where it cannot be read at all. What is damaged in it is data.
        """
        ...


@frozen_in_order
class RestSource:
    """Pieces that belong together, and the name of their cluster where they have one. ``option``: the option, and its value, by
    which the data source of Spark reads the same."""

    pieces: Sequence[LogPiece]
    option: tuple[str, str]
    cluster: str | None = None


_FOLDER = re.compile(rf"{OFFSETS_TOPIC}-(\d+)")
_FILE = re.compile(r"\d{20}\.log")


@frozen_in_order
class SegmentPiece:
    """One segment file. ``is_last`` is its partition's newest: a batch that is cut off at its end was being written."""

    path: Path
    partition: int
    is_last: bool
    size: int

    @property
    def source(self) -> str:
        """Return the segment's path."""
        return str(self.path)

    def read(self) -> Iterator[ParsedLog]:
        """Read the whole file. Raises `StorageError`."""
        with storage_errors(self.path):
            data = self.path.read_bytes()
        parsed = parse_log(data, self.partition)
        if parsed.torn and not self.is_last:
            start = len(data) - parsed.torn
            reason = "a batch that is cut off, though other segments follow"
            parsed.damaged.append(Damage(start, parsed.torn, reason, data=cut(data[start:])))
            parsed.torn = 0
        yield parsed


def segments(path: Path) -> RestSource:
    """A partition's folder ``__consumer_offsets-N``, a folder of such, or one ``.log`` file in its partition's folder.

    Raises `NotFoundError`, `UsageError` (a file that is no segment) and `StorageError` (not readable).
    """
    with storage_errors(path):
        if not path.exists():
            raise NotFoundError(f"{path}: no such file or folder")
        if path.is_file():
            return RestSource([_single(path)], ("segments", str(path)))
    pieces = [piece for partition, folder in _folders(path) for piece in _of_partition(folder, partition)]
    if not pieces:
        raise NotFoundError(f"{path}: no segment (00000000000000000000.log and so on) in it")
    return RestSource(pieces, ("segments", str(path)))


def _single(path: Path) -> SegmentPiece:
    match = _FOLDER.fullmatch(path.absolute().parent.name)
    if path.suffix != ".log":
        raise UsageError(f"{path} is not a segment: segments are named 00000000000000000000.log and so on")
    if match is None:
        raise UsageError(f"{path}: its folder must be named after its partition ({OFFSETS_TOPIC}-12), which is not in the file")
    return SegmentPiece(path, int(match[1]), is_last=True, size=path.stat().st_size)


def _folders(path: Path) -> list[tuple[int, Path]]:
    with storage_errors(path):
        candidates = [path.absolute(), *sorted(path.iterdir())]
        found = [(int(match[1]), each) for each in candidates if (match := _FOLDER.fullmatch(each.name)) and each.is_dir()]
    if not found:
        raise NotFoundError(f"{path}: no folder of a partition ({OFFSETS_TOPIC}-0 and so on), and no segment")
    return sorted(found)


def _of_partition(folder: Path, partition: int) -> list[SegmentPiece]:
    with storage_errors(folder):
        files = sorted(each for each in folder.iterdir() if _FILE.fullmatch(each.name))
        return [SegmentPiece(file, partition, file == files[-1], file.stat().st_size) for file in files]


_PAGE_ROWS = 5_000  # larger ones are slower: rows are tuples, which the search for reference cycles looks at
_PAGES = 100


@frozen_in_order
class RecordLogPiece:
    """One partition of a data folder's record log."""

    path: Path
    partition: int
    size: int = 1

    @property
    def source(self) -> str:
        """Return the data folder."""
        return str(self.path)

    def read(self) -> Iterator[ParsedLog]:
        """Some pages of records at a time. Raises as `BulkReader`."""
        with BulkReader(self.path) as folder:
            pages = folder.records(self.partition, page_rows=_PAGE_ROWS)
            while tables := [_table(self.partition, page) for page in islice(pages, _PAGES)]:
                yield ParsedLog(tables, batches=len(tables))


def record_log(path: Path) -> RestSource:
    """The data folder of ``kgctl serve`` or of ``kgctl simulate run --records-out``. Raises as `kgctl.storage.bulk`."""
    with BulkReader(path) as folder:
        return RestSource([RecordLogPiece(path, partition) for partition in folder.partitions()], ("recordLog", str(path)))


def _table(partition: int, page: RecordColumns) -> Any:
    columns: dict[str, Any] = {"partition": [partition] * len(page.offset), **page._asdict()}
    columns["commits"] = pa.array(page.commits, pa.int8()).cast(pa.bool_())
    return rows_of(columns, RAW)


def record_log_samples(path: Path, *, every_ms: int, now_ms: int) -> Any:
    """The log offsets of the folder's topics (`LOG_OFFSETS`): their ends as their batches tell them, and both bounds as of now.

    "Now" is that of the folder: where nobody has it open, the time of the last thing in it.
    """
    with BulkReader(path) as folder:
        ends, bounds = folder.log_ends(every_ms), folder.log_bounds()
        as_of = folder.as_of_ms(now_ms)
    past = rows_of(ends._asdict(), LOG_OFFSETS)
    now = rows_of(
        {
            "topic": [bound.topic for bound in bounds],
            "partition": [bound.partition for bound in bounds],
            "timestamp_ms": [as_of] * len(bounds),
            "log_start_offset": [bound.log_start_offset for bound in bounds],
            "log_end_offset": [bound.log_end_offset for bound in bounds],
        },
        LOG_OFFSETS,
    )
    return pa.concat_tables([past, now])


_ROWS = 1 << 19


@frozen_in_order
class ParquetPiece:
    """One Parquet file."""

    path: Path
    size: int

    @property
    def source(self) -> str:
        """Return the file's path."""
        return str(self.path)

    def read(self) -> Iterator[ParsedLog]:
        """Some row groups at a time, each partition in a table of its own. Raises `StorageError`, `UsageError`."""
        with parquet_errors(self.path), pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(_ROWS):
                yield ParsedLog(_by_partition(_conformed(self.path, pa.table(batch))), batches=1)


def parquet(path: Path) -> RestSource:
    """A Parquet file of records, a folder of such, or another warehouse, of which the cluster is taken that there is only one of.

    Raises `NotFoundError`, `UsageError` (other columns, a warehouse of several clusters), `StorageError`.
    """
    with storage_errors(path):
        if not path.exists():
            raise NotFoundError(f"{path}: no such file or folder")
        is_old, is_warehouse = (path / OLD_MARKER).exists(), (path / "clusters" / "_delta_log").exists()
    if is_warehouse:
        warehouse = Warehouse.open(path)
        records = [path / "records" / file.path for file in warehouse.table("records").files()]
        return RestSource(_pieces(records), ("parquet", str(path)), warehouse.require_cluster(None))
    folder, cluster = (_old_folder(path, "records"), _old_cluster(path)) if is_old else (path, None)
    files = sorted(folder.rglob("*.parquet")) if folder.is_dir() else [folder]
    if not files:
        raise NotFoundError(f"{path}: no Parquet file in it")
    return RestSource(_pieces(files), ("parquet", str(path)), cluster)


def parquet_samples(*paths: Path) -> Any:
    """The samples of other warehouses (`LOG_OFFSETS`); none in other folders."""
    found = [LOG_OFFSETS.empty_table()]
    for path in paths:
        if (path / "clusters" / "_delta_log").exists():
            found.append(conform(from_stored("samples", Warehouse.open(path).table("samples").rows()), LOG_OFFSETS))
        elif (path / OLD_MARKER).exists():
            found += [_read(file) for file in sorted(_old_folder(path, "log_offsets").rglob("*.parquet"))]
    return pa.concat_tables(found)


def _old_cluster(path: Path) -> str:
    """The one cluster of a warehouse of the format before Delta tables."""
    found = sorted(each.name.partition("=")[2] for each in (path / "bronze" / "records").glob("cluster=*"))
    if len(found) != 1:
        raise UsageError(
            f"{path} holds {len(found)} clusters: give one of the folders {path}/bronze/records/cluster=NAME, and --cluster"
        )
    return unquote(found[0])


def _old_folder(path: Path, kind: str) -> Path:
    return path / "bronze" / kind


def _read(file: Path) -> Any:
    with parquet_errors(file):
        return pq.ParquetFile(file).read().cast(LOG_OFFSETS)


def _pieces(files: Sequence[Path]) -> list[ParquetPiece]:
    return [ParquetPiece(file, file.stat().st_size) for file in files]


def _conformed(path: Path, table: Any) -> Any:
    try:
        return conform(from_stored("records", table) if "log_offset" in table.column_names else table, RAW)
    except KeyError as error:
        raise UsageError(f"{path}: has no column {error.args[0]}; wanted are the columns of collected records") from None
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path}: {one_line(error)}") from None


def _by_partition(table: Any) -> list[Any]:
    partitions = pc.unique(table.column("partition")).to_pylist()
    if len(partitions) == 1:
        return [table]
    return [table.filter(pc.equal(table.column("partition"), partition)) for partition in sorted(partitions)]
