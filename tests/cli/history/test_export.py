"""What other tools are handed: a project of dbt whose models give what kgctl's views give, a board of Grafana that asks for
metrics that there are."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kgctl.pipeline.sql import VIEWS, query
from kgctl.pipeline.store.delta import dataset
from kgctl.pipeline.store.tables import TABLES
from kgctl.pipeline.store.warehouse import Warehouse
from tests.cli.harness import Cli
from tests.cli.history.test_watch import EVERY_RULE, WATCH, everything_at_once, unchanged
from tests.support.pipeline.example import example_history, minute
from tests.support.pipeline.warehouses import LOG, add, built, built_whole, collected, tables_of, tables_of_whole

UNSEEN = {
    "kgctl_partition_measured_timestamp_seconds",
    "kgctl_watch_last_build_timestamp_seconds",
    "kgctl_watch_look_seconds",
}
"""Metrics that the board does not show."""


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return built_whole(tmp_path / "w")


def project(cli: Cli, folder: Path, place: str) -> dict[str, Any]:
    ran = cli.run(["history", "dbt", str(folder), "--warehouse", place, "-o", "json"])
    assert ran.code == 0, ran.err
    assert {row["file"] for row in ran.data} == {str(path) for path in folder.rglob("*") if path.is_file()}
    return {path.stem: yaml.safe_load(path.read_text()) for path in folder.rglob("*.yml")}


def test_models_give_what_the_views_give(cli: Cli, tmp_path: Path, warehouse: Warehouse) -> None:
    project(cli, tmp_path / "dbt", str(tmp_path / "w"))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in TABLES:
            connection.register(f"kgctl.{name}", dataset(warehouse.table(name)) or TABLES[name].schema.empty_table())
        for name in VIEWS:
            text = (tmp_path / "dbt" / "models" / f"{name}.sql").read_text()
            asked, count = re.subn(r"\{\{ source\('(\w+)', '(\w+)'\) \}\}", r'"\1.\2"', text)
            assert count >= 1
            here = query(warehouse, f"SELECT * FROM {name}", warehouse.versions())
            there = connection.sql(asked).to_arrow_table()
            assert there.column_names == here.column_names
            assert sorted(map(repr, there.to_pylist())) == sorted(map(repr, here.to_pylist()))


def test_the_project_has_every_table_and_column_with_its_meaning(cli: Cli, tmp_path: Path) -> None:
    found = project(cli, tmp_path / "dbt", "/srv/it's mine")
    assert found["dbt_project"]["profile"] in found["profiles"]
    (source,) = found["sources"]["sources"]
    told = {table["name"]: {each["name"]: each["description"] for each in table["columns"]} for table in source["tables"]}
    assert told == {name: dict(table.meanings) for name, table in TABLES.items() if name not in ("state", "builds")}
    place = '{{ env_var("KGCTL_WAREHOUSE", "/srv/it\'s mine") }}/lag'
    assert [each["config"]["meta"]["delta_table_path"] for each in source["tables"] if each["name"] == "lag"] == [place]
    assert {model["name"] for model in found["models"]["models"]} == set(VIEWS)


def test_every_source_can_be_read_and_building_goes_on(cli: Cli, tmp_path: Path) -> None:
    parts = tuple(LOG)
    warehouse = collected(tmp_path / "w", parts[:1])
    assert warehouse.table("damaged").version == -1
    project(cli, tmp_path / "dbt", str(tmp_path / "w"))
    assert [name for name in TABLES if dataset(warehouse.table(name)) is None] == ["state", "builds"]
    for number, part in enumerate(parts[1:], start=1):
        add(warehouse, "c1", part, f"part {number}")
    assert built(warehouse).failed == []
    assert tables_of(warehouse) == tables_of_whole()
    project(cli, tmp_path / "dbt", str(tmp_path / "w"))
    assert tables_of(Warehouse.open(tmp_path / "w")) == tables_of_whole()


def test_a_warehouse_that_is_not_there_yet_is_said(cli: Cli, tmp_path: Path) -> None:
    ran = cli(f"history dbt {tmp_path / 'dbt'} --warehouse {tmp_path / 'none'}")
    assert ran.code == 0
    assert f"no warehouse at {tmp_path / 'none'}" in ran.err


def test_a_folder_of_something_else_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "dbt").mkdir()
    (tmp_path / "dbt" / "dbt_project.yml").write_text("name: mine\n")
    ran = cli(f"history dbt {tmp_path / 'dbt'} --warehouse /srv/history")
    assert (ran.code, ran.err) == (5, f"kgctl: {tmp_path / 'dbt'}: there is something else: give a new folder\n")
    project(cli, tmp_path / "new", "/srv/history")
    (tmp_path / "new" / "models" / "mine.sql").write_text("SELECT 1")
    assert cli(f"history dbt {tmp_path / 'new'} --warehouse /srv/history").code == 0
    assert (tmp_path / "new" / "models" / "mine.sql").read_text() == "SELECT 1"


def exported(cli: Cli) -> dict[str, set[str]]:
    """The labels of every metric that watches show, of a history in which everything happens and of one that is well measured."""
    everything_at_once(cli.folder / "all")
    example_history(cli.folder / "example")
    found: dict[str, set[str]] = {}
    for name in ("all", "example"):
        line = [*WATCH, "--once", "--warehouse", str(cli.folder / name), "--metrics-file", str(cli.folder / f"{name}.prom")]
        assert cli.run([*line, *(word for text in EVERY_RULE for word in ("--alert", text))]).code == 6
        for family in text_string_to_metric_families((cli.folder / f"{name}.prom").read_text()):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_the_board_asks_for_what_is_measured(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    cli.now_ms = minute(41)
    assert cli(f"history grafana {tmp_path / 'board.json'} -o name").out == f"{tmp_path / 'board.json'}\n"
    board = json.loads((tmp_path / "board.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [choice["query"] for choice in board["templating"]["list"] if choice["type"] == "query"]
    metrics = exported(cli)

    for text in queries:
        ((name, matched),) = re.findall(r"(kgctl_\w+)(?:\{(.*?)\})?", text)
        labels = {*re.findall(r"(\w+)=~", matched), *re.findall(r"\w+", "".join(re.findall(r"by \((.*?)\)", text)))}
        assert labels <= metrics[name], text
    assert {re.search(r"kgctl_\w+", text)[0] for text in queries} | UNSEEN == set(metrics)  # type: ignore[index]
    assert {name for text in queries for name in re.findall(r"\$(\w+)", text)} <= {"cluster", "group"}


def test_panels_lie_side_by_side(cli: Cli, tmp_path: Path) -> None:
    assert cli(f"history grafana {tmp_path / 'board.json'}").code == 0
    board = json.loads((tmp_path / "board.json").read_text())
    places = [panel["gridPos"] for panel in board["panels"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        is_beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert is_beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
