"""All built tables of a warehouse, to compare two of them."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from kgctl.pipeline.tables.registry import CLUSTER_TABLES, PARTITION_TABLES
from kgctl.pipeline.warehouse.files import read_table
from kgctl.pipeline.warehouse.warehouse import Warehouse

Tables = dict[tuple[str, int | None], pa.Table]


def tables_of(path: Path, cluster: str) -> Tables:
    """By name and partition of ``__consumer_offsets`` (None: of the cluster); tables without a row are left out."""
    warehouse = Warehouse.open(path)
    found: Tables = {}
    for partition in (*warehouse.built_partitions(cluster), None):
        for name in CLUSTER_TABLES if partition is None else PARTITION_TABLES:
            files = warehouse.built(cluster, partition).files("gold", name)
            if files:
                found[name, partition] = pa.concat_tables([read_table(path / file) for file in files])
    return found


def assert_same(mine: Tables, others: Tables) -> None:
    """The same rows in the same order, in every table."""
    assert mine.keys() == others.keys()
    for name, table in mine.items():
        assert table.equals(others[name]), name


def copy_samples(from_path: Path, to_path: Path, cluster: str) -> None:
    """Give a warehouse the samples of the log that another one has."""
    source, target = Warehouse.open(from_path), Warehouse.open(to_path)
    for file in source.log_offset_files(cluster):
        target.add_log_offsets(cluster, read_table(source.path / file))


def copy_shuffled(from_path: Path, to_path: Path, cluster: str, cuts: int, seed: int) -> None:
    """The same records in other files: each partition cut elsewhere, the pieces in any order, some of them twice."""
    chance = random.Random(seed)
    source, target = Warehouse.open(from_path), Warehouse.create(to_path)
    pieces: list[tuple[int, pa.Table]] = []
    for partition in source.partitions(cluster):
        whole = pa.concat_tables([read_table(source.path / file.path) for file in source.bronze_files(cluster, partition)])
        bounds = sorted({0, whole.num_rows, *(chance.randint(0, whole.num_rows) for _ in range(cuts))})
        for begin, end in pairwise(bounds):
            piece = whole.slice(begin, end - begin)
            pieces += [(partition, piece)] * chance.choice([1, 1, 2])
    chance.shuffle(pieces)
    for number, (partition, piece) in enumerate(pieces):
        order = pa.array(chance.sample(range(piece.num_rows), piece.num_rows), pa.int64())
        target.add_records(cluster, partition, piece.take(order), f"piece {number}")
    copy_samples(from_path, to_path, cluster)
