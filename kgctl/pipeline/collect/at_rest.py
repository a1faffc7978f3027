"""Collecting from sources at rest: pieces are read side by side, and what is new in them is committed when all are read.

One proof that records are another cluster's refuses all of them: what looks right beside it is of that cluster, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.pipeline.collect.collection import Collection, TopicsSeen, require_coordinator_records
from kgctl.pipeline.engines import Done, Engine
from kgctl.pipeline.sources.at_rest import Piece
from kgctl.pipeline.sources.batches import Damage, damaged_table
from kgctl.pipeline.store.warehouse import Known, Staged, Warehouse, commit_records, stage_records

_KINDS: Mapping[str, type[KgctlError]] = {kind.slug: kind for kind in (UsageError, NotFoundError, RefusedError)}


@dataclass(slots=True)
class Read:
    """What came of one piece: records that are written and not yet named, and the topics in their keys."""

    source: str
    staged: list[Staged] = field(default_factory=list)
    read: dict[int, int] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    damaged: list[Damage] = field(default_factory=list)
    batches: int = 0
    torn: int = 0


def stage(known: Known, piece: Piece) -> Read:
    """Read a piece and write what is new in it. Runs where the engine runs it; raises as `Piece.read` and `stage_records`."""
    found = Read(piece.source)
    topics = TopicsSeen()
    for parsed in piece.read():
        require_coordinator_records(piece.source, parsed.tables)
        found.damaged += parsed.damaged
        found.batches += parsed.batches
        found.torn += parsed.torn
        for partition, table in _joined(parsed.tables):
            found.read[partition] = found.read.get(partition, 0) + table.num_rows
            topics.see(table.column("key"))
            staged = stage_records(known, table, piece.source)
            if staged is not None:
                found.staged.append(staged)
    found.topics = topics.topics
    return found


def collect_at_rest(
    warehouse: Warehouse,
    cluster: str,
    pieces: Sequence[Piece],
    engine: Engine,
    progress: Callable[[str], object],
    *,
    now_ms: int = 0,
) -> Collection:
    """Read all pieces, then commit what is new in one step.

    A piece that cannot be read is an error of the result; the others are kept. Where a record is refused nothing is kept.
    """
    collection = Collection(cluster)
    pieces = sorted(pieces, key=_order(pieces))
    staged: list[Staged] = []
    topics: set[str] = set()
    known = Known.of(warehouse, cluster)
    for done, result in enumerate(engine.stream(partial(stage, known), pieces), start=1):
        found = _take(warehouse, collection, pieces[result.index], result, now_ms)
        if found is not None:
            staged += found.staged
            topics |= found.topics
        progress(f"collected {done} of {len(pieces)} pieces, {collection.records_read} records")
    if not any(isinstance(error, RefusedError) for error in collection.errors):
        _commit(warehouse, known, collection, staged, topics=topics, now_ms=now_ms)
    if any(isinstance(error, RefusedError) for error in collection.errors):
        collection.notices.append("Nothing was collected: records were refused, and the others come from the same place.")
    return collection


def _partition_of(piece: Piece) -> int | None:
    """The one partition that a piece is of; None where only its records tell."""
    return getattr(piece, "partition", None)


def _order(pieces: Sequence[Piece]) -> Callable[[Piece], tuple[int, int, int]]:
    """Partition by partition, the biggest first, so that no long piece is begun last."""
    size: Counter[int | None] = Counter()
    for piece in pieces:
        size[_partition_of(piece)] += piece.size
    return lambda piece: (-size[_partition_of(piece)], -1 if (number := _partition_of(piece)) is None else number, -piece.size)


def _take(warehouse: Warehouse, collection: Collection, piece: Piece, result: Done[Read], now_ms: int) -> Read | None:
    if result.failure is not None:
        kind = _KINDS.get(result.failure.code, StorageError)
        collection.errors.append(kind(result.failure.message, code=result.failure.code))
        return None
    found = result.get()
    for partition, count in found.read.items():
        collection.of(partition).read += count
    number = _partition_of(piece)
    partition = next(iter(found.read), 0) if number is None else number
    if found.torn:
        collection.notices.append(f"{found.source}: ends inside a batch; its {found.torn} bytes are left out until it is whole")
    if found.damaged:
        warehouse.add_damaged(collection.cluster, damaged_table(found.source, partition, found.damaged), now_ms)
        collection.add_damage(partition, found.source, found.damaged, is_all=not found.batches)
    return found


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
    """Each partition's rows in one table."""
    import pyarrow as pa

    by_partition: dict[int, list[Any]] = {}
    for table in tables:
        if table.num_rows:
            by_partition.setdefault(table.column("partition")[0].as_py(), []).append(table)
    return [(partition, pa.concat_tables(found)) for partition, found in sorted(by_partition.items())]
