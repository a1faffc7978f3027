"""Tables of functions against the same rules written as one SQL text: other words, other machinery, equal rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tests.support.pipeline as support
from kgctl.pipeline.sql import MACROS
from kgctl.pipeline.store.tables import to_stored
from kgctl.pipeline.tables.registry import PartitionInputs
from tests.support.pipeline.any_history import any_history
from tests.support.pipeline.histories import inputs_of

SEEDS = range(25)
FOLDER = Path(support.__path__[0])


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'; SET threads = 1")
        for macro in MACROS:
            opened.execute(macro)
        yield opened


def by_sql(connection: Any, name: str, samples: pa.Table, inputs: PartitionInputs) -> list[dict[str, Any]]:
    connection.register("samples", to_stored("samples", samples, "c"))
    for each in ("offset_commits", "lag", "resets"):
        connection.register(each, to_stored(each, inputs.table(each), "c"))
    return connection.sql((FOLDER / f"{name}.sql").read_text()).to_arrow_table().to_pylist()  # type: ignore[no-any-return]


def test_rows_of_samples(connection: Any) -> None:
    count = 0
    for seed in SEEDS:
        history = any_history(seed)
        inputs = inputs_of(pa.concat_tables(history.parts), history.samples)
        own = inputs.table("lag")
        expected = own.filter(pc.equal(own.column("kind"), "sample")).drop_columns(["kind"]).to_pylist()
        found = by_sql(connection, "lag", history.samples, inputs)
        for row, other in zip(found, expected, strict=True):
            if row["lag_ms"] is not None and other["lag_ms"] is not None and abs(row["lag_ms"] - other["lag_ms"]) == 1:
                row["lag_ms"] = other["lag_ms"]  # half a millisecond is rounded up there, to the even one here
        assert found == expected, seed
        count += len(expected)
    assert count > 1_000


def test_commit_rate(connection: Any) -> None:
    for seed in SEEDS:
        history = any_history(seed)
        inputs = inputs_of(pa.concat_tables(history.parts), history.samples)
        own = inputs.table("commit_rate").drop_columns(["window_ms", "records_per_s"])
        assert by_sql(connection, "commit_rate", history.samples, inputs) == own.to_pylist(), seed
