"""What other tools are handed: ``kgctl history dbt``, ``kgctl history grafana``."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Annotated

from kgctl.cli.history import asking
from kgctl.cli.parameters import argument
from kgctl.cli.report import Column, Report, Row, shows
from kgctl.cli.session import Session
from kgctl.errors import NotFoundError, RefusedError, StorageError
from kgctl.files import check_place, write_whole

COLUMNS = (Column("file", "a file that was written"),)


@shows(COLUMNS, examples="kgctl history dbt ./history-dbt --warehouse /srv/history")
def history_dbt(
    session: Session,
    folder: Annotated[Path, argument("DIR", "Where the project is to be: a new folder, or one of before.")],
    *,
    warehouse: asking.Warehouse = None,
) -> Report:
    """Write a project of dbt on the history: its tables as sources with all columns, the views as models with tests.

    It runs on DuckDB as it is (pip install dbt-duckdb deltalake): dbt build --project-dir DIR --profiles-dir DIR. Tables of which
    nothing was ever written are made, empty, so that each source can be read. Written again it is as this kgctl has the tables;
    files that were added to it stay.
    """
    place = asking.warehouse_path(warehouse, session.environment)
    from kgctl.pipeline.dbt import PROJECT, files, make_tables

    project = folder / "dbt_project.yml"
    try:
        is_foreign = folder.exists() and any(folder.iterdir())
        if is_foreign and not (project.exists() and project.read_text().startswith(f"name: {PROJECT}\n")):
            raise RefusedError(f"{folder}: there is something else: give a new folder")
        (folder / "models").mkdir(parents=True, exist_ok=True)
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{folder}: {error}") from error
    told = []
    try:
        make_tables(place)
    except NotFoundError as error:
        told.append(f"{error.message}; then run this again: a source of which nothing was ever written is made by it.")
    rows: list[Row] = []
    for name, text in files(place.uri).items():
        write_whole(folder / name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
        rows.append({"file": str(folder / name)})
    return Report(COLUMNS, rows, notices=told, name_keys=("file",), something_done=True)


@shows(COLUMNS, examples="kgctl history grafana groups.json")
def history_grafana(
    file: Annotated[Path, argument("FILE", "Where to write it: JSON, for Grafana to import or to provide.")],
) -> Report:
    """Write a board of Grafana for the metrics of history watch: alerts, lag in records and in time, status, members.

    It asks which Prometheus to show, and chooses among the clusters and groups that it has.
    """
    import yaml

    check_place(file)
    board = yaml.safe_load(resources.files("kgctl.pipeline").joinpath("board.yaml").read_text(encoding="utf-8"))
    text = json.dumps(board, indent=2, ensure_ascii=False) + "\n"
    write_whole(file, lambda sink: sink.write(text.encode()))
    return Report(COLUMNS, [{"file": str(file)}], name_keys=("file",), something_done=True)
