"""The tables of ``describe group``: their columns, and which rows of what was learnt about groups they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from kgctl.admin.group_view import GroupView, GroupViews, PartitionView, total_lag
from kgctl.admin.times import format_instant
from kgctl.admin.topic_scopes import TopicScope
from kgctl.cli.columns import (
    ASSIGNOR,
    CLIENT_ID,
    CONSUMER_ID,
    COORDINATOR,
    COORDINATOR_ID,
    FLAGS,
    GROUP,
    HOST,
    INSTANCE_ID,
    LAG,
    LOG_END,
    LOG_START,
    MEMBERS,
    PARTITION,
    PROTOCOL_TYPE,
    STATE,
    TARGET_EPOCH,
    TOPIC,
    TYPE,
)
from kgctl.cli.groups.thresholds import ThresholdJudgement
from kgctl.cli.report import Cell, Column, JsonKind, Report, asked_for
from kgctl.cli.selection import told_lag
from kgctl.errors import KgctlError, NotFoundError
from kgctl.model.groups import NO_LEADER_EPOCH, Assignment, GroupDescription, GroupState, GroupType, MemberDescription

if TYPE_CHECKING:
    from kgctl.model.streams import Subtopology

MOST_NOTED = 5
"""Up to so many groups have notices of their own; of more, one line sums them up."""
MOST_SHOWN = 200
"""Bytes of a key or a value that are shown."""


@dataclass(frozen=True, slots=True)
class DescribeShown:
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


def _of_owner(name: str) -> Callable[[PartitionView], Cell]:
    return lambda row: None if row.owner is None else getattr(row.owner, name)


def _leader_epoch(row: PartitionView) -> int | None:
    return None if row.commit is None or row.commit.leader_epoch == NO_LEADER_EPOCH else row.commit.leader_epoch


def _time_lag_s(row: PartitionView) -> float | None:
    """0 where there is no record to read."""
    at_ms = row.record_time_ms
    return max(0, row.asked_ms - at_ms) / 1000 if at_ms is not None else 0.0 if row.lag == 0 else None


def _commit_age_s(row: PartitionView) -> float | None:
    """A clock that is behind the broker's makes it 0."""
    return None if row.commit_time_ms is None else max(0, row.asked_ms - row.commit_time_ms) / 1000


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)


def shown_bytes(data: bytes | None, most: int | None = MOST_SHOWN) -> str | None:
    """Return bytes as text, at most so many of them (None: all); those that are no text are escaped. None stays None."""
    if data is None:
        return None
    text = data[:most].decode("utf-8", "backslashreplace")
    return text if most is None or len(data) <= most else f"{text}..."


OFFSETS = (
    GROUP.of("description.group_id"),
    TOPIC.of("partition.topic"),
    PARTITION.of("partition.partition"),
    Column(
        "current_offset",
        kind=JsonKind.WHOLE,
        meaning="the committed offset, of the record that is read next; a share group's start offset",
        read=lambda row: None if row.commit is None else row.commit.offset,
    ),
    LOG_START.of("log.log_start_offset", if_any=True),
    LOG_END.of(
        "log.log_end_offset",
        meaning=f"{LOG_END.meaning}; with `--lag-mode read-committed` its last stable offset",
    ),
    LAG.of("lag"),
    Column(
        "time_lag_s",
        kind=JsonKind.NUMBER,
        unit="s",
        meaning="since the record that is read next was written; 0 where there is none; null where that may be read already",
        when="time_lag",
        read=_time_lag_s,
    ),
    Column(
        "record_time",
        wide=True,
        if_any=True,
        kind=JsonKind.TIME,
        meaning="when that record was written",
        when="time_lag",
        read=lambda row: _instant(row.record_time_ms),
    ),
    Column(
        "commit_age_s",
        kind=JsonKind.NUMBER,
        unit="s",
        meaning="since the offset was committed",
        when="commit_age",
        read=_commit_age_s,
    ),
    Column(
        "commit_time",
        wide=True,
        if_any=True,
        kind=JsonKind.TIME,
        meaning="when it was committed",
        when="commit_age",
        read=lambda row: _instant(row.commit_time_ms),
    ),
    CONSUMER_ID.of(_of_owner("member_id"), if_any=True),
    HOST.of(_of_owner("host")),
    CLIENT_ID.of(_of_owner("client_id")),
    INSTANCE_ID.of(_of_owner("group_instance_id"), wide=True),
    Column(
        "leader_epoch",
        wide=True,
        if_any=True,
        kind=JsonKind.WHOLE,
        meaning="the leader epoch that was committed with the offset",
        read=_leader_epoch,
    ),
    Column(
        "metadata",
        wide=True,
        if_any=True,
        meaning="the text that was committed with the offset",
        read=lambda row: None if row.commit is None else row.commit.metadata,
    ),
    FLAGS.of(lambda row: row.flags and tuple(map(str, row.flags))),
    Column(
        "next_record_time",
        if_any=True,
        kind=JsonKind.TIME,
        meaning="the time of the record that is read next",
        when="next_record",
        read=lambda row: _instant(row.next_record.timestamp_ms) if row.next_record else None,
    ),
    Column(
        "next_record_key",
        if_any=True,
        meaning="its key, bytes that are no text escaped, the first 200",
        when="next_record",
        read=lambda row: shown_bytes(row.next_record.key) if row.next_record else None,
    ),
    Column(
        "next_record_value",
        if_any=True,
        meaning="its value, likewise",
        when="next_record",
        read=lambda row: shown_bytes(row.next_record.value) if row.next_record else None,
    ),
)


class Totals(NamedTuple):
    """The partitions of a topic of a group, or of a group as a whole, with no topic."""

    group_id: str
    topic: str | None
    partitions: Sequence[PartitionView]

    @property
    def unknown(self) -> int:
        """Return how many partitions have a lag that is unknown."""
        return sum(each.lag is None for each in self.partitions)

    @property
    def lag(self) -> int | None:
        """Return what is known of the lag; None where nothing is."""
        return None if self.unknown == len(self.partitions) else total_lag(each.lag for each in self.partitions)


TOTALS = (
    GROUP.of("group_id"),
    TOPIC.of("topic", meaning="the topic; null in the row of a whole group"),
    Column("partitions", "#PARTITIONS", kind=JsonKind.WHOLE, meaning="how many partitions", read=lambda row: len(row.partitions)),
    Column(
        "unknown",
        "#UNKNOWN",
        kind=JsonKind.WHOLE,
        meaning="how many of them have a lag that is unknown",
        read=attrgetter("unknown"),
    ),
    LAG.of("lag", meaning="the sum of the lags that are known"),
)


class MemberOf(NamedTuple):
    """A member, and its group."""

    group: GroupDescription
    member: MemberDescription

    @property
    def is_upgraded(self) -> bool | None:
        """Whether it speaks the consumer protocol, in a group with members of both, as while it is being upgraded; else None."""
        is_mixed = len({each.is_classic_in_consumer_group for each in self.group.members}) > 1
        return not self.member.is_classic_in_consumer_group if is_mixed else None


def assignment_text(assignment: Assignment | None) -> str | None:
    """``orders:0,1;users:2``, as Kafka's own tool writes it; None for none or an unknown one."""
    if not assignment:
        return None
    return ";".join(f"{topic}:{','.join(map(str, sorted(assignment[topic])))}" for topic in sorted(assignment))


def _task_column(name: str, meaning: str, *, wide: bool = True) -> Column:
    """A column of one kind of tasks of the members of streams groups."""
    return Column(
        f"{name}_tasks",
        wide=wide,
        if_any=True,
        meaning=meaning,
        read=lambda row: row.member.tasks and assignment_text(getattr(row.member.tasks, name)),
    )


OF_TASKS = (
    _task_column("active", "streams: the tasks that the member processes, by subtopology: `0:0,2;1:1`", wide=False),
    _task_column("standby", "streams: those whose state it keeps a copy of", wide=False),
    _task_column("warmup", "streams: those that it gets ready for", wide=False),
    *(_task_column(f"target_{name}", f"streams: what `{name}_tasks` is to be") for name in ("active", "standby", "warmup")),
    Column(
        "process",
        wide=True,
        if_any=True,
        meaning="streams: the instance of the application",
        read=lambda row: row.member.tasks and row.member.tasks.process_id,
    ),
    Column(
        "topology_epoch",
        wide=True,
        if_any=True,
        kind=JsonKind.WHOLE,
        meaning="streams: the epoch of the member's topology",
        read=lambda row: row.member.tasks and row.member.tasks.topology_epoch,
    ),
)
OF_MEMBERS = (
    GROUP.of("group.group_id"),
    CONSUMER_ID.of("member.member_id"),
    INSTANCE_ID.of("member.group_instance_id"),
    HOST.of("member.host"),
    CLIENT_ID.of("member.client_id"),
    Column(
        "partitions",
        "#PARTITIONS",
        kind=JsonKind.WHOLE,
        meaning="how many partitions the member has",
        read=lambda row: None if row.member.assignment is None else row.member.partition_count,
    ),
    Column(
        "assignment",
        wide=True,
        if_any=True,
        meaning="what the member has: `orders:0,1;users:2`",
        read=lambda row: assignment_text(row.member.assignment),
    ),
    Column(
        "member_epoch",
        wide=True,
        if_any=True,
        kind=JsonKind.WHOLE,
        meaning="the member's epoch (consumer protocol)",
        read=attrgetter("member.member_epoch"),
    ),
    TARGET_EPOCH.of("group.assignment_epoch", if_any=True),
    Column(
        "target_assignment",
        wide=True,
        if_any=True,
        meaning="what the member is to have, as `assignment`",
        read=lambda row: assignment_text(row.member.target_assignment),
    ),
    Column(
        "subscribed_topics",
        wide=True,
        if_any=True,
        kind=JsonKind.TEXTS,
        meaning="the topics that the member subscribes to",
        read=attrgetter("member.subscribed_topics"),
    ),
    Column("rack", wide=True, if_any=True, meaning="the member's `client.rack`", read=attrgetter("member.rack_id")),
    ASSIGNOR.of("group.assignor", wide=True, if_any=True),
    Column(
        "upgraded",
        wide=True,
        if_any=True,
        kind=JsonKind.BOOL,
        meaning="whether the member speaks the consumer protocol, in a group that has both kinds",
        read=attrgetter("is_upgraded"),
    ),
    *OF_TASKS,
)
OF_STATE = (
    GROUP.of("group_id"),
    COORDINATOR.of(lambda group: str(group.coordinator) if group.coordinator else None),
    COORDINATOR_ID.of(lambda group: group.coordinator.node_id if group.coordinator else None, header="ID"),
    ASSIGNOR.of(lambda group: group.assignor or None, header="ASSIGNMENT-STRATEGY"),
    STATE.of("state.value"),
    TYPE.of("type.value"),
    PROTOCOL_TYPE.of(lambda group: group.protocol_type or None),
    Column(
        "group_epoch",
        wide=True,
        kind=JsonKind.WHOLE,
        meaning="the group's epoch (consumer protocol)",
        read=attrgetter("group_epoch"),
    ),
    TARGET_EPOCH.of("assignment_epoch"),
    MEMBERS.of(lambda group: len(group.members)),
)


class SubtopologyOf(NamedTuple):
    """A part of the topology of a streams group."""

    group_id: str
    epoch: int
    subtopology: Subtopology


OF_TOPOLOGY = (
    GROUP.of("group_id"),
    Column(
        "topology_epoch", wide=True, kind=JsonKind.WHOLE, meaning="the epoch of the group's topology", read=attrgetter("epoch")
    ),
    Column("subtopology", meaning="the subtopology's id", read=attrgetter("subtopology.subtopology_id")),
    *(
        Column(name, kind=JsonKind.TEXTS, meaning=meaning, read=attrgetter(f"subtopology.{name}"))
        for name, meaning in (
            ("source_topics", "the topics that it reads and others write"),
            ("repartition_source_topics", "the application's own topics that it reads"),
            ("repartition_sink_topics", "the application's own topics that it writes for another subtopology"),
            ("changelog_topics", "the topics that its state is written to"),
        )
    ),
)
TABLES = (OFFSETS, TOTALS, OF_MEMBERS, OF_STATE, OF_TOPOLOGY)
"""All tables that `describe group` may show."""
SUMMARY = (
    Column(
        "lag", kind=JsonKind.WHOLE, unit="records", meaning="the lags that are known, of all groups together; null where none is"
    ),
    Column("groups[].group", meaning="the group's id"),
    Column("groups[].lag", kind=JsonKind.WHOLE, unit="records", meaning="its lags that are known together; null where none is"),
    Column("groups[].partitions", kind=JsonKind.WHOLE, meaning="how many partitions"),
    Column("groups[].unknown", kind=JsonKind.WHOLE, meaning="of how many of them the lag is unknown"),
    Column(
        "groups[].topics.TOPIC", kind=JsonKind.WHOLE, unit="records", meaning="the known lag on this topic; null where none is"
    ),
)


def offsets_report(found: GroupViews, shown: DescribeShown, judgement: ThresholdJudgement | None = None) -> Report:
    """One row a partition; JSON and YAML have the lag of each group and of each topic besides, as the ``summary``."""
    rows = [each for each in found.partitions if not shown.only_lagging or each.lag or each.flags]
    if shown.sort:
        rows.sort(key=SORTS[shown.sort])
    errors: list[KgctlError] = [*(judgement.errors if judgement else found.errors)]
    if shown.scopes:
        errors += [error for view in found.views if not view.partitions for error in _nothing_in_scope(view, shown.scopes)]
    notices = [*_offset_notices(found.views, is_whole=not shown.scopes), *(judgement.notices if judgement else ())]
    if shown.read_committed:
        notices.append("Log ends are last stable offsets: records of open transactions are not counted.")
    code, summary = judgement.exit_code if judgement else None, _totals(found.views)
    if shown.totals:
        totals = [each for view in found.views for each in _totals_of(view)]
        return Report(TOTALS, totals, errors, notices, ("group", "topic"), code, summary=summary)
    return Report(
        asked_for(OFFSETS, shown),
        rows,
        errors,
        notices,
        ("group", "topic", "partition"),
        code,
        something_done=bool(found.views) if shown.only_lagging else None,
        summary=summary,
    )


SORTS: Mapping[str, Callable[[PartitionView], tuple[float, str, int]]] = {
    "lag": lambda each: (
        -each.lag if each.lag is not None else -float("inf") if each.flags else float("inf"),
        *each.partition,
    ),
    "partition": lambda each: (0, *each.partition),
    "consumer": lambda each: (
        0,
        each.owner.member_id if each.owner else "\N{REPLACEMENT CHARACTER}",
        each.partition.partition,
    ),
}


def _totals(views: Sequence[GroupView]) -> dict[str, Any]:
    """The same for programs, and of all groups together."""
    groups = []
    for view in views:
        *topics, whole = _totals_of(view)
        group = {"group": whole.group_id, "lag": whole.lag, "partitions": len(whole.partitions), "unknown": whole.unknown}
        groups.append({**group, "topics": {each.topic: each.lag for each in topics}})
    return {"lag": Totals("", None, [each for view in views for each in view.partitions]).lag, "groups": groups}


def _totals_of(view: GroupView) -> Iterator[Totals]:
    """Of each topic, and of the group as a whole."""
    group_id, topics = view.description.group_id, dict[str, list[PartitionView]]()
    for each in view.partitions:
        topics.setdefault(each.partition.topic, []).append(each)
    for topic, partitions in sorted(topics.items()):
        yield Totals(group_id, topic, partitions)
    yield Totals(group_id, None, view.partitions)


def members_report(found: GroupViews) -> Report:
    """One row a member, those without partitions too."""
    rows = [MemberOf(view.description, member) for view in found.views for member in view.description.members]
    noted = found.views if len(found.views) <= MOST_NOTED else ()
    notices = [line for view in noted for line in _state_notices(view.description)]
    done = bool(found.views)
    return Report(OF_MEMBERS, rows, found.errors, notices, ("consumer_id",), something_done=done)


def state_report(found: GroupViews) -> Report:
    return Report(OF_STATE, [view.description for view in found.views], found.errors, (), ("group",))


def topology_report(found: GroupViews) -> Report:
    """One row a subtopology. A group that has no topology, or whose coordinator knows none now, is not found."""
    rows, errors = [], [*found.errors]
    for group in (view.description for view in found.views):
        if group.topology is None or group.topology.subtopologies is None:
            errors.append(NotFoundError(_without_topology(group), group=group.group_id))
        else:
            rows += [SubtopologyOf(group.group_id, group.topology.epoch, each) for each in group.topology.subtopologies]
    return Report(OF_TOPOLOGY, rows, errors, (), ("group", "subtopology"))


def _without_topology(group: GroupDescription) -> str:
    if group.type is not GroupType.STREAMS:
        return f"group {group.group_id!r} is a {group.type.value} group: only streams groups have a topology"
    why = "it is not initialised, or a topic that it reads is missing or has the wrong number of partitions"
    return f"the topology of group {group.group_id!r} is not known ({group.state.value}): {why}"


def _nothing_in_scope(view: GroupView, scopes: Sequence[TopicScope]) -> Iterator[KgctlError]:
    group_id = view.description.group_id
    for scope in scopes:
        message = f"group {group_id!r} has no offsets and no members on topic {scope.topic!r}"
        if scope.ranges is not None:
            message += ", or not on these partitions"
        yield NotFoundError(message, group=group_id, topic=scope.topic)


def _offset_notices(views: Sequence[GroupView], *, is_whole: bool) -> list[str]:
    if len(views) > MOST_NOTED:
        lags = (None if each.is_unmeasured else each.lag or 0 for view in views for each in view.partitions)
        return [f"{len(views)} groups: {told_lag(lags, 'partition')}."]
    return [line for view in views for line in (*_state_notices(view.description), *_lag_notices(view, is_whole=is_whole))]


def _state_notices(description: GroupDescription) -> Iterator[str]:
    group_id, state = description.group_id, description.state
    if state.is_rebalancing:
        yield f"Group {group_id!r} is rebalancing ({state.value}): members and assignment will change."
    elif state is GroupState.EMPTY:
        yield f"Group {group_id!r} has no active members."


def _lag_notices(view: GroupView, *, is_whole: bool) -> Iterator[str]:
    """``is_whole``: no topics were asked for, so that a group without a row has committed nothing."""
    group_id, rows = view.description.group_id, view.partitions
    if not rows:
        if is_whole:
            yield f"Group {group_id!r} has no committed offsets."
        return
    without = sum(row.commit is None for row in rows)
    unknown = sum(row.lag is None and row.commit is not None for row in rows)
    told = [f"{without} of them without a commit"] if without else []
    told += [f"{unknown} of them with an unknown lag"] if unknown else []
    is_unknown = any(row.is_unmeasured for row in rows) and all(row.lag is None for row in rows)
    total = "unknown" if is_unknown else view.total_lag
    where = ", ".join([f"in {len(rows)} partition{'s' if len(rows) > 1 else ''}", *told])
    yield f"Group {group_id!r}: total lag {total} {where}."
    idle = sum(member.assignment is not None and not member.partition_count for member in view.description.members)
    if idle:
        yield f"Group {group_id!r}: {idle} of {len(view.description.members)} members own no partition (see --members)."
