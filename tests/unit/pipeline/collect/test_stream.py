"""What is done with a stream's micro-batches, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.pipeline.collect.collection import Collection
from kgctl.pipeline.collect.stream import BatchWriter
from kgctl.pipeline.sources.live import CollectOrigin, LogState
from kgctl.pipeline.store.warehouse import Known, Warehouse, commit_records

GONE = "offsets 3 to 3 of partition 0 were deleted before they were collected"


@pytest.mark.parametrize("is_watched", [False, True])
def test_what_the_collection_has_is_logged_where_nobody_looks_at_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_watched: bool
) -> None:
    warehouse = Warehouse.create(tmp_path)
    commit_records(warehouse, Known.of(warehouse, "c1"), [], positions={0: 3})
    batches = BatchWriter(warehouse, Collection("c1"), CollectOrigin(properties={}))
    if is_watched:
        batches.watch()
    assert batches.begin(LogState("id", None, {0: (4, 9)})) == {0: 4}
    assert batches.collection.notices == [GONE]
    assert caplog.messages == ([] if is_watched else [GONE])
