"""Whether members that are gone have left or crashed, as far as the time between their last commit and the rebalance tells.

A broker writes down neither. But a member whose session expired has shown no sign of life for its whole session time-out, and a
commit is one: a rebalance that came sooner was no expiry. One that came later, while the member had records to read and had
committed regularly until then, was most likely one. It is inferred, and called so. The log has no session
time-out of members of the consumer protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from kgctl.pipeline.answers.series import Row

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

LEFT, CRASHED, UNKNOWN = "left", "crashed", "unknown"
_COMMITS_TO_KNOW = 3
"""Commits in a row, each within a third of the session time-out, after which silence says something."""

_SOON_MS = 60_000

_Partition = tuple[str, int]


@dataclass(slots=True)
class _Group:
    """What the tables have of one group, by time."""

    timeouts: dict[str, int] = field(default_factory=dict)
    assigned: dict[str, list[tuple[int, bool, _Partition]]] = field(default_factory=dict)
    commits: dict[_Partition, list[int]] = field(default_factory=dict)
    lags: dict[_Partition, list[tuple[int, int]]] = field(default_factory=dict)

    def owned(self, member: str, log_offset: int) -> set[_Partition]:
        """What a member had just before a record of the log."""
        found: set[_Partition] = set()
        for at, is_assigned, partition in self.assigned.get(member, ()):
            if at < log_offset:
                found = found | {partition} if is_assigned else found - {partition}
        return found


def infer_departures(history: History, rows: Sequence[Row]) -> None:
    """Give rows of ``generations`` a key ``inferred``: for each of ``members_left`` what became of it.

    That is ``left``, ``crashed`` or ``unknown``. It is null where nobody left, or nothing can be inferred of anybody.
    """
    gone = [row for row in rows if row["members_left"] and row["type"] == "classic" and row["cause"] != "group_deleted"]
    groups = _read(history, sorted({row["group"] for row in gone}))
    for row in rows:
        row["inferred"] = None
    for row in gone:
        found = [_inferred(groups[row["group"]], member, row) for member in row["members_left"]]
        row["inferred"] = None if set(found) == {UNKNOWN} else found


def _inferred(group: _Group, member: str, row: Row) -> str:
    timeout_ms = group.timeouts.get(member)
    ended_ms = row["started_ms"] if row["started_ms"] is not None else row["stable_ms"]
    owned = group.owned(member, row["log_offset"])
    commits = sorted(time_ms for partition in owned for time_ms in group.commits.get(partition, ()) if time_ms <= ended_ms)
    if timeout_ms is None or not commits:
        return UNKNOWN
    if ended_ms - commits[-1] < timeout_ms:
        return LEFT
    moments = sorted(set(commits))[-_COMMITS_TO_KNOW:]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    was_regular = len(moments) == _COMMITS_TO_KNOW and max(gaps, default=0) * 3 <= timeout_ms
    return CRASHED if was_regular and any(_had_to_read(group, partition, ended_ms) for partition in owned) else UNKNOWN


def _had_to_read(group: _Group, partition: _Partition, at_ms: int) -> bool:
    """Whether there was something unread at the last lag that is known before a moment, or at the first one soon after it."""
    known = group.lags.get(partition, ())
    before = [lag for time_ms, lag in known if time_ms <= at_ms][-1:]
    after = [lag for time_ms, lag in known if at_ms < time_ms <= at_ms + _SOON_MS][:1]
    return any(lag > 0 for lag in before + after)


def _read(history: History, names: Sequence[str]) -> Mapping[str, _Group]:
    groups = {name: _Group() for name in names}
    if not names:
        return groups
    for row in _rows(history, "member_changes", ("group", "member_id", "session_timeout_ms", "log_offset"), names):
        if row["session_timeout_ms"] is not None:
            groups[row["group"]].timeouts[row["member_id"]] = row["session_timeout_ms"]
    key = ("group", "topic", "partition")
    for row in _rows(history, "assignment_changes", (*key, "member_id", "change", "log_offset"), names):
        place = row["topic"], row["partition"]
        changes = groups[row["group"]].assigned.setdefault(row["member_id"], [])
        changes.append((row["log_offset"], row["change"] == "assigned", place))
    for row in _rows(history, "offset_commits", (*key, "time_ms", "committed_offset", "log_offset"), names):
        if row["committed_offset"] is not None:
            groups[row["group"]].commits.setdefault((row["topic"], row["partition"]), []).append(row["time_ms"])
    for row in _rows(history, "lag", (*key, "time_ms", "lag"), names, "time_ms"):
        if row["lag"] is not None:
            groups[row["group"]].lags.setdefault((row["topic"], row["partition"]), []).append((row["time_ms"], row["lag"]))
    return groups


def _rows(
    history: History, table: str, columns: Sequence[str], groups: Sequence[str], order: str = "log_offset"
) -> Iterable[Row]:
    found: list[Row] = history.rows(table, columns, groups).sort_by(order).to_pylist()
    return found
