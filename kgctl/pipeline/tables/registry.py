"""The tables, in the order in which they are built, and what each gets to build from.

A `Table` stands in the module of its name, or in that of `_HOMES`, under its name in capitals. All commits and records of a group
are in one partition of ``__consumer_offsets``; tables of `PARTITION_TABLES` are therefore built per such partition and get
`PartitionInputs`. Those of `CLUSTER_TABLES` are of a whole cluster, are built first, and get `ClusterInputs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.decode.arrow import Int64s


DEFAULT_WINDOW_MS = 60_000
"""Width of the windows of ``commit_rate`` and ``group_health``, in milliseconds; windows begin at multiples of it."""

CLUSTER_TABLES = ("log_end_offsets",)
PARTITION_TABLES = (
    *("offset_commits", "group_generations", "members", "assignments", "lag", "resets", "commit_rate"),
    *("status_changes", "group_health", "coverage"),
)
_HOMES = {
    **dict.fromkeys(("group_generations", "members", "assignments"), "membership"),
    **dict.fromkeys(("offset_commits", "coverage", "log_end_offsets"), "collected"),
    **dict.fromkeys(("commit_rate", "group_health"), "windows"),
    "status_changes": "lag",
}
T = TypeVar("T")
BEGIN_MS, EVER_MS = -(1 << 62), 1 << 62
"""Before and after every time."""


@dataclass(frozen=True)
class Table:
    """One of the tables.

    ``build`` is a pure function of its inputs and gives rows with exactly ``schema``, sorted by their natural key: the same
    records in any partitioning, order and duplication give the same bytes.
    """

    name: str
    schema: pa.Schema
    build: Callable[[Any], pa.Table]


@dataclass(frozen=True)
class ClusterInputs:
    """What a table of a whole cluster is built from."""

    log_offsets: pa.Table
    """Every sample that was collected (columns of ``LOG_OFFSETS``), in no particular order, duplicates included."""
    rounds: Int64s | None = None
    """As those of `PartitionInputs`."""


@dataclass(frozen=True)
class Horizon:
    """From when on rows are asked for, by partition of the log; ``homes`` has the partition that each group lives on.

    Commits and samples from before it are there only as far as these rows need them. It is a multiple of `DEFAULT_WINDOW_MS`;
    of a partition that it does not know, all rows are asked for.
    """

    since_ms: Mapping[int, int] = field(default_factory=dict)
    homes: Mapping[str, int] = field(default_factory=dict)

    def of_groups(self, groups: pa.Array) -> Int64s:
        """Return the horizon of each of these groups."""
        import numpy as np

        found = (self.since_ms.get(self.homes.get(name, -1), BEGIN_MS) for name in groups.to_pylist())
        return np.fromiter(found, np.int64, len(groups))

    def of_rows(self, groups: pa.ChunkedArray) -> Int64s:
        """Return the horizon of each row's group."""
        from kgctl.pipeline.decode.arrow import ranked

        ranks, names = ranked(groups)
        found: Int64s = self.of_groups(names)[ranks]
        return found


@dataclass(frozen=True)
class PartitionInputs:
    """What was collected of partitions of ``__consumer_offsets``, decoded, each record once.

    ``offset_commits``: the silver columns, one row a (log_partition, log_offset), sorted by group, topic, partition,
    effect_offset; where there is a column ``clock_ms`` it counts instead of ``time_ms``, and ``end`` and ``out`` are known of
    rows from before the horizon (`kgctl.pipeline.tables.series.Points`).
    ``group_records``: group, record_type, member_id, time_ms, log_partition, log_offset, tombstone, key, value, sorted by
    log_offset; key and value are the record's own bytes and ``kgctl.serde.coordinator_records.decode_record`` reads them.
    ``log_offsets``: the rows of ``log_end_offsets`` of the topics that occur here, sorted by topic, partition, timestamp_ms.
    ``coverage``: log_partition, first_offset, last_offset, first_ms, last_ms: runs of log offsets without a hole, ascending.
    """

    offset_commits: pa.Table
    group_records: pa.Table
    log_offsets: pa.Table
    coverage: pa.Table
    window_ms: int = DEFAULT_WINDOW_MS
    horizon: Horizon = field(default_factory=Horizon)
    rounds: Int64s | None = None
    """The windows in which anything of the cluster was sampled; None: those of ``log_offsets``."""
    carried: Mapping[str, pa.Table] = field(default_factory=dict)
    """What else an incremental build knows from before: see `kgctl.pipeline.builds.carry`."""
    counts: Counter[str] = field(default_factory=Counter, compare=False)
    """What tables want to be told after the build: how much they had to leave out, by a name of their own."""
    _memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def table(self, name: str) -> pa.Table:
        """The table ``name`` of these inputs; built when it is first asked for, so that tables can stand on one another."""
        return self.once(f"table {name}", lambda _: table_named(name).build(self))

    def with_commits(self, commits: pa.Table) -> PartitionInputs:
        """The same with other commits; what group records tell is known already."""
        known = {f"table {name}": self.table(name) for name in ("group_generations", "members")}
        return replace(self, offset_commits=commits, _memory=known)

    def with_carried(self, name: str, own: pa.Table) -> pa.Table:
        """``own`` behind the rows that were carried of table ``name``."""
        import pyarrow as pa

        found = self.carried.get(name)
        return own if found is None else pa.concat_tables([found.cast(own.schema), own])

    def once(self, key: str, make: Callable[[PartitionInputs], T]) -> T:
        """``make(self)``, computed once for these inputs: what several tables share (a sort, the bounds of the series)."""
        if key not in self._memory:
            self._memory[key] = make(self)
        return cast("T", self._memory[key])


def table_named(name: str) -> Table:
    """The table of this name, one of `PARTITION_TABLES` or `CLUSTER_TABLES`. Raises `KeyError` for others."""
    if name not in PARTITION_TABLES + CLUSTER_TABLES:
        raise KeyError(name)
    return cast("Table", getattr(import_module(f"{__package__}.{_HOMES.get(name, name)}"), name.upper()))


class OutdatedError(Exception):
    """What was made before is no longer what all records say: the slice must be made anew, from all of them or, where
    ``since_ms`` tells from when on, from an earlier state. The message says why."""

    def __init__(self, why: str, since_ms: int | None = None) -> None:
        super().__init__(why)
        self.since_ms = since_ms


class SamplesMissingError(Exception):
    """Rows need samples of the log ends of ``topics`` that were not carried."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(", ".join(topics))
        self.topics = topics
