"""Other people's tools on a warehouse: they see the rows that count, with their columns, after builds that replaced files."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.pipeline.warehouses import LOG, SAMPLES, add, built, collected, rows_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collected and built in two goes."""
    folder = tmp_path_factory.mktemp("foreign") / "w"
    warehouse = collected(folder, [part.slice(0, 50) for part in LOG], SAMPLES.slice(0, 40))
    built(warehouse)
    for part in LOG:
        add(warehouse, "c1", part.slice(50))
    warehouse.add_samples("c1", SAMPLES.slice(40))
    built(warehouse)
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> tuple[int, int]:
    """How many commits there are, and the sum of the partitions of the log that they are in."""
    from kgctl.pipeline.store.warehouse import Warehouse

    rows = rows_of(Warehouse.open(folder), "offset_commits")
    assert len({row["log_partition"] for row in rows}) == 4
    return len(rows), sum(row["log_partition"] for row in rows)


def test_pandas_by_deltalake(folder: Path, expected: tuple[int, int]) -> None:
    frame = DeltaTable(f"{folder}/offset_commits").to_pandas()
    assert (len(frame), int(frame["log_partition"].sum())) == expected
    assert str(frame["time"].dtype) == "datetime64[us, UTC]"


def test_polars(folder: Path, expected: tuple[int, int]) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.read_delta(f"{folder}/offset_commits")
    assert (frame.height, frame["log_partition"].sum()) == expected


def test_duckdb(folder: Path, expected: tuple[int, int]) -> None:
    import duckdb

    commits = DeltaTable(f"{folder}/offset_commits").to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.register("commits", commits)
    found = connection.execute("SELECT count(*), sum(log_partition) FROM commits").fetchall()
    files = DeltaTable(f"{folder}/offset_commits").file_uris()
    by_files = connection.execute(f"SELECT count(*), sum(log_partition) FROM read_parquet({files!r})").fetchall()
    assert (found, by_files) == ([expected], [expected])
