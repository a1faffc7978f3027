"""What was committed at a moment of the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kgctl.pipeline.answers.history import Run, is_whole_between, is_whole_until

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.answers.history import History

COLUMNS = (
    "group",
    "topic",
    "partition",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "time_ms",
    "log_offset",
    "effect_offset",
    "log_partition",
)
_KEY = ("group", "topic", "partition")


class Exactness(StrEnum):
    """How certain an answer is."""

    EXACT = "exact"
    """Every record between this commit and the moment was collected: nothing came after it."""
    COMPACTED = "compacted"
    """Records in between were compacted away before they were collected: a later commit may have counted."""
    UNKNOWN = "unknown"
    """There may have been a commit: only later ones of this partition were collected, or it was deleted, and some of the records
    in between were compacted away."""


@dataclass(frozen=True, slots=True)
class CommitAt:
    """What a group had committed for a partition at the moment asked for.

    ``offset`` is None where it is not known (`Exactness.UNKNOWN`), and so is all else about the commit. ``leader_epoch`` is None
    where the client gave none. ``committed_ms``: when it took effect, which for a transaction is its end.
    """

    group: str
    topic: str
    partition: int
    offset: int | None
    metadata: str | None
    leader_epoch: int | None
    committed_ms: int | None
    exactness: Exactness


def offsets_at(history: History, groups: Sequence[str] | None, at_ms: int) -> list[CommitAt]:
    """Every partition that had a commit at ``at_ms``, or may have had one; sorted by group, topic, partition.

    A commit counts from its own millisecond on. Of several commits the one that is last in the log counts, whatever their times.
    Partitions whose commit was deleted or had expired are not there.
    """
    import pyarrow.compute as pc

    rows = history.rows("offset_commits", COLUMNS, groups)
    found: list[CommitAt] = []
    for partition in rows.column("log_partition").unique().to_pylist():
        here = rows.filter(pc.equal(rows.column("log_partition"), partition))
        found.extend(commits_at(here, history.coverage(partition), at_ms))
    return sorted(found, key=lambda commit: (commit.group, commit.topic, commit.partition))


def commits_at(rows: pa.Table, runs: Sequence[Run], at_ms: int) -> list[CommitAt]:
    """The same of the commits (`COLUMNS`) of one log partition, of which ``runs`` were collected; in no order."""
    import pyarrow.compute as pc

    from kgctl.pipeline.answers.latest import last_of_each

    is_past = pc.less_equal(rows.column("time_ms"), at_ms)
    past = last_of_each(rows.filter(is_past), _KEY, ("effect_offset", "log_offset"))
    found = [commit for row in past.to_pylist() if (commit := _commit(row, runs, at_ms)) is not None]
    if not is_whole_until(runs, at_ms):
        known = {_key(row) for row in past.select(_KEY).to_pylist()}
        later = _keys(rows.filter(pc.invert(is_past)))
        found += [CommitAt(*key, None, None, None, None, Exactness.UNKNOWN) for key in later if key not in known]
    return found


def _commit(row: dict[str, Any], runs: Sequence[Run], at_ms: int) -> CommitAt | None:
    """The commit that a row is; None for the deletion of one, if nothing can have been committed after it."""
    is_exact = is_whole_between(runs, row["log_offset"], at_ms)
    if row["committed_offset"] is None:
        return None if is_exact else CommitAt(*_key(row), None, None, None, None, Exactness.UNKNOWN)
    return CommitAt(
        *_key(row),
        row["committed_offset"],
        _without_end(row["metadata"]),
        None if row["leader_epoch"] < 0 else row["leader_epoch"],
        row["time_ms"],
        Exactness.EXACT if is_exact else Exactness.COMPACTED,
    )


def _without_end(metadata: str | None) -> str | None:
    """librdkafka ends metadata with a NUL that is not part of it."""
    return metadata[:-1] if metadata is not None and metadata.endswith("\0") else metadata


def _keys(rows: pa.Table) -> list[tuple[str, str, int]]:
    from kgctl.pipeline.answers.latest import last_of_each

    return [_key(row) for row in last_of_each(rows, _KEY).select(_KEY).to_pylist()]


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group"], row["topic"], row["partition"]
