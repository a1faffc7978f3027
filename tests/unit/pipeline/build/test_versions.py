"""Tables of another kgctl: of an older one they are built anew, of a newer one they are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgctl.errors import RefusedError
from kgctl.pipeline.build.run import build
from kgctl.pipeline.build.versions import versions_now
from kgctl.pipeline.spread import LocalEngine
from kgctl.pipeline.warehouse.warehouse import Warehouse
from tests.unit.pipeline.build.test_run import built_whole, gold_of


def with_version(warehouse: Warehouse, table: str, version: int) -> None:
    """As if another kgctl had built this table of partition 1."""
    manifest = warehouse.path / "state" / "built" / "cluster=c1" / "partition=1.json"
    content = json.loads(manifest.read_text())
    content["summary"]["versions"][table] = version
    content["summary"]["fingerprint"] = "another"
    manifest.write_text(json.dumps(content))


def test_older_tables_are_built_anew(tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    before = gold_of(warehouse)
    with_version(warehouse, "members", 0)

    result = build(warehouse, ["c1"], LocalEngine)

    assert (result.built, result.rebuilt) == (1, {"c1": ["members"]})
    assert gold_of(warehouse) == before


def test_newer_tables_are_refused_unless_they_shall_be_replaced(tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    before = gold_of(warehouse)
    with_version(warehouse, "members", versions_now()["members"] + 1)

    with pytest.raises(RefusedError, match=r"a newer kgctl built members of cluster 'c1'. Use that one, or --rebuild"):
        build(warehouse, ["c1"], LocalEngine)

    assert build(warehouse, ["c1"], LocalEngine, is_rebuild=True).failed == []
    assert gold_of(warehouse) == before
