"""What decoding gives: tables, and counts of what was there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Reason(StrEnum):
    """Why a record was not decoded. Every one but ``opaque`` is worth a look."""

    OPAQUE = "opaque"
    """A share or streams group's record: known, and not interpreted."""
    UNKNOWN_TYPE = "unknown_type"
    """A record type of a newer broker."""
    UNKNOWN_VERSION = "unknown_version"
    """A value in a version of a newer broker."""
    NO_KEY = "no_key"
    DAMAGED_KEY = "damaged_key"
    DAMAGED_VALUE = "damaged_value"
    DAMAGED_MARKER = "damaged_marker"
    """The end of a transaction that does not say of whose."""


@dataclass(frozen=True)
class Decoded:
    """A batch of raw records, decoded: each raw row is a row of exactly one of the first four tables.

    Schemas: ``COMMITS``, ``GROUP_RECORDS``, ``MARKERS``, ``UNDECODED``, ``COVERAGE``. Commits of transactions are not resolved
    yet, because a marker may be in another batch: `kgctl.pipeline.decode.transactions.resolve` does that for a whole partition.
    """

    commits: pa.Table
    group_records: pa.Table
    markers: pa.Table
    undecoded: pa.Table
    coverage: pa.Table

    def counts(self) -> dict[str, int]:
        """Rows by kind: commits (tombstones and transactional ones among them), group_records, markers, and each `Reason`."""
        reasons = {reason.value: 0 for reason in Reason}
        for found in self.undecoded.column("reason").value_counts().to_pylist():
            reasons[found["values"]] = found["counts"]
        return {
            "commits": self.commits.num_rows,
            "tombstones": self.commits.column("committed_offset").null_count,
            "transactional": self.commits.num_rows - self.commits.column("producer_id").null_count,
            "group_records": self.group_records.num_rows,
            "markers": self.markers.num_rows,
            **reasons,
        }


@dataclass(frozen=True)
class Resolved:
    """The offset commits of a whole partition of ``__consumer_offsets`` that took effect (``OFFSET_COMMITS``), and what did not.

    ``duplicates``: rows of a log offset that was there already; ``aborted``: commits of aborted transactions; ``open``: commits
    whose transaction has no end yet; ``overtaken``: commits of committed transactions that something later on had replaced or
    removed before the marker came, or that a later commit of the same transaction replaced.
    """

    offset_commits: pa.Table
    open_commits: pa.Table | None = None
    """The rows (``COMMITS``) whose transaction has no end yet."""
    duplicates: int = 0
    aborted: int = 0
    open: int = 0
    overtaken: int = 0

    def counts(self) -> dict[str, int]:
        """The numbers, and ``took_effect``: the rows."""
        numbers = {name: getattr(self, name) for name in ("duplicates", "aborted", "open", "overtaken")}
        return {"took_effect": self.offset_commits.num_rows, **numbers}
