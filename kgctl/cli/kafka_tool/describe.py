"""``--list`` and ``--describe`` of kafka-consumer-groups.sh: what it prints of groups, in its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kgctl.admin import GroupAdmin
from kgctl.admin.group_view import is_consumer_group
from kgctl.cli.groups.describe_rows import assignment_text
from kgctl.cli.kafka_tool.java import exception_of
from kgctl.cli.kafka_tool.options import WrongUse
from kgctl.cli.kafka_tool.tool import Tool, ToolFailed, raise_for, value_or_raise
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    NO_LEADER_EPOCH,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    MemberDescription,
    OffsetAndMetadata,
    TopicPartition,
)

NONE = "-"
_STATES = (
    *(GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE, GroupState.DEAD, GroupState.EMPTY),
    *(GroupState.ASSIGNING, GroupState.RECONCILING),
)
"""Those that a consumer group can be in. Source: GroupState#groupStatesForType."""
_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)


def list_groups(tool: Tool) -> None:
    """Bare ids, or with types and states where these were asked for."""
    options = tool.options
    states = list(map(GroupState, _parsed("state", options.value("state"), [each.value for each in _STATES])))
    types = [GroupType(each.lower()) for each in _parsed("types", options.value("type"), [each.value.title() for each in _TYPES])]
    listings = consumer_groups(tool.admin, states, types)
    if not (options.has("state") or options.has("type")):
        tool.say(*(listing.group_id for listing in listings))
        return
    width = max((max(15, len(listing.group_id)) for listing in listings), default=15) + 10
    rows = [("GROUP", "TYPE", "STATE"), *((one.group_id, one.type.value.title(), one.state.value) for one in listings)]
    for group_id, kind, state in rows:
        shown = [f"{group_id:{width}}"]
        shown += [f"{kind:20}"] if options.has("type") else []
        shown += [f"{state:20}"] if options.has("state") else []
        tool.say(" ".join(shown))


def consumer_groups(admin: GroupAdmin, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> list[GroupListing]:
    """By id: Kafka's tool has no order."""
    listed = admin.list_groups(states=states, types=types)
    raise_for(listed.unreachable.values())
    return [one for _, one in sorted(listed.values.items()) if is_consumer_group(one)]


def is_its_own(group: GroupDescription) -> bool:
    """Whether it is a group that the tool knows: share and streams groups have tools of their own."""
    return group.type not in (GroupType.SHARE, GroupType.STREAMS)


def _parsed(what: str, text: str | None, known: Sequence[str]) -> list[str]:
    """Read a list of names, letter case aside."""
    if not text:
        return []
    by_name = {name.lower(): name for name in known}
    words = [word.strip().lower() for word in text.split(",")]
    if any(word not in by_name for word in words):
        raise WrongUse(f"Invalid {what} list '{text}'. Valid {what if what == 'types' else 'states'} are: {', '.join(known)}")
    return [by_name[word] for word in words]


def describe_groups(tool: Tool) -> None:
    """All groups are looked at before anything is printed: one that is not there ends it, as in Kafka's tool."""
    admin, options = tool.admin, tool.options
    ids = [one.group_id for one in consumer_groups(admin)] if options.has("all-groups") else options.values("group")
    found = admin.describe_groups(list(dict.fromkeys(ids)))
    for group_id, error in found.errors.items():
        is_missing = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        why = exception_of(error.code, f"Group {group_id} not found.")
        raise ToolFailed(why) if is_missing else ToolFailed.of(error, wrapped=True)
    groups = [found.values[group_id] for group_id in sorted(found.values)]
    if strange := [group.group_id for group in groups if not is_its_own(group)]:
        raise ToolFailed(exception_of(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {strange[0]} is not a consumer group."))
    is_verbose = options.has("verbose")
    if options.has("members") or options.has("state"):
        show = _print_members if options.has("members") else _print_state
        for group in groups:
            show(tool, group, is_verbose=is_verbose)
    else:
        for group, rows in [(group, list(_rows(admin, group))) for group in groups]:
            _print_offsets(tool, group, rows, is_verbose=is_verbose)


class _Row(NamedTuple):
    """A partition of a group; or a member's, and nobody's."""

    partition: TopicPartition
    commit: OffsetAndMetadata | None
    end: int | None
    owner: MemberDescription | None

    def cells(self, group_id: str) -> list[str]:
        offset, end = self.commit.offset if self.commit else None, self.end
        epoch = self.commit.leader_epoch if self.commit and self.commit.leader_epoch != NO_LEADER_EPOCH else None
        lag = None if offset in (None, -1) or end is None else end - (offset or 0)
        numbers = [NONE if each is None else str(each) for each in (epoch, offset, end, lag)]
        owner = (self.owner.member_id, self.owner.host, self.owner.client_id) if self.owner else (NONE, NONE, NONE)
        return [group_id, self.partition.topic, str(self.partition.partition), *numbers, *owner]


def _rows(admin: GroupAdmin, group: GroupDescription) -> Iterator[_Row]:
    """What members have, whoever has most first; then what nobody has and is committed."""
    commits = value_or_raise(admin.list_committed_offsets([group.group_id]), group.group_id)
    places: list[tuple[TopicPartition, MemberDescription | None]] = []
    for member in sorted(group.members, key=lambda member: -member.partition_count):
        of_member = [TopicPartition(topic, number) for topic, numbers in (member.assignment or {}).items() for number in numbers]
        places += [(partition, member) for partition in sorted(of_member)]
    owned = {partition for partition, _ in places}
    places += [(partition, None) for partition in sorted(commits) if partition not in owned]
    topics = admin.list_topics(sorted({partition.topic for partition, _ in places}))
    if any(partition.topic not in topics for partition, _ in places):
        raise ToolFailed.unknown_topic()
    logs = admin.list_log_offsets(sorted({partition for partition, _ in places})).values
    for partition, owner in places:
        log = logs.get(partition)
        yield _Row(partition, commits.get(partition), log.log_end_offset if log else None, owner)


def _is_shown(tool: Tool, group: GroupDescription, rows: int) -> bool:
    name = f"onsumer group '{group.group_id}'"
    if group.state is GroupState.DEAD:
        tool.error(f"C{name} does not exist.")
    elif group.state is GroupState.EMPTY:
        tool.warn(f"\nC{name} has no active members.")
    elif group.state.is_rebalancing:
        tool.warn(f"\nWarning: C{name} is rebalancing.")
    return group.state is not GroupState.DEAD and rows > 0


def _print_offsets(tool: Tool, group: GroupDescription, rows: Sequence[_Row], *, is_verbose: bool) -> None:
    if not _is_shown(tool, group, len(rows)):
        return
    head = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", ""]
    table = [[*head[:-1], "CLIENT-ID"], *(row.cells(group.group_id) for row in rows)]
    widest = {at: max(15, *(len(row[at]) for row in table[1:])) for at in (0, 1, 7, 8)}
    widths = [widest.get(at, 10 if at == 2 else 15) for at in range(9)]
    kept = [at for at in range(10) if is_verbose or at != 3]
    tool.table([[row[at] for at in kept] for row in table], [widths[at] for at in kept[:-1]])


def _print_members(tool: Tool, group: GroupDescription, *, is_verbose: bool) -> None:
    is_shown = _is_shown(tool, group, len(group.members))
    members = group.members
    has_instance = is_shown and any(member.group_instance_id for member in members)
    is_mixed = {member.is_classic_in_consumer_group for member in members} >= {True, False}
    rows = [["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]]
    more = [["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]]
    for member in members:
        names = [group.group_id, member.member_id, member.group_instance_id or "", member.host, member.client_id]
        rows.append([*names, str(member.partition_count)])
        now, then = assignment_text(member.assignment) or NONE, assignment_text(member.target_assignment) or NONE
        epochs = (NONE if epoch is None else str(epoch) for epoch in (member.member_epoch, group.assignment_epoch))
        more.append([next(epochs), now, next(epochs), then, str(not member.is_classic_in_consumer_group).lower()])
    widths = [_widest(rows, at, 17 if at == 2 else 15, is_shown) for at in range(5)] + [15]
    wider = [15, _widest(more, 1, 20, is_shown), 15, _widest(more, 3, 20, is_shown)]
    kept = [at for at in range(6) if has_instance or at != 2]
    tool.write("\n")
    for row, also in zip(rows, more, strict=True):
        line = "".join(f"{row[at].ljust(widths[at])} " for at in kept)
        if is_verbose:
            line += " ".join([*(cell.ljust(width) for cell, width in zip(also[:4], wider, strict=True)), *also[4:][:is_mixed]])
        tool.say(line)


def _widest(table: Sequence[Sequence[str]], at: int, least: int, is_shown: bool) -> int:
    """The width of a column, of the widest cell below its header."""
    return max([least, *(len(row[at]) for row in table[1:] if is_shown)])


def _print_state(tool: Tool, group: GroupDescription, *, is_verbose: bool) -> None:
    if not _is_shown(tool, group, 1):
        return
    at = group.coordinator
    coordinator = f"{at.host}:{at.port}  ({at.node_id})" if at else NONE
    epochs = [NONE if epoch is None else str(epoch) for epoch in (group.group_epoch, group.assignment_epoch)]
    rows: Mapping[str, str] = {
        "GROUP": group.group_id,
        "COORDINATOR (ID)": coordinator,
        "ASSIGNMENT-STRATEGY": group.assignor or NONE,
        "STATE": group.state.value,
        **({"GROUP-EPOCH": epochs[0], "TARGET-ASSIGNMENT-EPOCH": epochs[1]} if is_verbose else {}),
    }
    widths = [max(15, len(group.group_id)), max(25, len(coordinator)), 20, 20, 15, 25]
    tool.table([[*rows, "#MEMBERS"], [*rows.values(), str(len(group.members))]], widths[: len(rows)])
