"""What a group did in a stretch of time, of a history or of records that a simulation wrote, and what can be measured of both.

Everything is read from the same tables (generations, members, assignments, commits), so that a number of the one means what the
same number of the other means. Times are milliseconds since the epoch, a stretch is from ``from_ms`` on and before ``to_ms``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.inferred import CRASHED, UNKNOWN, infer_departures
from kgctl.pipeline.answers.series import REBALANCES, Row, rows_between

if TYPE_CHECKING:
    from kgctl.model.coordinator_records import CoordinatorRecord
    from kgctl.pipeline.answers.history import History

CALM_MS = 10_000
"""Generations that follow each other sooner belong to one unrest: members notice a rebalance within a heartbeat."""
NO_REBALANCES = ("static_member_returned", "group_deleted")

_Partition = tuple[str, int]


@frozen_in_order
class MemberStay:
    """A member for as long as it was one. ``to_ms`` None: to the end. ``ending``: ``left``, ``crashed`` or ``unknown``.

    ``last_commit_ms`` is the last commit of its partitions before it was gone; None where there is none.
    """

    member_id: str
    client_id: str
    instance_id: str | None
    session_ms: int | None
    rebalance_ms: int | None
    from_ms: int
    to_ms: int | None
    ending: str = UNKNOWN
    last_commit_ms: int | None = None


@frozen_in_order
class RecordedPast:
    """``generations``: rows of the table, in order. ``owned``: partition, from, to (None: to the end), member id.

    ``commits``: time and offset by partition, ascending. ``partitions``: of each topic, as far as they occur.
    """

    generations: Sequence[Row]
    stays: Sequence[MemberStay]
    owned: Sequence[tuple[_Partition, int, int | None, str]]
    commits: Mapping[_Partition, Sequence[tuple[int, int]]]
    partitions: Mapping[str, int] = field(default_factory=dict)
    kind: str = "consumer"
    """The protocol type of the group's members."""


def happened(history: History, group: str, from_ms: int, to_ms: int) -> RecordedPast:
    """What the history knows of the group up to ``to_ms``; generations and commits from ``from_ms`` on."""
    rows = [
        row
        for row in rows_between(history, REBALANCES, [group], None, None)
        if (at := _begin(row)) is None or from_ms <= at < to_ms
    ]
    infer_departures(history, rows)
    kinds = history.rows("generations", ("protocol_type",), [group]).column("protocol_type").to_pylist()
    key = ("topic", "partition")
    members = history.rows(
        "member_changes",
        (
            *("member_id", "time_ms", "change", "client_id", "group_instance_id", "session_timeout_ms"),
            *("rebalance_timeout_ms", "log_offset"),
        ),
        [group],
    )
    changes = history.rows("assignment_changes", (*key, "member_id", "time_ms", "change", "log_offset"), [group])
    committed = history.rows("offset_commits", (*key, "time_ms", "committed_offset", "log_offset"), [group])
    owned = _owned(changes.sort_by("log_offset").to_pylist())
    commits = _commits(committed.sort_by("log_offset").to_pylist(), from_ms, to_ms)
    stays = _stays(members.sort_by("log_offset").to_pylist(), to_ms)
    partitions = _partitions(history, {partition for partition, *_ in owned} | set(commits))
    return RecordedPast(rows, _with_endings(stays, rows, owned, commits), owned, commits, partitions, kinds[-1] if kinds else "")


def happened_in(records: Iterable[tuple[int, CoordinatorRecord]], from_ms: int, to_ms: int) -> RecordedPast:
    """Return what happened by the records of one group (time, record), all from its beginning, in the order of their log."""
    import pyarrow as pa

    from kgctl.pipeline.decode.arrow import each_once
    from kgctl.pipeline.decode.decode import decode, resolve
    from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW
    from kgctl.pipeline.tables.registry import PartitionInputs
    from kgctl.serde.coordinator_records import encode_record

    rows = []
    for offset, (time_ms, record) in enumerate(records):
        key, value = encode_record(record)
        rows.append({"partition": 0, "offset": offset, "timestamp_ms": time_ms, "key": key, "value": value})
    decoded = decode(pa.Table.from_pylist(rows, schema=RAW))
    commits = resolve(decoded.commits, decoded.markers).offset_commits
    groups = each_once(decoded.group_records, "log_offset")
    inputs = PartitionInputs(commits, groups, LOG_OFFSETS.empty_table(), decoded.coverage)
    generations = [
        row for row in inputs.table("group_generations").to_pylist() if (at := _begin(row)) is not None and from_ms <= at < to_ms
    ]
    stays = [
        MemberStay(
            row["member_id"],
            row["client_id"],
            row["group_instance_id"],
            row["session_timeout_ms"],
            row["rebalance_timeout_ms"],
            row["from_ms"],
            row["to_ms"],
        )
        for row in inputs.table("members").to_pylist()
        if row["from_ms"] < to_ms
    ]
    owned = [
        ((row["topic"], row["partition"]), row["from_ms"], row["to_ms"], row["member_id"])
        for row in inputs.table("assignments").to_pylist()
    ]
    return RecordedPast(generations, stays, owned, _commits(commits.to_pylist(), from_ms, to_ms))


MEASURES: Mapping[str, str] = {
    "generations": "generations, or epochs, that began",
    "overtaken": "generations that another one overtook before they were stable",
    "rebalance_s": "how long rebalances took together, as far as the log tells",
    "longest_unrest_s": "the longest time in which generations followed each other within 10 s, to the last one's end",
    "partitions_moved": "partitions that got another owner",
    "members_at_end": "members at the end",
    "commit_interval_s": "median time from one commit of a partition to the next",
    "longest_commit_gap_s": "the longest such time: nobody consumed, or nobody had anything to commit",
}
"""What a history and a simulation can both tell, and what it means."""


def measures(found: RecordedPast, from_ms: int, to_ms: int) -> dict[str, float | None]:
    """Each of `MEASURES`; None where nothing tells it."""
    rows = [row for row in found.generations if row["cause"] not in NO_REBALANCES]
    gaps = [later - earlier for times in found.commits.values() for (earlier, _), (later, _) in pairwise(times)]
    return {
        "generations": float(len(rows)),
        "overtaken": float(sum(1 for row in rows if row["stable_ms"] is None)),
        "rebalance_s": sum(row["duration_ms"] or 0 for row in rows) / 1000,
        "longest_unrest_s": max((end - begin for begin, end in _unrests(rows)), default=0) / 1000,
        "partitions_moved": float(_moved(found.owned, from_ms, to_ms)) if found.owned else None,
        "members_at_end": float(sum(1 for stay in found.stays if _is_there(stay.from_ms, stay.to_ms, to_ms))),
        "commit_interval_s": median(gaps) / 1000 if gaps else None,
        "longest_commit_gap_s": max(gaps) / 1000 if gaps else None,
    }


def _begin(row: Row) -> int | None:
    found: int | None = next((row[name] for name in ("started_ms", "stable_ms") if row[name] is not None), None)
    return found


def _unrests(rows: Sequence[Row]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for row in rows:
        begin = _begin(row)
        if begin is None:
            continue
        end = row["stable_ms"] if row["stable_ms"] is not None else begin
        if found and begin - found[-1][1] < CALM_MS:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _moved(owned: Sequence[tuple[_Partition, int, int | None, str]], from_ms: int, to_ms: int) -> int:
    """Partitions that somebody got in that time from somebody else, who had them before."""
    before: dict[_Partition, str] = {}
    moved = 0
    for partition, begin, _, member in sorted(owned, key=lambda each: each[1]):
        if from_ms <= begin < to_ms and before.get(partition, member) != member:
            moved += 1
        before[partition] = member
    return moved


def _is_there(begin: int, end: int | None, at_ms: int) -> bool:
    return begin < at_ms and (end is None or end >= at_ms)


def _owned(changes: Sequence[Row]) -> list[tuple[_Partition, int, int | None, str]]:
    since: dict[tuple[str, int, str], int] = {}
    found: list[tuple[_Partition, int, int | None, str]] = []
    for row in changes:
        key = (row["topic"], row["partition"], row["member_id"])
        if row["change"] == "assigned":
            since[key] = row["time_ms"]
        elif key in since:
            found.append((key[:2], since.pop(key), row["time_ms"], key[2]))
    return found + [(key[:2], begin, None, key[2]) for key, begin in since.items()]


def _stays(changes: Sequence[Row], to_ms: int) -> list[MemberStay]:
    here: dict[str, MemberStay] = {}
    found: list[MemberStay] = []
    for row in changes:
        if row["change"] == "joined":
            here[row["member_id"]] = MemberStay(
                row["member_id"],
                row["client_id"],
                row["group_instance_id"],
                row["session_timeout_ms"],
                row["rebalance_timeout_ms"],
                row["time_ms"],
                None,
            )
        elif row["change"] == "left" and row["member_id"] in here:
            stay = here.pop(row["member_id"])
            found.append(replace(stay, to_ms=row["time_ms"]))
    return sorted((stay for stay in [*found, *here.values()] if stay.from_ms < to_ms), key=lambda each: each.from_ms)


def _with_endings(
    stays: Sequence[MemberStay],
    rows: Sequence[Row],
    owned: Sequence[tuple[_Partition, int, int | None, str]],
    commits: Mapping[_Partition, Sequence[tuple[int, int]]],
) -> list[MemberStay]:
    """``to_ms`` becomes the begin of the rebalance in which a member was missed, and ``ending`` what is inferred."""
    told = {
        member: (_begin(row), why)
        for row in rows
        if row["members_left"]
        for member, why in zip(row["members_left"], row["inferred"] or [UNKNOWN] * len(row["members_left"]), strict=True)
    }
    found = []
    for stay in stays:
        begin, why = told.get(stay.member_id, (None, UNKNOWN))
        end = stay.to_ms if begin is None or stay.to_ms is None else begin
        mine = {partition for partition, since, until, member in owned if member == stay.member_id and _overlaps(until, end)}
        last = max((at for each in mine for at, _ in commits.get(each, ()) if end is not None and at <= end), default=None)
        found.append(replace(stay, to_ms=end, ending=why, last_commit_ms=last))
    return found


def _overlaps(until: int | None, end: int | None) -> bool:
    return until is None or end is None or until >= end


def _commits(rows: Sequence[Row], from_ms: int, to_ms: int) -> dict[_Partition, list[tuple[int, int]]]:
    found: dict[_Partition, list[tuple[int, int]]] = {}
    for row in rows:
        if row["committed_offset"] is not None and from_ms <= row["time_ms"] < to_ms:
            found.setdefault((row["topic"], row["partition"]), []).append((row["time_ms"], row["committed_offset"]))
    return found


def _partitions(history: History, known: Iterable[_Partition]) -> dict[str, int]:
    """How many partitions each topic has: as many as members had, as were committed, or as were sampled."""
    found: dict[str, int] = {}
    for topic, partition in sorted(known):
        found[topic] = partition + 1
    for row in history.samples(list(found), 1 << 60, 16).select(["topic", "partition"]).to_pylist():
        if row["topic"] in found:
            found[row["topic"]] = max(found[row["topic"]], row["partition"] + 1)
    return found


def is_crash(stay: MemberStay) -> bool:
    """Whether it is inferred that the member crashed."""
    return stay.ending == CRASHED
