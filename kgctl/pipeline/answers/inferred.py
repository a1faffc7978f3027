"""What may be said of a moment that no record tells: the status of a lag, and whether members that are gone left or crashed.

A status is Burrow's, or `UNMEASURED` where the log's end was not sampled often enough to tell: a group that has stopped looks as
one that is well, until enough samples say otherwise.

A broker does not write down why a member is gone. But a member whose session expired has shown no sign of life for its whole
session time-out, and a commit is one: a rebalance that came sooner was no expiry. One that came later, while the member had
records to read and had committed regularly until then, was most likely one. It is inferred, and called so. The log has no session
time-out of members of the consumer protocol.

A static member that closes does not leave its group: it is gone when its session has expired, as if it had crashed. One of the
consumer protocol says in the log that it closes; of a classic one its last commit tells, which comes before its time: that of
``close()``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kgctl.pipeline.answers.series import LAG, STATUS, Row, rows_at, rows_between
from kgctl.pipeline.tables.registry import DEFAULT_WINDOW_MS

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.answers.history import History


UNMEASURED = "UNMEASURED"
"""Not measured often enough to say more."""
SAMPLES_TO_TELL = 10
"""Samples of a log behind the last commit after which Burrow's rules call a group stopped."""
USUAL_SAMPLING_MS = 10_000
"""How often Burrow samples, and `history collect` unless told otherwise."""
FRESH_MS = 120_000
"""A lag that is no older than this is one of the moment: tables have a row for each minute that was sampled."""
_FILES = 16
"""The newest files of samples that are read: each has one sample of every topic at least."""

_Key = tuple[str, str, int]


def standings(history: History, groups: Sequence[str] | None, at_ms: int) -> list[Row]:
    """Rows of the table ``lag`` as of ``at_ms``, each with ``status`` and ``why`` (empty where the status needs no word).

    ``status`` is null where no lag is known. Sorted by group, topic, partition; partitions without a commit are left out.
    """
    rows = rows_at(history, LAG, groups, at_ms)
    judge(history, rows, groups, at_ms)
    return rows


def judge(history: History, rows: Sequence[Row], groups: Sequence[str] | None, at_ms: int) -> None:
    """Give rows of ``lag``, the last of each partition up to ``at_ms``, their ``status`` and ``why``, as `standings` does."""
    told = {_key(row): row["status"] for row in rows_at(history, STATUS, groups, at_ms)} if rows else {}
    evidence = _Evidence(history, groups, {row["topic"] for row in rows}, at_ms)
    for row in rows:
        row["status"], row["why"] = _judged(row, _in_range(row, told.get(_key(row), "OK")), evidence, at_ms)


def judge_each(history: History, rows: Sequence[Row], groups: Sequence[str] | None) -> None:
    """Give rows of ``lag`` of any time the ``status`` that their partitions had then; null where no lag is known."""
    changes: dict[_Key, tuple[list[int], list[str]]] = {}
    for change in _status_changes(history, groups, [row["time_ms"] for row in rows]):
        times, statuses = changes.setdefault(_key(change), ([], []))
        times.append(change["time_ms"])
        statuses.append(change["status"])
    for row in rows:
        times, statuses = changes.get(_key(row), ([], []))
        at = bisect_right(times, row["time_ms"])
        row["status"] = _in_range(row, statuses[at - 1] if at else "OK")
        row["why"] = ""


def _status_changes(history: History, groups: Sequence[str] | None, times: Sequence[int]) -> list[Row]:
    """The changes of status that hold at one of these times, by partition and time."""
    if not times:
        return []
    first, last = min(times), max(times)
    return rows_at(history, STATUS, groups, first) + rows_between(history, STATUS, groups, first + 1, last + 1)


def _in_range(row: Row, status: str) -> str | None:
    """The status of a row; null where the log's end is not known. If it has no lag then, its commit is out of the log's range."""
    if row["log_end_offset"] is None or row["lag"] is not None or status in OUT_OF_RANGE:
        return None if row["log_end_offset"] is None else status
    return PAST_END if row["committed_offset"] > row["log_end_offset"] else BELOW_START


PAST_END, BELOW_START = "PAST_END", "BELOW_START"
OUT_OF_RANGE = {PAST_END: "committed past the log's end", BELOW_START: "committed before the log's start"}
"""The statuses of a commit that is out of its log's range, whose lag is null."""
_BADNESS: Mapping[str | None, int] = {
    status: place for place, status in enumerate(("OK", "WARN", UNMEASURED, None, "STOP", "STALL", "REWIND", *OUT_OF_RANGE))
}


def worst_status(rows: Sequence[Row]) -> str | None:
    """The status of a group: that of its worst partition; null where none is known of one, and none is worse."""
    return max((row["status"] for row in rows), key=_BADNESS.__getitem__, default=None)


def why_unseen(history: History, at_ms: int) -> str:
    """Why what happened last up to ``at_ms`` is not known of any group; empty where the cluster was looked at as usual: a live
    collection samples log ends also while no group writes a record."""
    from kgctl.pipeline.store.states import rounds_of

    records = [run.last_ms for partition in history.partitions() for run in history.coverage(partition)]
    sampled = [
        (window + 1) * DEFAULT_WINDOW_MS for window in rounds_of(history.warehouse.table("state", history.as_of), history.cluster)
    ]
    times = [time_ms for time_ms in sampled if time_ms - DEFAULT_WINDOW_MS <= at_ms][-SAMPLES_TO_TELL:]
    # Records that are dated later have a clock that is ahead, and tell nothing of when they were collected.
    seen_ms = max([*times, *(min(last_ms, at_ms) for last_ms in records if last_ms <= at_ms + FRESH_MS)], default=None)
    if seen_ms is None:
        return "nothing was collected before"
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    age_ms = at_ms - seen_ms
    usual_ms = gaps[len(gaps) // 2] if gaps else 0
    return f"last collected {span_text(age_ms)} before" if age_ms > max(FRESH_MS, 2 * usual_ms) else ""


def unmeasured_groups(history: History, groups: Sequence[str] | None, at_ms: int) -> Mapping[str, str]:
    """The groups with a partition that was not measured often enough to say how they were, and why."""
    found = [row for row in standings(history, groups, at_ms) if row["status"] == UNMEASURED]
    return {row["group"]: f"{row['topic']}-{row['partition']}: {row['why']}" for row in reversed(found)}


def unseen_since(history: History, groups: Sequence[str] | None, at_ms: int) -> Mapping[str, int]:
    """The groups with a partition that was no more measured as usual, up to a moment, and when it was for the last time."""
    rows = rows_at(history, LAG, groups, at_ms)
    evidence = _Evidence(history, groups, {row["topic"] for row in rows}, at_ms)
    found: dict[str, int] = {}
    for row in rows:
        if (seen_ms := _last_seen_ms(row, evidence, at_ms)) is not None:
            found[row["group"]] = min(found.get(row["group"], seen_ms), seen_ms)
    return found


def _last_seen_ms(row: Row, evidence: _Evidence, at_ms: int) -> int | None:
    """When the lag was measured last, if that is too long ago; None: as usual."""
    # Where nothing is unread, a sample at which nothing was new has no row of its own: the row before it stands.
    seen_ms: int = row["time_ms"] if row["lag"] else max(row["time_ms"], evidence.last_sample_ms(row))
    age_ms = at_ms - seen_ms
    return seen_ms if age_ms > FRESH_MS and age_ms > 2 * evidence.sampling_ms(row) else None


def _judged(row: Row, status: str | None, evidence: _Evidence, at_ms: int) -> tuple[str | None, str]:
    if status is None:
        return None, "the end of the log was not sampled"
    if (seen_ms := _last_seen_ms(row, evidence, at_ms)) is not None:
        return UNMEASURED, f"last measured {span_text(at_ms - seen_ms)} before"
    if status != "OK" or not row["lag"]:
        return status, OUT_OF_RANGE.get(status, "")
    silent_ms, longest_ms = evidence.silence(row)
    if silent_ms <= max(longest_ms, SAMPLES_TO_TELL * USUAL_SAMPLING_MS):
        return status, ""
    samples = evidence.samples_since(row, at_ms - silent_ms)
    if samples >= SAMPLES_TO_TELL:
        return status, ""
    return UNMEASURED, f"no commit for {span_text(silent_ms)}, and {samples} samples since: too few to tell whether it stopped"


class _Evidence:
    """Commits and samples before a moment, read when a status hangs on them."""

    def __init__(self, history: History, groups: Sequence[str] | None, topics: Collection[str], at_ms: int) -> None:
        self._history = history
        self._groups = groups
        self._topics = topics
        self._at_ms = at_ms

    def silence(self, row: Row) -> tuple[int, int]:
        """(how long ago the last commit was, how long the ten before it took together)."""
        times = self._commits.get(_key(row), [row["time_ms"]])
        return self._at_ms - times[-1], times[-1] - times[0]

    def samples_since(self, row: Row, since_ms: int) -> int:
        """How often the log was sampled after a moment, counted up to ten."""
        return sum(1 for time_ms in self._samples.get((row["topic"], row["partition"]), ()) if time_ms > since_ms)

    def last_sample_ms(self, row: Row) -> int:
        """When the log was sampled last; 0 where it never was."""
        return max(self._samples.get((row["topic"], row["partition"]), ()), default=0)

    def sampling_ms(self, row: Row) -> int:
        """How long it usually is from one sample of the log to the next; 0 where there is one at most."""
        times = self._samples.get((row["topic"], row["partition"]), [])
        gaps = sorted(later - earlier for earlier, later in pairwise(times))
        return gaps[len(gaps) // 2] if gaps else 0

    @cached_property
    def _commits(self) -> dict[_Key, list[int]]:
        import pyarrow.compute as pc

        columns = ("group", "topic", "partition", "time_ms", "kind")
        rows = self._history.looked_back("lag", columns, self._groups, self._at_ms)
        is_meant = pc.and_(pc.equal(rows.column("kind"), "commit"), pc.less_equal(rows.column("time_ms"), self._at_ms))
        return {_key(row): times for row, times in _last_times(rows.filter(is_meant), ("group", "topic", "partition"))}

    @cached_property
    def _samples(self) -> dict[tuple[str, int], list[int]]:
        found = self._history.samples(self._topics, self._at_ms, _FILES)
        return {(row["topic"], row["partition"]): times for row, times in _last_times(found, ("topic", "partition"))}


def _last_times(rows: pa.Table, key: Sequence[str]) -> list[tuple[dict[str, Any], list[int]]]:
    """Return each key with its last ten times, ascending."""
    from kgctl.pipeline.answers.rows import times_of_each

    return [(row, times[-SAMPLES_TO_TELL:]) for row, times in times_of_each(rows, key)]


def _key(row: dict[str, Any]) -> _Key:
    return row["group"], row["topic"], row["partition"]


def span_text(milliseconds: int) -> str:
    """A time in words: ``95 s``, ``31 min``, ``3 h``."""
    seconds = milliseconds // 1000
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


LEFT, CRASHED, UNKNOWN = "left", "crashed", "unknown"
_COMMITS_TO_KNOW = 3
"""Commits in a row, each within a third of the session time-out, after which silence says something."""

_RHYTHM = 4
"""Gaps between commits that tell when the next one is due."""
_SOON_MS = 60_000

_Partition = tuple[str, int]


@dataclass(slots=True)
class _Group:
    """The rows that the tables have of one group, by time."""

    timeouts: dict[str, int] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    assigned: dict[str, list[tuple[int, bool, _Partition]]] = field(default_factory=dict)
    commits: dict[_Partition, list[int]] = field(default_factory=dict)
    lags: dict[_Partition, list[tuple[int, int]]] = field(default_factory=dict)

    def note_member(self, row: Row) -> None:
        """Note what a row of ``member_changes`` says."""
        member = row["member_id"]
        if row["session_timeout_ms"] is not None:
            self.timeouts[member] = row["session_timeout_ms"]
        if row["group_instance_id"] is not None:
            self.static.add(member)
        if row["change"] == "closed":
            self.closed.add(member)

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
    gone = [row for row in rows if row["members_left"] and row["cause"] != "group_deleted"]
    groups = _read(history, sorted({row["group"] for row in gone}))
    for row in rows:
        row["inferred"] = None
    for row in gone:
        found = [_inferred(groups[row["group"]], member, row) for member in row["members_left"]]
        row["inferred"] = None if set(found) == {UNKNOWN} else found


def _inferred(group: _Group, member: str, row: Row) -> str:
    if row["type"] != "classic":
        return LEFT if member in group.closed else UNKNOWN
    timeout_ms = group.timeouts.get(member)
    ended_ms = row["started_ms"] if row["started_ms"] is not None else row["stable_ms"]
    owned = group.owned(member, row["log_offset"])
    commits = sorted(time_ms for partition in owned for time_ms in group.commits.get(partition, ()) if time_ms <= ended_ms)
    if timeout_ms is None or not commits:
        return UNKNOWN
    if ended_ms - commits[-1] < timeout_ms:
        return LEFT
    if member in group.static and (is_early := _is_early(sorted(set(commits)))) is not False:
        return LEFT if is_early else UNKNOWN
    moments = sorted(set(commits))[-_COMMITS_TO_KNOW:]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    was_regular = len(moments) == _COMMITS_TO_KNOW and max(gaps, default=0) * 3 <= timeout_ms
    return CRASHED if was_regular and any(_had_to_read(group, partition, ended_ms) for partition in owned) else UNKNOWN


def _is_early(moments: Sequence[int]) -> bool | None:
    """Whether the last commit came before its time; None where the ones before it have no rhythm, so that nothing is due."""
    *before, last = [later - earlier for earlier, later in pairwise(moments[-_RHYTHM - 2 :])] or [0]
    if len(before) < _RHYTHM or max(before) > 1.25 * min(before):
        return None
    return last < 0.8 * min(before)


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
    columns = ("group", "member_id", "change", "group_instance_id", "session_timeout_ms", "log_offset")
    for row in _rows(history, "member_changes", columns, names):
        groups[row["group"]].note_member(row)
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
