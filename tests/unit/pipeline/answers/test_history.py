"""Finding the rows of groups in a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kgctl.errors import NotFoundError, StorageError, UsageError
from kgctl.model.values import partition_for
from kgctl.pipeline.answers.history import Behind, History, Reach
from kgctl.pipeline.answers.rows import read_rows
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import DataFile
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.pipeline.example import example_history
from tests.support.pipeline.gold import HOME, START_MS, collect, commit, run, write_gold
from tests.support.pipeline.warehouses import data_files

COLUMNS = ("group", "committed_offset")


def offsets(history: History, groups: list[str] | None = None) -> list[tuple[str, int]]:
    return sorted((row["group"], row["committed_offset"]) for row in history.rows("offset_commits", COLUMNS, groups).to_pylist())


def test_only_files_that_can_have_a_group_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for group in ("audit", "payments", "shipping"):
        write_gold(tmp_path, {"offset_commits": [commit(group, "t", 0, 1, 1, 1)]})
    opened: list[str] = []

    def reading(table: Table, file: DataFile, *rest: Any) -> pa.Table:
        opened.append(file.low["group"])
        return read_rows(table, file, *rest)

    monkeypatch.setattr("kgctl.pipeline.answers.rows.read_rows", reading)

    assert offsets(History.open(tmp_path), ["payments"]) == [("payments", 1)]
    assert opened == ["payments"]


def test_group_is_found_wherever_it_is(tmp_path: Path) -> None:
    """As in a cluster whose offsets topic has not 50 partitions."""
    elsewhere = (partition_for("payments", 50) + 7) % 50
    write_gold(tmp_path, {"offset_commits": [commit("payments", "t", 0, 1, 1, 1)]}, partition=elsewhere)
    history = History.open(tmp_path)

    assert (offsets(history, ["payments", "nosuch"]), history.partitions(["payments"])) == ([("payments", 1)], [elsewhere])
    assert (history.unknown(["payments", "nosuch"]), history.partitions(["nosuch"])) == (["nosuch"], [])


def test_row_groups_are_chosen_by_their_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [commit(f"g{number:03}", "t", 0, number, 1, number) for number in range(100)]
    monkeypatch.setattr("kgctl.pipeline.store.lookback.ROW_GROUP_ROWS", 10)
    write_gold(tmp_path, {"offset_commits": rows})
    history = History.open(tmp_path)

    assert offsets(history, ["g009", "g010", "g099", "nosuch"]) == [("g009", 9), ("g010", 10), ("g099", 99)]
    assert len(offsets(history)) == 100


def test_build_that_replaces_the_files_meanwhile_does_no_harm(tmp_path: Path) -> None:
    warehouse = write_gold(tmp_path, {"offset_commits": [commit("payments", "t", 0, 1, 1, 1)]})
    history = History.open(tmp_path)
    table = warehouse.table("offset_commits")
    before = table.files()
    write_gold(tmp_path, {"offset_commits": [commit("payments", "t", 0, 2, 1, 1)]})
    table.commit([], before)

    assert offsets(history, ["payments"]) == [("payments", 1)]

    write_gold(tmp_path, {})
    assert offsets(History.open(tmp_path), ["payments"]) == [("payments", 2)]
    (left,) = data_files(warehouse, "offset_commits")
    left.unlink()
    with pytest.raises(StorageError, match=r"cannot be read.*; kgctl history build --rebuild makes it anew$"):
        offsets(History.open(tmp_path), ["payments"])


@pytest.mark.parametrize(
    ("version", "who"), [(0, "an older kgctl: kgctl history build builds them anew"), (99, "a newer kgctl: use")]
)
def test_tables_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, who: str) -> None:
    monkeypatch.setattr("tests.support.pipeline.gold.TABLES_VERSION", version)
    write_gold(tmp_path, {"offset_commits": [commit("payments", "t", 0, 1, 1, 1)]})

    with pytest.raises(StorageError, match=f"the tables of cluster 'c1' were built by {who}"):
        History.open(tmp_path)


def test_reach_and_records_that_were_not_built_yet(tmp_path: Path) -> None:
    warehouse = write_gold(tmp_path, {"coverage": [run(0, 3, 100, 200), run(7, 9, 400, 600)]})
    history = History.open(tmp_path)
    assert (history.reach(), history.reach(["nosuch"]), history.behind()) == (Reach(100, 600), None, Behind())

    collect(warehouse, [10, 11])
    collect(warehouse, [0], partition=HOME + 1)
    assert History.open(tmp_path).behind() == Behind(records=3)

    collect(warehouse, [8, 12])
    assert History.open(tmp_path).behind() == Behind(records=5, late=1)


def test_clusters_are_kept_apart(tmp_path: Path) -> None:
    for cluster, offset in (("a", 1), ("b/c", 2)):
        write_gold(tmp_path, {"offset_commits": [commit("payments", "t", 0, offset, START_MS, 1)]}, cluster=cluster)

    assert [offsets(History.open(tmp_path, cluster)) for cluster in ("a", "b/c")] == [[("payments", 1)], [("payments", 2)]]
    with pytest.raises(UsageError, match=r"several clusters: choose one with --cluster \(a, b/c\)"):
        History.open(tmp_path)


def test_groups_of_a_history(tmp_path: Path) -> None:
    example_history(tmp_path / "w")

    assert History.open(tmp_path / "w").groups() == ["audit", "payments"]


def test_what_is_no_history_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nothing was collected yet"):
        History.open(Warehouse.create(tmp_path / "w").location)
