"""Collecting from sources at rest: pieces are read side by side, and what is new in them is committed when all are read.

One proof that records are another cluster's refuses all of them: what looks right beside it is of that cluster, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.pipeline.collect.proof import require_coordinator_records
from kgctl.pipeline.collect.summary import Collection, PartitionSummary
from kgctl.pipeline.collect.topics import forget_topics
from kgctl.pipeline.sources.log.damage import Damage, damaged_table
from kgctl.pipeline.sources.pieces import Piece
from kgctl.pipeline.spread import Done, Engine
from kgctl.pipeline.warehouse.manifests import BronzeFile
from kgctl.pipeline.warehouse.records import commit_records, stage_records
from kgctl.pipeline.warehouse.warehouse import Warehouse

_KINDS: Mapping[str, type[KgctlError]] = {kind.slug: kind for kind in (UsageError, NotFoundError, RefusedError)}


@dataclass(slots=True)
class Staged:
    """What came of one piece: files that are written and not yet named, by partition."""

    source: str
    files: dict[int, list[BronzeFile]] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    damaged: list[Damage] = field(default_factory=list)
    batches: int = 0
    torn: int = 0


def stage(warehouse: Warehouse, cluster: str, piece: Piece) -> Staged:
    """Read a piece and write what is new in it. Runs where the engine runs it; raises as `Piece.read` and `stage_records`."""
    staged = Staged(piece.source)
    for parsed in piece.read():
        require_coordinator_records(piece.source, parsed.tables)
        staged.damaged += parsed.damaged
        staged.batches += parsed.batches
        staged.torn += parsed.torn
        for partition, table in _joined(parsed.tables):
            staged.read[partition] = staged.read.get(partition, 0) + table.num_rows
            file = stage_records(warehouse, cluster, partition, table, piece.source)
            if file is not None:
                staged.files.setdefault(partition, []).append(file)
    return staged


def collect_at_rest(
    warehouse: Warehouse,
    cluster: str,
    pieces: Sequence[Piece],
    engine: Engine,
    progress: Callable[[str], object],
) -> Collection:
    """Read all pieces, then commit what is new. Call it under `Warehouse.locked`.

    A piece that cannot be read is an error of the result; the others are kept. Where a record is refused nothing is kept.
    """
    forget_topics(warehouse, cluster)
    collection = Collection(cluster)
    pieces = sorted(pieces, key=_order(pieces))
    waiting: dict[int, list[BronzeFile]] = {}
    for done, result in enumerate(engine.stream(partial(stage, warehouse, cluster), pieces), start=1):
        _take(warehouse, collection, waiting, pieces[result.index], result)
        progress(f"collected {done} of {len(pieces)} pieces, {collection.records_read} records")
    if any(isinstance(error, RefusedError) for error in collection.errors):
        collection.notices.append("Nothing was collected: records were refused, and the others come from the same place.")
        return collection
    for partition, files in sorted(waiting.items()):
        _commit(warehouse, collection, partition, files)
    return collection


def _partition_of(piece: Piece) -> int | None:
    """The one partition that a piece is of; None where only its records tell."""
    return getattr(piece, "partition", None)


def _order(pieces: Sequence[Piece]) -> Callable[[Piece], tuple[int, int, int]]:
    """Partition by partition, the biggest first, so that no long piece is begun last and what is done can be committed."""
    size: Counter[int | None] = Counter()
    for piece in pieces:
        size[_partition_of(piece)] += piece.size
    return lambda piece: (-size[_partition_of(piece)], -1 if (number := _partition_of(piece)) is None else number, -piece.size)


def _take(
    warehouse: Warehouse, collection: Collection, waiting: dict[int, list[BronzeFile]], piece: Piece, result: Done[Staged]
) -> None:
    if result.failure is not None:
        kind = _KINDS.get(result.failure.code, StorageError)
        collection.errors.append(kind(result.failure.message, code=result.failure.code))
        return
    staged = result.get()
    for partition, count in staged.read.items():
        collection.of(partition).read += count
        waiting.setdefault(partition, []).extend(staged.files.get(partition, ()))
    number = _partition_of(piece)
    partition = next(iter(staged.read), 0) if number is None else number
    if staged.torn:
        collection.notices.append(f"{staged.source}: ends inside a batch; its {staged.torn} bytes are left out until it is whole")
    if staged.damaged:
        warehouse.add_damaged(collection.cluster, damaged_table(staged.source, partition, staged.damaged))
        collection.add_damage(partition, staged.source, staged.damaged, is_all=not staged.batches)


def _commit(warehouse: Warehouse, collection: Collection, partition: int, files: Iterable[BronzeFile]) -> None:
    summary: PartitionSummary = collection.of(partition)
    try:
        fresh = list(files)
        summary.added += commit_records(warehouse, collection.cluster, partition, fresh)
        summary.see(fresh)
    except KgctlError as error:
        collection.errors.append(error)


def _joined(tables: Sequence[Any]) -> list[tuple[int, Any]]:
    """Each partition's rows in one table."""
    import pyarrow as pa

    by_partition: dict[int, list[Any]] = {}
    for table in tables:
        if table.num_rows:
            by_partition.setdefault(table.column("partition")[0].as_py(), []).append(table)
    return [(partition, pa.concat_tables(found)) for partition, found in sorted(by_partition.items())]
