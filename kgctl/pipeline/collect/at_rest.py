"""Collecting from sources at rest: pieces are read side by side, and what is new in them is committed when all are read.

One proof that records are another cluster's refuses all of them: what looks right beside it is of that cluster, too.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.pipeline.collect.collection import Collection, TopicsSeen, require_coordinator_records
from kgctl.pipeline.engines import Engine, ItemFailure
from kgctl.pipeline.sources.at_rest import LogPiece, RestSource
from kgctl.pipeline.sources.batches import Damage, LogReport, damaged_table
from kgctl.pipeline.store.tables import RAW, conform, from_stored
from kgctl.pipeline.store.warehouse import Known, Staged, Warehouse, commit_records, stage_records

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_KINDS: Mapping[str, type[KgctlError]] = {kind.slug: kind for kind in (UsageError, NotFoundError, RefusedError)}


@dataclass(slots=True)
class PieceRead:
    """What came of one piece: records that are written and not yet named, and the topics in their keys. ``partition`` is the one
    that the piece is of, None where only its records tell; ``failure``: why nothing of it counts."""

    source: str
    partition: int | None = None
    staged: list[Staged] = field(default_factory=list)
    read: dict[int, int] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    damaged: list[Damage] = field(default_factory=list)
    batches: int = 0
    torn: int = 0
    failure: ItemFailure | None = None

    def take(self, known: Known, tables: Sequence[Any], report: LogReport) -> None:
        """Write what is new in a part of the piece. Raises `RefusedError` as `require_coordinator_records`, `stage_records`."""
        require_coordinator_records(self.source, tables)
        self.damaged += report.damaged
        self.batches += report.batches
        self.torn += report.torn
        seen = TopicsSeen(self.topics)
        for partition, table in _joined(tables):
            self.read[partition] = self.read.get(partition, 0) + table.num_rows
            seen.see(table.column("key"))
            staged = stage_records(known, table, self.source)
            if staged is not None:
                self.staged.append(staged)
        self.topics = seen.topics


def stage(known: Known, piece: LogPiece) -> PieceRead:
    """Read a piece and write what is new in it. Runs where the engine runs it; raises as `LogPiece.read` and `PieceRead.take`."""
    found = PieceRead(piece.source, _partition_of(piece))
    for parsed in piece.read():
        found.take(known, parsed.tables, LogReport(parsed.batches, parsed.torn, parsed.damaged))
    return found


def collect_at_rest(
    warehouse: Warehouse,
    cluster: str,
    sources: Sequence[RestSource],
    engine: Engine,
    progress: Callable[[str], object],
    *,
    now_ms: int = 0,
) -> Collection:
    """Read all pieces, then commit what is new in one step.

    A piece that cannot be read is an error of the result; the others are kept. Where a record is refused nothing is kept.
    Raises `KgctlError` where Spark itself fails: then nothing is kept, either.
    """
    collection = Collection(cluster)
    staged: list[Staged] = []
    topics: set[str] = set()
    known = Known.of(warehouse, cluster)
    count = sum(len(source.pieces) for source in sources)
    reads = _read_here(known, sources, engine) if engine.session is None else _read_by_spark(known, sources, engine.session)
    for done, found in enumerate(reads, start=1):
        _take(warehouse, collection, found, now_ms)
        staged += found.staged
        topics |= found.topics
        progress(f"collected {done} of {count} pieces, {collection.records_read} records")
    if not any(isinstance(error, RefusedError) for error in collection.errors):
        _commit(warehouse, known, collection, staged, topics=topics, now_ms=now_ms)
    if any(isinstance(error, RefusedError) for error in collection.errors):
        collection.partitions.clear()  # what was read beside it does not count, and was not there before
        collection.notices.append("Nothing was collected: records were refused, and the others come from the same place.")
    return collection


def _partition_of(piece: LogPiece) -> int | None:
    """The one partition that a piece is of; None where only its records tell."""
    return getattr(piece, "partition", None)


def _order(pieces: Sequence[LogPiece]) -> Callable[[LogPiece], tuple[int, int, int]]:
    """Partition by partition, the biggest first, so that no long piece is begun last."""
    size: Counter[int | None] = Counter()
    for piece in pieces:
        size[_partition_of(piece)] += piece.size
    return lambda piece: (-size[_partition_of(piece)], -1 if (number := _partition_of(piece)) is None else number, -piece.size)


def _read_here(known: Known, sources: Sequence[RestSource], engine: Engine) -> Iterator[PieceRead]:
    pieces = [piece for source in sources for piece in source.pieces]
    pieces.sort(key=_order(pieces))
    for done in engine.stream(partial(stage, known), pieces):
        yield done.value or PieceRead(pieces[done.index].source, failure=done.failure)


def _read_by_spark(known: Known, sources: Sequence[RestSource], session: SparkSession) -> list[PieceRead]:
    """By kgctl's data source: one task a piece, which is where its records are written."""
    from kgctl.pipeline.engines import shipped, spark_errors
    from kgctl.pipeline.sources.spark_source import NAME, register

    with spark_errors():
        register(session)
        # a server of Spark Connect has another working folder
        paths = [(kind, str(Path(path).absolute())) for kind, path in (each.option for each in sources)]
        frames = [session.read.format(NAME).options(**{kind: path}, reports="true").load() for kind, path in paths]
        staged = reduce(lambda one, other: one.unionAll(other), frames).mapInArrow(shipped(_Staging(known)), "read binary")
        return [pickle.loads(row.read) for row in staged.collect()]  # noqa: S301 - what kgctl's tasks have made


class _Staging:
    """What a task does with the records and reports of pieces."""

    def __init__(self, known: Known) -> None:
        self.known = known

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        reads: dict[str, PieceRead] = {}
        tables: list[pa.Table] = []
        for rows in _parts(batches):
            if rows.column("report")[0].as_py() is None:
                tables.append(conform(from_stored("records", rows.drop_columns(["source", "report"])), RAW))
            else:
                self._take(reads, tables, rows.to_pylist()[0])
                tables = []
        yield pa.record_batch({"read": pa.array([pickle.dumps(read) for read in reads.values()], pa.binary())})

    def _take(self, reads: dict[str, PieceRead], tables: Sequence[pa.Table], row: Mapping[str, Any]) -> None:
        found = reads.setdefault(row["source"], PieceRead(row["source"], row["log_partition"]))
        report = LogReport.parse(row["report"])
        if report.error is not None:
            reads[row["source"]] = PieceRead(row["source"], row["log_partition"], failure=ItemFailure(*report.error))
        elif found.failure is None:
            try:
                found.take(self.known, tables, report)
            except KgctlError as error:
                failure = ItemFailure(error.code, error.message)
                reads[row["source"]] = PieceRead(row["source"], row["log_partition"], failure=failure)


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of batches, each report by itself."""
    import pyarrow as pa

    for batch in batches:
        table = pa.table(batch)
        reports = [at for at, report in enumerate(table.column("report").to_pylist()) if report is not None]
        edges = sorted({0, table.num_rows, *reports, *(at + 1 for at in reports)})
        yield from (table.slice(low, high - low) for low, high in pairwise(edges))


def _take(warehouse: Warehouse, collection: Collection, found: PieceRead, now_ms: int) -> None:
    if found.failure is not None:
        kind = _KINDS.get(found.failure.code, StorageError)
        collection.errors.append(kind(found.failure.message, code=found.failure.code))
        return
    for partition, count in found.read.items():
        collection.of(partition).read += count
    partition = next(iter(found.read), 0) if found.partition is None else found.partition
    if found.torn:
        collection.notices.append(f"{found.source}: ends inside a batch; its {found.torn} bytes are left out until it is whole")
    if found.damaged:
        warehouse.add_damaged(collection.cluster, damaged_table(found.source, partition, found.damaged), now_ms)
        collection.add_damage(partition, found.source, found.damaged, is_all=not found.batches)


def _commit(
    warehouse: Warehouse, known: Known, collection: Collection, staged: Sequence[Staged], *, topics: set[str], now_ms: int
) -> None:
    if not collection.records_read:
        return
    try:
        added = commit_records(warehouse, known, staged)
    except RefusedError as error:
        collection.errors.append(error)
        return
    warehouse.tell(collection.cluster, now_ms, topics=topics)
    for partition, fresh in added.items():
        collection.of(partition).see(fresh)


def _joined(tables: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return each partition's rows in one table."""
    import pyarrow as pa

    by_partition: dict[int, list[Any]] = {}
    for table in tables:
        if table.num_rows:
            by_partition.setdefault(table.column("partition")[0].as_py(), []).append(table)
    return [(partition, pa.concat_tables(found)) for partition, found in sorted(by_partition.items())]
