"""Whatever a log holds, whole or damaged, in any order: every table is built, with its schema, and the same for any order."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.pipeline.store.tables import RAW
from kgctl.pipeline.tables.registry import PARTITION_TABLES, table_named
from kgctl.serde.coordinator_records import encode_record
from tests.support.kafka_records import VALUES_OF
from tests.support.pipeline.histories import inputs_of
from tests.support.pipeline.raw_records import any_pairs

FEW = st.sampled_from(["g", "h"])
PAIRS = any_pairs | st.one_of(
    *(
        st.builds(lambda key, value: encode_record(CoordinatorRecord(key, value)), key, st.none() | value)
        for key, value in VALUES_OF.items()
    )
)
TIMES = st.integers(0, 200_000) | st.sampled_from([-1, 2**62])


@st.composite
def logs(draw: st.DrawFn) -> pa.Table:
    """One partition's records, of a few groups that all sorts of things happen to."""
    rows: list[dict[str, Any]] = []
    for offset, (key, value) in enumerate(draw(st.lists(PAIRS, max_size=12))):
        named = key
        if key is not None and len(key) > 4 and key[:2] != b"\x00\x00":
            group = draw(FEW).encode()  # the same few groups, so that records follow upon each other
            size = int.from_bytes(key[2:4])
            named = key[:2] + len(group).to_bytes(2) + group + key[4 + size :]
        rows.append({"partition": 0, "offset": offset, "timestamp_ms": draw(TIMES), "key": named, "value": value})
    return pa.Table.from_pylist(rows, schema=RAW)


@settings(max_examples=max(settings().max_examples // 3, 10), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(logs(), st.randoms(use_true_random=False))
def test_every_table_is_built_and_order_does_not_matter(raw: pa.Table, chance: random.Random) -> None:
    order = chance.sample(range(raw.num_rows), raw.num_rows)
    inputs, shuffled = inputs_of(raw), inputs_of(raw.take(pa.array(order, pa.int64())))
    for name in PARTITION_TABLES:
        table = inputs.table(name)
        assert table.schema.equals(table_named(name).schema), name
        table.validate(full=True)
        assert shuffled.table(name).equals(table), name


@pytest.mark.parametrize("name", PARTITION_TABLES)
def test_nothing_is_built_from_nothing(name: str) -> None:
    table = inputs_of(RAW.empty_table()).table(name)
    assert (table.num_rows, table.schema.equals(table_named(name).schema)) == (0, True)
