"""The tables of ``describe group``: their columns, and which rows of what was learnt about groups they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from kgctl.admin.group_view import GroupView, GroupViews, PartitionView, total_lag
from kgctl.admin.topic_scopes import TopicScope, absent, parse_topic_scopes
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
from kgctl.cli.options import TopicOptions
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import BOOL, NUMBER, TEXTS, TIME, WHOLE, Column, Report, asked_for
from kgctl.cli.selection import nothing_on, parse_name, told_lag
from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.model.groups import NO_LEADER_EPOCH, Assignment, GroupDescription, GroupState, GroupType, MemberDescription

if TYPE_CHECKING:
    from kgctl.model.streams import Subtopology

MOST_NOTED = 5
"""Up to so many groups have notices of their own; of more, one line sums them up."""
MOST_SHOWN = 200
"""Bytes of a key or a value that are shown."""


LAG_MODES = ("committed", "read-committed")


@dataclass(frozen=True, eq=False, repr=False)
class DescribeShown:
    """A block of options: which rows of partitions are shown, with what, in which order, and where their logs end."""

    topic: TopicOptions = None
    only_lagging: Annotated[bool, flag("--only-lagging", "Only partitions with lag, or with a flag.")] = False
    sort: Annotated[str | None, option("KEY", "Rows by lag, partition or consumer.", complete=SORTS)] = None
    totals: Annotated[bool, flag("--totals", "A row a topic and one a group, not a partition: their lag.")] = False
    time_lag: Annotated[bool, flag("--time-lag", "Add the age of the next record to read.")] = False
    commit_age: Annotated[bool, flag("--commit-age", "Add how long ago each offset was committed.")] = False
    next_record: Annotated[
        bool, flag("--next-record", "Add time, key and value of the record that is read next: the poison message.")
    ] = False
    lag_mode: Annotated[
        str | None,
        option(
            "MODE",
            "Count lag to the log end (committed, the default), or to the last stable offset (read-committed).",
            complete=LAG_MODES,
        ),
    ] = None

    @cached_property
    def scopes(self) -> Sequence[TopicScope]:
        return parse_topic_scopes(self.topic or ())

    @cached_property
    def sort_key(self) -> str:
        """A key of `SORTS`, or "" for groups, topics, partitions."""
        return "" if self.sort is None else parse_name("--sort", self.sort, tuple(SORTS))

    @cached_property
    def read_committed(self) -> bool:
        """Whether logs end at their last stable offset."""
        return self.lag_mode is not None and parse_name("--lag-mode", self.lag_mode, LAG_MODES) == LAG_MODES[1]

    def check(self, view: str, *, has_limits: bool) -> None:
        """Raises `UsageError`: what is given is no topic, order or mode, or has no place in the view."""
        of_partitions = self.only_lagging or bool(self.sort) or self.time_lag or self.commit_age or self.next_record
        if self.totals and of_partitions:
            others = "--only-lagging, --sort, --time-lag, --commit-age and --next-record"
            raise UsageError(f"--totals has no rows of partitions: {others} have no place beside it")
        if view != "offsets" and (of_partitions or self.topic or self.totals or self.lag_mode or has_limits):
            raise UsageError(
                "--topic, --only-lagging, --sort, --totals, --time-lag, --commit-age, --next-record, --lag-mode and the "
                f"--fail-if options belong to --offsets, not to --{view}"
            )
        _ = self.scopes, self.sort_key, self.read_committed


def _leader_epoch(row: PartitionView) -> int | None:
    return None if row.commit is None or row.commit.leader_epoch == NO_LEADER_EPOCH else row.commit.leader_epoch


def _time_lag_s(row: PartitionView) -> float | None:
    """0 where there is no record to read."""
    at_ms = row.record_time_ms
    return max(0, row.asked_ms - at_ms) / 1000 if at_ms is not None else 0.0 if row.lag == 0 else None


def _commit_age_s(row: PartitionView) -> float | None:
    """A clock that is behind the broker's makes it 0."""
    return None if row.commit_time_ms is None else max(0, row.asked_ms - row.commit_time_ms) / 1000


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
        "the committed offset, of the record that is read next; a share group's start offset",
        WHOLE,
        read="commit?.offset",
    ),
    LOG_START.of("log.log_start_offset", if_any=True),
    LOG_END.of("log.log_end_offset", meaning=f"{LOG_END.meaning}; with `--lag-mode read-committed` its last stable offset"),
    LAG.of("lag"),
    Column(
        "time_lag_s",
        "since the record that is read next was written; 0 where there is none; null where that may be read already",
        NUMBER,
        "s",
        when="time_lag",
        read=_time_lag_s,
    ),
    Column("record_time", "when that record was written", TIME, wide=True, if_any=True, when="time_lag", read="record_time_ms"),
    Column("commit_age_s", "since the offset was committed", NUMBER, "s", when="commit_age", read=_commit_age_s),
    Column("commit_time", "when it was committed", TIME, wide=True, if_any=True, when="commit_age", read="commit_time_ms"),
    CONSUMER_ID.of("owner?.member_id", if_any=True),
    HOST.of("owner?.host"),
    CLIENT_ID.of("owner?.client_id"),
    INSTANCE_ID.of("owner?.group_instance_id", wide=True),
    Column(
        "leader_epoch", "the leader epoch that was committed with the offset", WHOLE, wide=True, if_any=True, read=_leader_epoch
    ),
    Column("metadata", "the text that was committed with the offset", wide=True, if_any=True, read="commit?.metadata"),
    FLAGS.of("flags"),
    Column(
        "next_record_time",
        "the time of the record that is read next",
        TIME,
        if_any=True,
        when="next_record",
        read="next_record?.timestamp_ms",
    ),
    Column(
        "next_record_key",
        "its key, bytes that are no text escaped, the first 200",
        if_any=True,
        when="next_record",
        read="next_record?.key",
        shown=shown_bytes,
    ),
    Column(
        "next_record_value", "its value, likewise", if_any=True, when="next_record", read="next_record?.value", shown=shown_bytes
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
    Column("partitions", "how many partitions", WHOLE, header="#PARTITIONS", shown=len),
    Column("unknown", "how many of them have a lag that is unknown", WHOLE, header="#UNKNOWN"),
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
    return Column(f"{name}_tasks", meaning, wide=wide, if_any=True, read=f"member.tasks?.{name}", shown=assignment_text)


OF_TASKS = (
    _task_column("active", "streams: the tasks that the member processes, by subtopology: `0:0,2;1:1`", wide=False),
    _task_column("standby", "streams: those whose state it keeps a copy of", wide=False),
    _task_column("warmup", "streams: those that it gets ready for", wide=False),
    *(_task_column(f"target_{name}", f"streams: what `{name}_tasks` is to be") for name in ("active", "standby", "warmup")),
    Column("process", "streams: the instance of the application", wide=True, if_any=True, read="member.tasks?.process_id"),
    Column(
        "topology_epoch",
        "streams: the epoch of the member's topology",
        WHOLE,
        wide=True,
        if_any=True,
        read="member.tasks?.topology_epoch",
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
        "how many partitions the member has",
        WHOLE,
        header="#PARTITIONS",
        read=lambda row: None if row.member.assignment is None else row.member.partition_count,
    ),
    Column(
        "assignment",
        "what the member has: `orders:0,1;users:2`",
        wide=True,
        if_any=True,
        read="member.assignment",
        shown=assignment_text,
    ),
    Column("member_epoch", "the member's epoch (consumer protocol)", WHOLE, wide=True, if_any=True, read="member.member_epoch"),
    TARGET_EPOCH.of("group.assignment_epoch", if_any=True),
    Column(
        "target_assignment",
        "what the member is to have, as `assignment`",
        wide=True,
        if_any=True,
        read="member.target_assignment",
        shown=assignment_text,
    ),
    Column(
        "subscribed_topics",
        "the topics that the member subscribes to",
        TEXTS,
        wide=True,
        if_any=True,
        read="member.subscribed_topics",
    ),
    Column("rack", "the member's `client.rack`", wide=True, if_any=True, read="member.rack_id"),
    ASSIGNOR.of("group.assignor", wide=True, if_any=True),
    Column(
        "upgraded",
        "whether the member speaks the consumer protocol, in a group that has both kinds",
        BOOL,
        wide=True,
        if_any=True,
        read="is_upgraded",
    ),
    *OF_TASKS,
)
OF_STATE = (
    GROUP.of("group_id"),
    COORDINATOR.of("coordinator"),
    COORDINATOR_ID.of("coordinator?.node_id", header="ID"),
    ASSIGNOR.of(lambda group: group.assignor or None, header="ASSIGNMENT-STRATEGY"),
    STATE.of("state.value"),
    TYPE.of("type.value"),
    PROTOCOL_TYPE.of(lambda group: group.protocol_type or None),
    Column("group_epoch", "the group's epoch (consumer protocol)", WHOLE, wide=True),
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
    Column("topology_epoch", "the epoch of the group's topology", WHOLE, wide=True, read="epoch"),
    Column("subtopology", "the subtopology's id", read="subtopology.subtopology_id"),
    *(
        Column(name, meaning, TEXTS, read=f"subtopology.{name}")
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
    Column("lag", "the lags that are known, of all groups together; null where none is", WHOLE, "records"),
    Column("groups[].group", "the group's id"),
    Column("groups[].lag", "its lags that are known together; null where none is", WHOLE, "records"),
    Column("groups[].partitions", "how many partitions", WHOLE),
    Column("groups[].unknown", "of how many of them the lag is unknown", WHOLE),
    Column("groups[].topics.TOPIC", "the known lag on this topic; null where none is", WHOLE, "records"),
)


def offsets_report(found: GroupViews, shown: DescribeShown, judgement: ThresholdJudgement | None = None) -> Report:
    """One row a partition; JSON and YAML have the lag of each group and of each topic besides, as the ``summary``."""
    rows = [each for each in found.partitions if not shown.only_lagging or each.lag or each.flags]
    if shown.sort_key:
        rows.sort(key=SORTS[shown.sort_key])
    errors: list[KgctlError] = [*(judgement.errors if judgement else found.errors)]
    errors += _out_of_scope(found, shown.scopes, is_judged=judgement is not None)
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


def _out_of_scope(found: GroupViews, scopes: Sequence[TopicScope], *, is_judged: bool) -> Iterator[KgctlError]:
    """What was named, and a group has nothing on at all, or none has; limits tell the second themselves."""
    ids = [view.description.group_id for view in found.views]
    for group_id, view in zip(ids, found.views, strict=True):
        if not view.partitions:
            yield from nothing_on(scopes, _has_nothing(group_id), group_id)
    there = {each.partition for each in found.partitions}
    if there and not found.errors and not is_judged:
        lone = ids[0] if len(ids) == 1 else None
        yield from nothing_on(absent(scopes, there), _has_nothing(lone), lone)


def _has_nothing(group_id: str | None) -> str:
    who = "none of the groups has offsets or members"
    return who if group_id is None else f"group {group_id!r} has no offsets and no members"


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
