"""A project of dbt on a warehouse: its tables as sources, with their columns and meanings, and the views of ``kgctl history sql``
as models. All of it follows from the tables that kgctl writes, so none of their names is said here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kgctl.pipeline.sql import VIEWS, described
from kgctl.pipeline.store.files import StoreLocation
from kgctl.pipeline.store.tables import OF_GROUPS, TABLES
from kgctl.pipeline.store.warehouse import Warehouse

PROJECT = "kgctl_history"
_SOURCE = "kgctl"
_WAREHOUSE = "KGCTL_WAREHOUSE"


def make_tables(place: StoreLocation) -> None:
    """Make the tables that are not there yet, without a row: what reads a source meets no hole. Raises as `Warehouse.open`."""
    warehouse = Warehouse.open(place)
    for name in OF_GROUPS:
        if warehouse.table(name).version < 0:
            warehouse.table(name).commit([])


def files(warehouse: str) -> dict[str, str]:
    """The text of each file, by its path in the project. ``warehouse``: where the tables are, unless KGCTL_WAREHOUSE says."""
    documents: dict[str, Any] = {
        "dbt_project.yml": _project(),
        "profiles.yml": _profiles(),
        "models/sources.yml": _sources(warehouse),
        "models/models.yml": _models(),
    }
    return {name: _yaml(found) for name, found in documents.items()} | {
        f"models/{name}.sql": _model(text) for name, (_, text) in VIEWS.items()
    }


def _project() -> dict[str, Any]:
    return {
        "name": PROJECT,
        "version": "1.0.0",
        "profile": PROJECT,
        "model-paths": ["models"],
        "models": {PROJECT: {"+materialized": "table"}},
    }


def _profiles() -> dict[str, Any]:
    """DuckDB, in a file beside the project; it reads the tables by deltalake, which needs no extension."""
    output = {"type": "duckdb", "path": f"{PROJECT}.duckdb", "settings": {"TimeZone": "UTC"}, "plugins": [{"module": "delta"}]}
    return {PROJECT: {"target": "history", "outputs": {"history": output}}}


def _sources(warehouse: str) -> dict[str, Any]:
    place = f'{{{{ env_var("{_WAREHOUSE}", {json.dumps(warehouse)}) }}}}'
    tables = [
        {
            "name": name,
            "description": table.about,
            "config": {"meta": {"plugin": "delta", "delta_table_path": f"{place}/{name}"}},
            "columns": [{"name": column, "description": meaning} for column, meaning in table.meanings.items()],
        }
        for name, table in ((name, TABLES[name]) for name in OF_GROUPS)
    ]
    return {"version": 2, "sources": [{"name": _SOURCE, "schema": "main", "tables": tables}]}


def _models() -> dict[str, Any]:
    columns: dict[str, list[Mapping[str, Any]]] = {name: [] for name in VIEWS}
    for row in described():
        if row["table"] in VIEWS and row["column"]:
            tested = {"data_tests": ["not_null"]} if row["column"] in ("cluster", "group", "from") else {}
            columns[row["table"]].append({"name": row["column"], "description": row["meaning"], "quote": True, **tested})
    return {
        "version": 2,
        "models": [{"name": name, "description": about, "columns": columns[name]} for name, (about, _) in VIEWS.items()],
    }


def _model(text: str) -> str:
    """The view's own words, with its tables as sources."""
    named = re.sub(r"\bFROM (\w+)", lambda match: f"FROM {{{{ source('{_SOURCE}', '{match[1]}') }}}}", text)
    return "\n".join(line.strip() for line in named.splitlines()) + "\n"


def _yaml(document: Any) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
