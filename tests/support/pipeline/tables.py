"""Copies of a warehouse's records and samples, cut elsewhere."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW, conform, from_stored
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.pipeline.warehouses import add


def copy_samples(from_path: Path, to_path: Path, cluster: str) -> None:
    """Give a warehouse the samples of the log that another one has."""
    samples = conform(from_stored("samples", Warehouse.open(from_path).table("samples").rows()), LOG_OFFSETS)
    Warehouse.open(to_path).add_samples(cluster, samples)


def copy_shuffled(from_path: Path, to_path: Path, cluster: str, cuts: int, seed: int) -> None:
    """The same records in other files: each partition cut elsewhere, the pieces in any order, some of them twice."""
    chance = random.Random(seed)
    source, target = Warehouse.open(from_path), Warehouse.create(to_path)
    pieces: list[tuple[int, pa.Table]] = []
    everything = conform(from_stored("records", source.table("records").rows()), RAW).sort_by("offset")
    for partition in sorted(everything.column("partition").unique().to_pylist()):
        whole = everything.filter(pc.equal(everything.column("partition"), partition))
        bounds = sorted({0, whole.num_rows, *(chance.randint(0, whole.num_rows) for _ in range(cuts))})
        for begin, end in pairwise(bounds):
            piece = whole.slice(begin, end - begin)
            pieces += [(partition, piece)] * chance.choice([1, 1, 2])
    chance.shuffle(pieces)
    for number, (_, piece) in enumerate(pieces):
        order = pa.array(chance.sample(range(piece.num_rows), piece.num_rows), pa.int64())
        if piece.num_rows:
            add(target, cluster, piece.take(order), f"piece {number}")
    copy_samples(from_path, to_path, cluster)
