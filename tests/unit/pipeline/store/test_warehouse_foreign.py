"""Other people's tools on a warehouse: they see the rows that count, with their columns, after builds that replaced files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kgctl.pipeline import upkeep
from kgctl.pipeline.store.tables import BUILT, TABLES
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.upkeep import compact, forget, prune
from tests.support.pipeline.warehouses import LOG, SAMPLES, add, built, collected, rows_of

pytestmark = pytest.mark.needs("frames")


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
    rows = rows_of(Warehouse.open(folder), "offset_commits")
    assert len({row["log_partition"] for row in rows}) == 4
    return len(rows), sum(row["log_partition"] for row in rows)


def test_pandas_by_deltalake(folder: Path, expected: tuple[int, int]) -> None:
    frame = DeltaTable(f"{folder}/offset_commits").to_pandas()
    assert (len(frame), int(frame["log_partition"].sum())) == expected
    assert str(frame["time"].dtype) == "datetime64[us, UTC]"


def test_polars(folder: Path, expected: tuple[int, int]) -> None:
    import polars

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


def test_columns_say_what_they_mean_to_whoever_opens_the_table(folder: Path) -> None:
    for name, table in TABLES.items():
        if Warehouse.open(folder).table(name).version >= 0:
            told = {each.name: each.metadata["comment"] for each in DeltaTable(f"{folder}/{name}").schema().fields}
            assert told == {**table.meanings, "date": f"the day of {table.time}, in UTC"}


def test_a_filter_on_any_column_finds_its_rows(folder: Path) -> None:
    """Where a commit lacks statistics of a column, deltalake's datasets leave out every row that a filter asks for."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    for name in ("records", "samples", *BUILT):
        rows = Warehouse.open(folder).table(name).rows()
        dataset = DeltaTable(f"{folder}/{name}").to_pyarrow_dataset() if rows.num_rows else None
        for field in rows.schema if dataset is not None else ():
            value = next((cell for cell in rows.column(field.name).to_pylist() if cell is not None), None)
            if value is not None and not pa.types.is_list(field.type):
                assert dataset is not None
                found = dataset.count_rows(filter=ds.field(field.name) == pa.scalar(value, field.type))
                assert found == rows.column(field.name).to_pylist().count(value), (name, field.name)


FORGETTING: Mapping[str, Callable[[Warehouse], object]] = {
    "forget a source": lambda warehouse: forget(warehouse, "c1", "second"),
    "forget another cluster": lambda warehouse: forget(warehouse, "c2"),
}
UPKEEP: Mapping[str, Callable[[Warehouse], object]] = {
    "compact": compact,
    "prune": lambda warehouse: prune(warehouse, 2_000_000_000_000, hours=0),
    **FORGETTING,
}


@pytest.mark.parametrize(
    "operation", ["compact", *(pytest.param(name, marks=pytest.mark.deep) for name in ("prune", *FORGETTING))]
)
def test_every_reader_sees_the_same_after_upkeep(tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And after the build that follows, which makes anew what was thinned."""
    monkeypatch.setattr(upkeep, "MANY_FILES", 2)
    warehouse = collected(tmp_path / "w", [part.slice(0, 50) for part in LOG], SAMPLES)
    add(warehouse, "c2", LOG[0])
    built(warehouse)
    for part in LOG:
        add(warehouse, "c1", part.slice(50), "second")
    built(warehouse)

    UPKEEP[operation](warehouse)

    for _ in range(2):
        for name in ("records", "offset_commits", "generations"):
            own = Warehouse.open(tmp_path / "w").table(name).rows()
            mine = (own.num_rows, sum(own.column("log_offset").to_pylist()))
            assert readings(f"{tmp_path}/w/{name}") == [mine] * 4, (operation, name)
        built(warehouse)


def readings(path: str) -> list[tuple[int, int]]:
    """Rows and the sum of their log offsets, as deltalake with pandas, polars, and DuckDB (dataset, list of files) read them."""
    import duckdb
    import polars

    table = DeltaTable(path)
    pandas, frame = table.to_pandas(), polars.read_delta(path)
    with duckdb.connect() as connection:
        connection.register("rows", table.to_pyarrow_dataset())
        query = "SELECT count(*), coalesce(sum(log_offset), 0)::BIGINT FROM"
        found = connection.execute(f"{query} rows").fetchall()
        files = table.file_uris()
        found += connection.execute(f"{query} read_parquet({files!r})").fetchall() if files else [(0, 0)]
    return [(len(pandas), int(pandas["log_offset"].sum())), (frame.height, int(frame["log_offset"].sum())), *found]
