"""Which groups there are, and how each was over a stretch of time, in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from kgctl.pipeline.answers.latest import by_group
from kgctl.pipeline.answers.series import HEALTH, table_between
from kgctl.pipeline.tables.group_health import STATUSES

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.answers.history import History


@dataclass(frozen=True, slots=True)
class GroupOverview:
    """One group. ``status`` is the worst there was; None where no lag is known."""

    group: str
    status: str | None
    rebalances: int
    rebalance_ms: int | None
    resets: int
    commits: int
    max_lag: int | None
    max_lag_ms: int | None
    cluster: str = ""


def overview(history: History, groups: Sequence[str] | None, from_ms: int, to_ms: int) -> list[GroupOverview]:
    """The groups of which something is known in that time, sorted by name."""
    table = table_between(history, HEALTH, groups, from_ms, to_ms)
    found = [replace(_group(name, rows), cluster=history.cluster) for name, rows in by_group(table)]
    return sorted(found, key=lambda each: each.group)


def worst_first(found: Sequence[GroupOverview]) -> list[GroupOverview]:
    """By resets, then status, rebalances, lag."""
    return sorted(
        found,
        key=lambda each: (-each.resets, -_badness(each.status), -each.rebalances, -(each.max_lag or 0), each.group),
    )


def _badness(status: str | None) -> int:
    return -1 if status is None else STATUSES.index(status)


def _group(name: str, rows: pa.Table) -> GroupOverview:
    statuses = [status for status in rows.column("status").unique().to_pylist() if status is not None]
    return GroupOverview(
        group=name,
        status=max(statuses, key=_badness, default=None),
        rebalances=pc.sum(rows.column("rebalances")).as_py(),
        rebalance_ms=pc.sum(rows.column("rebalance_ms")).as_py(),
        resets=pc.sum(rows.column("resets")).as_py(),
        commits=pc.sum(rows.column("commits")).as_py(),
        max_lag=pc.max(rows.column("max_lag")).as_py(),
        max_lag_ms=pc.max(rows.column("max_lag_ms")).as_py(),
    )
