"""The tables of a slice: pure functions over Arrow tables, and the task that writes what they make."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.slices import Slice, placed_runs, unplaced
from kgctl.pipeline.decode.columns import each_once
from kgctl.pipeline.decode.decode import decode
from kgctl.pipeline.decode.transactions import resolve
from kgctl.pipeline.store.files import DataFile, write_files
from kgctl.pipeline.store.location import Location
from kgctl.pipeline.store.tables import GOLD, to_stored
from kgctl.pipeline.tables.changes import assignment_changes, member_changes, status_changes
from kgctl.pipeline.tables.groups.replay import spans
from kgctl.pipeline.tables.registry import DEFAULT_WINDOW_MS, PartitionInputs
from kgctl.pipeline.tables.series.commits import series
from kgctl.pipeline.tables.series.samples import samples as samples_of
from kgctl.pipeline.tables.series.scan import begins


@dataclass(frozen=True)
class SliceInput:
    """What a slice is made of. ``raw``: records (`RAW`), places for offsets, sorted by them; ``samples``: cleaned, of the whole
    cluster; ``coverage``: the runs that were collected of all partitions. ``is_first``: rows of no group are this slice's."""

    raw: pa.Table
    samples: pa.Table
    coverage: pa.Table
    is_first: bool = True
    window_ms: int = DEFAULT_WINDOW_MS


@dataclass
class SliceTables:
    """Rows by table of `GOLD`, and counts of what people should know."""

    tables: dict[str, pa.Table]
    counts: Counter[str] = field(default_factory=Counter)


def tables_of(given: SliceInput) -> SliceTables:
    """Compute the tables of a slice; offsets are the log's own again."""
    decoded = decode(given.raw)
    resolved = resolve(decoded.commits, decoded.markers)
    counts = Counter(decoded.counts())
    counts.update({f"commits_{name}": number for name, number in resolved.counts().items()})
    commits = resolved.offset_commits
    topics = pc.unique(commits.column("topic")).cast("string")
    inputs = PartitionInputs(
        offset_commits=commits,
        group_records=each_once(decoded.group_records, "log_offset"),
        log_offsets=given.samples.filter(pc.is_in(given.samples.column("topic").cast("string"), topics)),
        coverage=placed_runs(given.coverage),
        window_ms=given.window_ms,
    )
    found = spans(inputs)
    made = {
        "offset_commits": commits,
        "generations": inputs.table("group_generations"),
        "member_changes": member_changes(found.members),
        "assignment_changes": assignment_changes(found.assignments),
        "lag": inputs.table("lag"),
        "resets": inputs.table("resets"),
        "commit_rate": inputs.table("commit_rate"),
        "status_changes": status_changes(inputs.table("stalls")),
        "group_health": inputs.table("group_health"),
        "undecoded": _undecoded(decoded.undecoded, is_first=given.is_first),
    }
    counts.update(inputs.counts)
    counts["partitions_without_samples"] = _without_samples(inputs)
    return SliceTables({name: unplaced(made[name]) for name in GOLD}, counts)


def _undecoded(rows: pa.Table, *, is_first: bool) -> pa.Table:
    """Markers are in every slice: those that are damaged are told by the first."""
    return rows if is_first else rows.filter(pc.is_valid(rows.column("key")))


def _without_samples(inputs: PartitionInputs) -> int:
    """How many partitions of topics are committed to and were never sampled."""
    commits = series(inputs)
    first = begins(commits.key)
    missing = samples_of(inputs).log_of_key < 0
    return len(set(zip(commits.topic[first][missing].tolist(), commits.partition[first][missing].tolist(), strict=True)))


@dataclass(frozen=True)
class SliceTask:
    """A slice to be built, and where its rows go."""

    location: Location
    cluster: str
    slice: Slice
    given: SliceInput

    @property
    def records(self) -> int:
        """How much work it is."""
        return int(self.given.raw.num_rows)


@dataclass(frozen=True)
class SliceResult:
    """The files that a slice's rows are in, by table, and what was counted."""

    files: dict[str, list[DataFile]]
    counts: Counter[str]


def build_slice(task: SliceTask) -> SliceResult:
    """Make the tables and write them; the files count once a commit names them. Raises `StorageError`."""
    made = tables_of(task.given)
    prefix = f"b{task.slice.first}-{task.slice.end - 1}-"
    files = {
        name: write_files(task.location, name, to_stored(name, table, task.cluster), prefix)
        for name, table in made.tables.items()
    }
    return SliceResult(files, made.counts)
