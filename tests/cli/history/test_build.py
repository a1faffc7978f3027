"""``kgctl history build``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.pipeline.store.warehouse import Warehouse
from tests.cli.harness import Cli
from tests.support.pipeline.collected import collected_history
from tests.support.pipeline.warehouses import LOG, add, built_whole, collected, data_files, tables_of

LOCAL = "--engine local --jobs 1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    collected_history(tmp_path / "w")
    return tmp_path / "w"


def test_the_first_build_and_the_second(cli: Cli, folder: Path) -> None:
    first = cli(f"history build --warehouse {folder} {LOCAL} -o json")
    second = cli(f"history build --warehouse {folder} {LOCAL} -o json")

    assert (first.code, first.err) == (0, "")
    commits = {"cluster": "c1", "table": "offset_commits", "rows": 12, "written": 12, "changed": True}
    assert first.data[0] == commits
    assert second.data[0] == commits | {"written": 0, "changed": False}
    assert (second.code, second.err) == (0, "Nothing is new: all tables are as they were.\n")
    again = cli(f"history build --warehouse {folder} {LOCAL} --rebuild -o json")
    assert again.data[0] == commits


def test_what_was_not_understood_and_what_is_missing_is_said(cli: Cli, tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    rows = LOG[1].to_pylist()
    for row in rows:
        row["key"] = b"\x00\x63of the future" if row["offset"] == 3 else row["key"]
        row["value"] = b"\x00\x01" if row["offset"] == 4 else row["value"]
        row["timestamp_ms"] -= 1000 if row["offset"] == 20 else 0
    add(warehouse, "c1", type(LOG[1]).from_pylist(rows, schema=LOG[1].schema))

    ran = cli(f"history build --warehouse {tmp_path / 'w'} {LOCAL}")

    assert ran.code == 0
    assert ran.err.splitlines() == [
        "cluster 'c1': records kept aside, in the table undecoded: "
        "1 of a type that this kgctl does not know, 1 with a damaged value.",
        "cluster 'c1': 1 records are older than the one before them: the broker's clock went back.",
        "cluster 'c1': 4 partitions have commits, and no log end was ever sampled: their lag is unknown.",
    ]


def test_a_cluster_that_fails_is_partial(cli: Cli, tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")
    broken = data_files(warehouse, "records")[0]
    add(warehouse, "c2", LOG[0])
    broken.write_bytes(b"PAR1")

    ran = cli(f"history build --warehouse {tmp_path / 'w'} {LOCAL} -o json")

    assert (ran.code, ran.json["status"]) == (3, "partial")
    (error,) = ran.json["errors"]
    assert error["code"] == "STORAGE_ERROR"
    assert error["message"].startswith(f"cluster 'c1' was not built: {broken}: cannot be read: ")


def test_what_was_built_and_is_damaged_is_made_anew(cli: Cli, tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    expected = tables_of(warehouse)
    for path in data_files(warehouse, "offset_commits"):
        path.write_bytes(b"PAR1")

    refused = cli(f"history offsets --warehouse {tmp_path / 'w'}")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert refused.err.endswith("; kgctl history build --rebuild makes it anew\n")

    assert cli(f"history build --warehouse {tmp_path / 'w'} {LOCAL} --rebuild").code == 0
    assert tables_of(warehouse) == expected


def test_nothing_but_failures_is_an_error(cli: Cli, tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w", LOG[:1])
    data_files(warehouse, "records")[0].unlink()

    ran = cli(f"history build --warehouse {tmp_path / 'w'} {LOCAL} -o json")

    assert (ran.code, ran.json["status"]) == (1, "error")


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("--engine flink", 2, "'flink' is not one of 'auto', 'local', 'spark'"),
        ("--engine local --master local[2]", 2, "--master is Spark's: add --engine spark"),
        ("--master local[2] --jobs 2", 2, "give one of them"),
        ("--cluster=", 2, "--cluster is empty"),
        ("--warehouse nosuch", 4, "no warehouse at"),
        ("--cluster nosuch --engine local", 4, "no cluster 'nosuch' (there: "),
    ],
)
def test_mistakes(cli: Cli, line: str, code: int, says: str) -> None:
    ran = cli(f"history build {line}")
    assert (ran.code, says in ran.err) == (code, True), ran.err
