"""What of a partition the records alone decide: decoded and computed, or as it was built before from the same records.

Every live collection brings samples of log ends, which lag, stalls, resets and health follow from, and most partitions of
``__consumer_offsets`` no records. Those are neither decoded nor resolved nor played back again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from kgctl.errors import StorageError
from kgctl.pipeline.build import silver as silver_files
from kgctl.pipeline.build.outputs import Outputs
from kgctl.pipeline.build.versions import versions_now
from kgctl.pipeline.decode.columns import each_once
from kgctl.pipeline.decode.schemas import GROUP_RECORDS
from kgctl.pipeline.decode.transactions import resolve
from kgctl.pipeline.tables.registry import RECORD_TABLES, PartitionInputs, module
from kgctl.pipeline.warehouse.files import read_table
from kgctl.pipeline.warehouse.manifests import BronzeFile, Built

LogOffsets = Callable[[pa.Table], pa.Table]
"""The samples of the topics that these offset commits are of."""


@dataclass(frozen=True)
class FromRecords:
    """``inputs`` of all tables; ``gold``: files of `RECORD_TABLES` that hold them already; ``silver``: files, by ``silver/NAME``.

    ``entries`` is what the manifest keeps of silver, ``decoded``: how many raw records were decoded for this.
    """

    inputs: PartitionInputs
    counts: Counter[str]
    silver: Mapping[str, Sequence[Path]]
    entries: Mapping[str, Any]
    gold: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    decoded: int = 0


def from_records(
    outputs: Outputs, bronze: Sequence[BronzeFile], before: Built, log_offsets: LogOffsets, window_ms: int
) -> FromRecords:
    """Of these bronze files; ``before`` is what was built last, nothing where all is to be made anew. Raises `StorageError`."""
    is_same = before.inputs == tuple(sorted(file.path for file in bronze)) and before.summary.get("versions") == versions_now()
    if is_same:
        with suppress(StorageError):  # what is damaged is made anew
            return _kept(outputs, before, log_offsets, window_ms)
    return _made(outputs, bronze, before, log_offsets, window_ms)


def _made(outputs: Outputs, bronze: Sequence[BronzeFile], before: Built, log_offsets: LogOffsets, window_ms: int) -> FromRecords:
    silver = silver_files.refresh(outputs, bronze, before)
    resolved = resolve(silver.table("commits"), silver.table("markers"))
    counts = silver.counts()
    counts.update({f"commits_{name}": number for name, number in resolved.counts().items()})
    inputs = PartitionInputs(
        offset_commits=resolved.offset_commits,
        group_records=each_once(silver.table("group_records"), "log_offset"),
        log_offsets=log_offsets(resolved.offset_commits),
        coverage=silver.coverage(),
        window_ms=window_ms,
    )
    return FromRecords(inputs, counts, silver_files.paths(silver, outputs), silver.entries, decoded=silver.decoded_rows)


def _kept(outputs: Outputs, before: Built, log_offsets: LogOffsets, window_ms: int) -> FromRecords:
    files = {name: [outputs.warehouse.path / file for file in found] for name, found in before.tables.items()}
    gold = {name: files.get(f"gold/{name}", []) for name in RECORD_TABLES}
    tables = {name: _read(name, found) for name, found in gold.items()}
    commits = tables["offset_commits"]
    inputs = PartitionInputs(commits, GROUP_RECORDS.empty_table(), log_offsets(commits), tables["coverage"], window_ms)
    for name, table in tables.items():
        inputs.give(name, table)
    silver = {name: found for name, found in files.items() if name.startswith("silver/")}
    return FromRecords(inputs, Counter(before.summary["counts"]), silver, before.summary["silver"], gold)


def _read(name: str, files: Sequence[Path]) -> pa.Table:
    schema = module(name).SCHEMA
    tables = [read_table(file).cast(schema) for file in files]
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries().combine_chunks()
