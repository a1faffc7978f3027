"""The tables of a cluster as a whole, which the partitions' tables build on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kgctl.pipeline.build.outputs import Outputs
from kgctl.pipeline.build.partition import PartitionResult, TableResult
from kgctl.pipeline.build.versions import fingerprint, versions_now
from kgctl.pipeline.tables.registry import CLUSTER_TABLES, ClusterInputs, module
from kgctl.pipeline.warehouse.files import read_table
from kgctl.pipeline.warehouse.schemas import LOG_OFFSETS

if TYPE_CHECKING:
    from kgctl.pipeline.warehouse.warehouse import Warehouse


def build_cluster(warehouse: Warehouse, cluster: str, *, is_rebuild: bool) -> PartitionResult | None:
    """Build them, if something is new; None if not. Raises `StorageError`."""
    files = warehouse.log_offset_files(cluster)
    before = warehouse.built(cluster, None)
    now = fingerprint(files, {})
    if before.summary.get("fingerprint") == now and not is_rebuild:
        return None
    samples = pa.concat_tables([LOG_OFFSETS.empty_table(), *(read_table(warehouse.path / file) for file in files)])
    inputs = ClusterInputs(samples)
    outputs = Outputs(warehouse, cluster, None)
    gold: dict[str, list[Path]] = {}
    rows: dict[str, int] = {}
    for name in CLUSTER_TABLES:
        table = module(name).build(inputs)
        gold[f"gold/{name}"] = outputs.write("gold", name, table)
        rows[name] = table.num_rows
    summary = {"fingerprint": now, "versions": versions_now(), "rows": rows}
    outputs.settle()
    built = warehouse.publish(cluster, None, gold, files, summary)
    tables = {name: TableResult(rows[name], built.files("gold", name) != before.files("gold", name)) for name in rows}
    return PartitionResult(cluster, None, tables)
