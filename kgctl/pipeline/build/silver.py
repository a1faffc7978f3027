"""Decoded rows of one partition: each bronze file is decoded once, what was decoded before is read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kgctl.pipeline.build.outputs import Outputs
from kgctl.pipeline.decode.coverage import merge_runs
from kgctl.pipeline.decode.decode import READ_DICTIONARY, decode
from kgctl.pipeline.decode.schemas import COMMITS, COVERAGE, GROUP_RECORDS, MARKERS, UNDECODED
from kgctl.pipeline.warehouse.files import read_table

if TYPE_CHECKING:
    from kgctl.pipeline.decode.result import Decoded
    from kgctl.pipeline.warehouse.manifests import BronzeFile, Built

VERSION = 1
"""Raised when decoding gives other rows: older silver files are then decoded anew."""

SCHEMAS: Mapping[str, pa.Schema] = {
    "commits": COMMITS,
    "group_records": GROUP_RECORDS,
    "markers": MARKERS,
    "undecoded": UNDECODED,
    "coverage": COVERAGE,
}


@dataclass
class Silver:
    """All decoded rows of a partition, the files they are in, and what the files' manifest entries say, by bronze file."""

    tables: dict[str, list[pa.Table]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    files: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    decoded_rows: int = 0

    def table(self, name: str) -> pa.Table:
        """One table, in the order of the log's offsets by file."""
        return pa.concat_tables([SCHEMAS[name].empty_table(), *self.tables[name]]).unify_dictionaries()

    def coverage(self) -> pa.Table:
        """What was collected, as the fewest runs."""
        return merge_runs(self.tables["coverage"])

    def counts(self) -> Counter[str]:
        """Counts over all files."""
        total: Counter[str] = Counter()
        for entry in self.entries.values():
            total.update(entry["counts"])
        return total


def refresh(outputs: Outputs, bronze: Iterable[BronzeFile], before: Built) -> Silver:
    """The silver of these bronze files; those that ``before`` knows are read, the others decoded and written."""
    known: Mapping[str, Any] = before.summary.get("silver", {}) if before.summary.get("silver_version") == VERSION else {}
    silver = Silver()
    for file in sorted(bronze, key=lambda file: (file.first_offset, file.path)):
        entry = known.get(file.path)
        if entry is None:
            entry = _decode(outputs, file, silver)
        else:
            _read(outputs, entry["files"], silver)
        for name, path in entry["files"].items():
            silver.files[name].append(path)
        silver.entries[file.path] = entry
    return silver


def _decode(outputs: Outputs, file: BronzeFile, silver: Silver) -> dict[str, Any]:
    raw = read_table(outputs.warehouse.path / file.path, read_dictionary=list(READ_DICTIONARY))
    decoded = decode(raw)
    files: dict[str, str] = {}
    for name in SCHEMAS:
        table = getattr(decoded, name)
        silver.tables[name].append(table)
        for path in outputs.write("silver", name, table):
            files[name] = outputs.warehouse.relative(path)
    silver.decoded_rows += raw.num_rows
    return {"files": files, "counts": _counts(decoded, raw)}


def _read(outputs: Outputs, files: Mapping[str, str], silver: Silver) -> None:
    for name, path in files.items():
        silver.tables[name].append(read_table(outputs.warehouse.path / path).cast(SCHEMAS[name]))


def _counts(decoded: Decoded, raw: pa.Table) -> dict[str, int]:
    """What is there, zeros left out. ``clock_went_back``: records that are older than the one before them in the log."""
    counts = {**decoded.counts(), "records": raw.num_rows, "clock_went_back": _steps_back(raw.column("timestamp_ms").to_numpy())}
    return {name: number for name, number in counts.items() if number}


def _steps_back(times_ms: Any) -> int:
    return int(np.count_nonzero(np.diff(times_ms) < 0))


def paths(silver: Silver, outputs: Outputs) -> dict[str, Sequence[Any]]:
    """The silver files as `Warehouse.publish` wants them."""
    return {f"silver/{name}": [outputs.warehouse.path / file for file in files] for name, files in silver.files.items() if files}
