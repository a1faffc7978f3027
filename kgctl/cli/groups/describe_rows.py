"""The reports of ``describe group``: what was learnt about groups, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgctl.admin.group_view import GroupView, GroupViews, PartitionView, total_lag
from kgctl.admin.offset_reset import TopicScope
from kgctl.admin.times import format_instant
from kgctl.cli.groups.thresholds import Verdict
from kgctl.cli.report import GROUP, Column, Report, Row
from kgctl.cli.selection import plural
from kgctl.errors import KgctlError, NotFoundError
from kgctl.model.groups import Assignment, GroupDescription, GroupState, MemberDescription

MOST_NOTED = 5
"""Up to so many groups have notices of their own; of more, one line sums them up."""

OFFSETS = (
    GROUP,
    *map(Column, ("topic", "partition", "current_offset")),
    Column("log_start_offset", wide=True, if_any=True),
    *map(Column, ("log_end_offset", "lag")),
    *(Column(name, if_any=True) for name in ("consumer_id", "host", "client_id")),
    *(Column(name, wide=True, if_any=True) for name in ("group_instance_id", "leader_epoch", "metadata")),
    Column("flags", if_any=True),
)
LAG_AT = [column.key for column in OFFSETS].index("lag") + 1
NEXT_RECORD = tuple(Column(name, if_any=True) for name in ("next_record_time", "next_record_key", "next_record_value"))
MOST_SHOWN = 200
"""Bytes of a key or a value that are shown."""
COMMIT_AGE = (Column("commit_age_s", "COMMIT-AGE-S"), Column("commit_time", wide=True, if_any=True))
TIME_LAG = (Column("time_lag_s", "TIME-LAG-S"), Column("record_time", wide=True, if_any=True))
MEMBERS = (
    GROUP,
    Column("consumer_id"),
    *(Column(name, if_any=True) for name in ("group_instance_id", "host", "client_id")),
    Column("partitions", "#PARTITIONS"),
    *(
        Column(name, wide=True, if_any=True)
        for name in (
            *("assignment", "member_epoch", "target_assignment_epoch", "target_assignment"),
            *("subscribed_topics", "rack", "assignor", "upgraded"),
        )
    ),
)
STATE = (
    GROUP,
    Column("coordinator"),
    Column("coordinator_id", "ID"),
    Column("assignor", "ASSIGNMENT-STRATEGY"),
    Column("state"),
    Column("type"),
    *(Column(name, wide=True) for name in ("protocol_type", "group_epoch", "target_assignment_epoch")),
    Column("members", "#MEMBERS"),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """Which rows are shown, with what, and in which order.

    ``sort`` is a key of `SORTS`, or "" for groups, topics, partitions. ``read_committed``: logs end at their last stable offset.
    """

    scopes: Sequence[TopicScope] = ()
    only_lagging: bool = False
    sort: str = ""
    time_lag: bool = False
    commit_age: bool = False
    next_record: bool = False
    read_committed: bool = False
    totals: bool = False


def offsets_report(found: GroupViews, shown: Shown, now_ms: int, verdict: Verdict | None = None) -> Report:
    """One row a partition; JSON and YAML have the lag of each group and of each topic besides, as the ``summary``."""
    pairs = [(view, partition) for view in found.views for partition in view.partitions]
    if shown.only_lagging:
        pairs = [(view, each) for view, each in pairs if each.lag.lag or each.flags]
    if shown.sort:
        pairs.sort(key=lambda pair: SORTS[shown.sort](pair[1]))
    errors: list[KgctlError] = [*(verdict.errors if verdict else found.errors)]
    if shown.scopes:
        errors += [error for view in found.views if not view.partitions for error in _nothing_in_scope(view, shown.scopes)]
    notices = [*_offset_notices(found.views, is_whole=not shown.scopes), *(verdict.notices if verdict else ())]
    if shown.read_committed:
        notices.append("Log ends are last stable offsets: records of open transactions are not counted.")
    if shown.totals:
        return _totals_report(found.views, errors, notices, verdict)
    rows = [_offset_row(view.description, each) for view, each in pairs]
    if shown.time_lag:
        rows = [{**row, **_time_cells(each, now_ms)} for row, (_, each) in zip(rows, pairs, strict=True)]
    if shown.commit_age:
        rows = [{**row, **_commit_cells(each, now_ms)} for row, (_, each) in zip(rows, pairs, strict=True)]
    if shown.next_record:
        rows = [{**row, **_record_cells(each)} for row, (_, each) in zip(rows, pairs, strict=True)]
    times = (*(TIME_LAG if shown.time_lag else ()), *(COMMIT_AGE if shown.commit_age else ()))
    last = NEXT_RECORD if shown.next_record else ()
    return Report(
        (*OFFSETS[:LAG_AT], *times, *OFFSETS[LAG_AT:], *last),
        rows,
        errors,
        notices,
        ("group", "topic", "partition"),
        verdict.exit_code if verdict else None,
        something_done=bool(found.views) if shown.only_lagging else None,
        summary=_totals(found.views),
    )


SORTS: Mapping[str, Callable[[PartitionView], tuple[float, str, int]]] = {
    "lag": lambda each: (
        -each.lag.lag if each.lag.lag is not None else -float("inf") if each.flags else float("inf"),
        *each.lag.partition,
    ),
    "partition": lambda each: (0, *each.lag.partition),
    "consumer": lambda each: (
        0,
        each.owner.member_id if each.owner else "\N{REPLACEMENT CHARACTER}",
        each.lag.partition.partition,
    ),
}


def _totals(views: Sequence[GroupView]) -> dict[str, Any]:
    """The known lag of each group and, by topic, what it is made of; partitions whose lag is unknown are counted apart."""
    groups = []
    for view in views:
        topics: dict[str, int] = {}
        for each in view.partitions:
            topic = each.lag.partition.topic
            topics[topic] = topics.get(topic, 0) + total_lag([each.lag])
        unknown = sum(each.lag.lag is None for each in view.partitions)
        group = {"group": view.description.group_id, "lag": view.total_lag, "partitions": len(view.partitions)}
        groups.append({**group, "unknown": unknown, "topics": topics})
    return {"lag": sum(view.total_lag for view in views), "groups": groups}


TOTALS = (GROUP, Column("topic"), Column("partitions", "#PARTITIONS"), Column("unknown", "#UNKNOWN"), Column("lag"))


def _totals_report(
    views: Sequence[GroupView], errors: Sequence[KgctlError], notices: Sequence[str], verdict: Verdict | None
) -> Report:
    """One row a topic of a group, and one without a topic for the group as a whole."""
    rows: list[Row] = []
    for view in views:
        topics = sorted({each.lag.partition.topic for each in view.partitions})
        parts = [(topic, [each for each in view.partitions if each.lag.partition.topic == topic]) for topic in topics]
        rows += [_total_row(view, topic, found) for topic, found in (*parts, (None, view.partitions))]
    return Report(
        TOTALS, rows, errors, notices, ("group", "topic"), verdict.exit_code if verdict else None, summary=_totals(views)
    )


def _total_row(view: GroupView, topic: str | None, found: Sequence[PartitionView]) -> Row:
    known = [each.lag.lag for each in found if each.lag.lag is not None]
    return {
        "group": view.description.group_id,
        "topic": topic,
        "partitions": len(found),
        "unknown": len(found) - len(known),
        "lag": total_lag(each.lag for each in found) if known else None,
    }


TABLES = (OFFSETS, TIME_LAG, COMMIT_AGE, NEXT_RECORD, TOTALS, MEMBERS, STATE)
"""All columns that `describe group` may have."""


def members_report(found: GroupViews) -> Report:
    """One row a member, those without partitions too."""
    rows = [_member_row(view.description, member) for view in found.views for member in view.description.members]
    noted = found.views if len(found.views) <= MOST_NOTED else ()
    notices = [line for view in noted for line in _state_notices(view.description)]
    done = bool(found.views)
    return Report(MEMBERS, rows, found.errors, notices, ("consumer_id",), something_done=done)


def state_report(found: GroupViews) -> Report:
    return Report(STATE, [_state_row(view.description) for view in found.views], found.errors, (), ("group",))


def assignment_text(assignment: Assignment | None) -> str | None:
    """``orders:0,1;users:2``, as Kafka's own tool writes it; None for none or an unknown one."""
    if not assignment:
        return None
    return ";".join(f"{topic}:{','.join(map(str, sorted(assignment[topic])))}" for topic in sorted(assignment))


def _offset_row(description: GroupDescription, view: PartitionView) -> Row:
    row, owner = view.lag, view.owner
    return {
        "group": description.group_id,
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "current_offset": row.current_offset,
        "log_start_offset": row.log_start_offset,
        "log_end_offset": row.log_end_offset,
        "lag": row.lag,
        "consumer_id": owner.member_id if owner else None,
        "host": owner.host if owner else None,
        "client_id": owner.client_id if owner else None,
        "group_instance_id": owner.group_instance_id if owner else None,
        "leader_epoch": row.leader_epoch,
        "metadata": row.metadata,
        "flags": tuple(map(str, view.flags)),
    }


def _time_cells(view: PartitionView, now_ms: int) -> Row:
    """How old the next record to read is, in seconds, and its time; 0 where there is none to read."""
    at_ms = view.record_time_ms
    is_done = view.lag.lag is not None and view.lag.lag <= 0
    age = max(0, now_ms - at_ms) / 1000 if at_ms is not None else 0.0 if is_done else None
    return {"time_lag_s": age, "record_time": None if at_ms is None else format_instant(at_ms)}


def _record_cells(view: PartitionView) -> Row:
    """What the group reads next there: where, when it was written, key and value as text, bytes that are none escaped."""
    record = view.next_record
    if record is None:
        return dict.fromkeys((column.key for column in NEXT_RECORD), None)
    return {
        "next_record_time": None if record.timestamp_ms is None else format_instant(record.timestamp_ms),
        "next_record_key": shown_bytes(record.key),
        "next_record_value": shown_bytes(record.value),
    }


def shown_bytes(data: bytes | None, most: int | None = MOST_SHOWN) -> str | None:
    """Return bytes as text, at most so many of them (None: all); those that are no text are escaped. None stays None."""
    if data is None:
        return None
    text = data[:most].decode("utf-8", "backslashreplace")
    return text if most is None or len(data) <= most else f"{text}..."


def _commit_cells(view: PartitionView, now_ms: int) -> Row:
    """How long ago the commit was made, in seconds, and when; a clock that is behind the broker's makes it 0."""
    at_ms = view.commit_time_ms
    if at_ms is None:
        return {"commit_age_s": None, "commit_time": None}
    return {"commit_age_s": max(0, now_ms - at_ms) / 1000, "commit_time": format_instant(at_ms)}


def _member_row(description: GroupDescription, member: MemberDescription) -> Row:
    return {
        "group": description.group_id,
        "consumer_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "host": member.host,
        "client_id": member.client_id,
        "partitions": None if member.assignment is None else member.partition_count,
        "assignment": assignment_text(member.assignment),
        "member_epoch": member.member_epoch,
        "target_assignment_epoch": description.assignment_epoch,
        "target_assignment": assignment_text(member.target_assignment),
        "subscribed_topics": member.subscribed_topics,
        "rack": member.rack_id,
        "assignor": description.assignor,
        "upgraded": not member.is_classic_in_consumer_group if _is_mixed(description) else None,
    }


def _is_mixed(description: GroupDescription) -> bool:
    """Whether members of the classic and of the consumer protocol are in one group, as while it is being upgraded."""
    return len({member.is_classic_in_consumer_group for member in description.members}) > 1


def _state_row(description: GroupDescription) -> Row:
    coordinator = description.coordinator
    return {
        "group": description.group_id,
        "coordinator": str(coordinator) if coordinator else None,
        "coordinator_id": coordinator.node_id if coordinator else None,
        "assignor": description.assignor or None,
        "state": description.state.value,
        "type": description.type.value,
        "protocol_type": description.protocol_type or None,
        "group_epoch": description.group_epoch,
        "target_assignment_epoch": description.assignment_epoch,
        "members": len(description.members),
    }


def _nothing_in_scope(view: GroupView, scopes: Sequence[TopicScope]) -> Iterator[KgctlError]:
    group_id = view.description.group_id
    for scope in scopes:
        message = f"group {group_id!r} has no offsets and no members on topic {scope.topic!r}"
        if scope.ranges is not None:
            message += ", or not on these partitions"
        yield NotFoundError(message, group=group_id, topic=scope.topic)


def _offset_notices(views: Sequence[GroupView], *, is_whole: bool) -> list[str]:
    if len(views) > MOST_NOTED:
        lags = [partition.lag for view in views for partition in view.partitions]
        unknown = sum(lag.lag is None and lag.current_offset is not None for lag in lags)
        told = f", unknown for {plural(unknown, 'partition')}" if unknown else ""
        return [f"{len(views)} groups: total lag {sum(view.total_lag for view in views)}{told}."]
    return [line for view in views for line in (*_state_notices(view.description), *_lag_notices(view, is_whole=is_whole))]


def _state_notices(description: GroupDescription) -> Iterator[str]:
    group_id, state = description.group_id, description.state
    if state.is_rebalancing:
        yield f"Group {group_id!r} is rebalancing ({state.value}): members and assignment will change."
    elif state is GroupState.EMPTY:
        yield f"Group {group_id!r} has no active members."


def _lag_notices(view: GroupView, *, is_whole: bool) -> Iterator[str]:
    """``is_whole``: no topics were asked for, so that a group without a row has committed nothing."""
    group_id, rows = view.description.group_id, [partition.lag for partition in view.partitions]
    if not rows:
        if is_whole:
            yield f"Group {group_id!r} has no committed offsets."
        return
    without = sum(row.current_offset is None for row in rows)
    unknown = sum(row.lag is None and row.current_offset is not None for row in rows)
    told = [f"{without} of them without a commit"] if without else []
    told += [f"{unknown} of them with an unknown lag"] if unknown else []
    total = "unknown" if unknown and unknown + without == len(rows) else view.total_lag
    where = ", ".join([f"in {len(rows)} partition{'s' if len(rows) > 1 else ''}", *told])
    yield f"Group {group_id!r}: total lag {total} {where}."
    idle = sum(member.assignment is not None and not member.partition_count for member in view.description.members)
    if idle:
        yield f"Group {group_id!r}: {idle} of {len(view.description.members)} members own no partition (see --members)."
