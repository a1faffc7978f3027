"""Where things are in a warehouse. Names are quoted as Hive does, so that any name of a cluster is one folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

MARKER = "warehouse.json"
VERSION = 1
VERSION_KEY = "kgctl_warehouse_version"

RECORDS = "records"
LOG_OFFSETS = "log_offsets"
DAMAGED = "damaged"

Layer = Literal["bronze", "silver", "gold"]
Manifests = Literal["collected", "built"]


def cluster_folder(cluster: str) -> str:
    """``cluster=NAME``, quoted."""
    return f"cluster={quote(cluster, safe='')}"


def table_folder(layer: Layer, table: str, cluster: str, partition: int | None = None) -> Path:
    """Where the files of a table are, relative to the warehouse; ``partition`` is None for tables of a whole cluster."""
    folder = Path(layer) / table / cluster_folder(cluster)
    return folder if partition is None else folder / f"partition={partition}"


def manifest_file(kind: Manifests, cluster: str, partition: int | None) -> Path:
    """Where a manifest is, relative to the warehouse; ``partition`` is None for that of the cluster as a whole."""
    name = "cluster" if partition is None else f"partition={partition}"
    return Path("state") / kind / cluster_folder(cluster) / f"{name}.json"


def topics_file(cluster: str) -> Path:
    """Where the names of the topics are that groups have commits on, relative to the warehouse."""
    return manifest_file("collected", cluster, None).with_name("topics.json")


def clusters_in(folder: Path) -> list[str]:
    """The names behind the ``cluster=`` folders in ``folder``, sorted."""
    return sorted(unquote(name) for name in _values(folder, "cluster", suffix=""))


def partitions_in(folder: Path) -> list[int]:
    """The numbers behind the ``partition=N.json`` files in ``folder``, sorted."""
    return sorted(int(name) for name in _values(folder, "partition", suffix=".json") if name.isdigit())


def _values(folder: Path, key: str, *, suffix: str) -> Iterator[str]:
    prefix = f"{key}="
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name.startswith(prefix) and path.name.endswith(suffix):
            yield path.name[len(prefix) : len(path.name) - len(suffix)]
