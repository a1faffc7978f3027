"""Transactions resolved one record at a time, by the rule of Kafka's loader (``OffsetMetadataManager.replay`` and
``replayEndTransactionMarker``): what the vectorised resolver must agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kgctl.pipeline.decode.schemas import OFFSET_COMMITS, Resolved

Row = dict[str, Any]
Key = tuple[str, str, int]


@dataclass
class _Store:
    stored: dict[Key, int] = field(default_factory=dict)
    pending: dict[int, dict[Key, Row]] = field(default_factory=dict)
    unresolved: Counter[int] = field(default_factory=Counter)
    rows: list[Row] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("duplicates", "aborted", "open", "overtaken"), 0))

    def replay(self, row: Row) -> None:
        key = (row["group"], row["topic"], row["partition"])
        if row["committed_offset"] is None:
            self.stored.pop(key, None)
            for held in self.pending.values():
                held.pop(key, None)
            self._effective(row, row["log_offset"], row["time_ms"], transactional=False)
        elif row["producer_id"] is None:
            self.stored[key] = row["log_offset"]
            self._effective(row, row["log_offset"], row["time_ms"], transactional=False)
        else:
            self.unresolved[row["producer_id"]] += 1
            self.pending.setdefault(row["producer_id"], {})[key] = row

    def end(self, marker: Row) -> None:
        unresolved = self.unresolved.pop(marker["producer_id"], 0)
        held = self.pending.pop(marker["producer_id"], {})
        if not marker["commits"]:
            self.numbers["aborted"] += unresolved
            return
        for key, row in held.items():
            if self.stored.get(key, -1) < row["log_offset"]:
                self.stored[key] = row["log_offset"]
                unresolved -= 1
                self._effective(row, marker["log_offset"], marker["time_ms"], transactional=True)
        self.numbers["overtaken"] += unresolved

    def _effective(self, row: Row, effect_offset: int, time_ms: int, *, transactional: bool) -> None:
        self.rows.append(row | {"effect_offset": effect_offset, "time_ms": time_ms, "transactional": transactional})


def resolve_per_row(commits: pa.Table, markers: pa.Table) -> Resolved:
    """Replay the log; each log offset must be there once."""
    store = _Store()
    events: list[tuple[int, Row, Callable[[Row], None]]] = [(row["log_offset"], row, store.replay) for row in commits.to_pylist()]
    events += [(row["log_offset"], row, store.end) for row in markers.to_pylist()]
    for _, row, apply in sorted(events, key=lambda event: event[0]):
        apply(row)
    store.numbers["open"] = store.unresolved.total()
    rows = sorted(store.rows, key=lambda row: (row["group"], row["topic"], row["partition"], row["effect_offset"]))
    return Resolved(pa.Table.from_pylist(rows, schema=OFFSET_COMMITS), **store.numbers)
