"""The reports of ``describe group``: what was learnt about groups, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgctl.admin.group_view import GroupView, GroupViews, PartitionView
from kgctl.admin.plan.scope import TopicScope
from kgctl.cli.output.report import Column, Report, Row
from kgctl.errors import ExpectationError, KgctlError, NotFoundError
from kgctl.model.groups import Assignment, GroupDescription, GroupState, MemberDescription

MOST_NOTED = 5
"""Up to so many groups have notices of their own; of more, one line sums them up."""

OFFSETS = (
    Column("group"),
    Column("topic"),
    Column("partition"),
    Column("current_offset"),
    Column("log_start_offset", wide=True),
    Column("log_end_offset"),
    Column("lag"),
    Column("consumer_id"),
    Column("host"),
    Column("client_id"),
    Column("group_instance_id", wide=True),
    Column("leader_epoch", wide=True),
    Column("metadata", wide=True),
    Column("flags"),
)
MEMBERS = (
    Column("group"),
    Column("consumer_id"),
    Column("group_instance_id"),
    Column("host"),
    Column("client_id"),
    Column("partitions", "#PARTITIONS"),
    Column("assignment", wide=True),
    Column("member_epoch", wide=True),
    Column("target_assignment_epoch", wide=True),
    Column("target_assignment", wide=True),
    Column("subscribed_topics", wide=True),
    Column("rack", wide=True),
    Column("upgraded", wide=True),
)
STATE = (
    Column("group"),
    Column("coordinator"),
    Column("coordinator_id", "ID"),
    Column("assignor", "ASSIGNMENT-STRATEGY"),
    Column("state"),
    Column("type"),
    Column("protocol_type", wide=True),
    Column("group_epoch", wide=True),
    Column("target_assignment_epoch", wide=True),
    Column("members", "#MEMBERS"),
)


def offsets_report(found: GroupViews, scopes: Sequence[TopicScope], fail_if_lag_over: int | None) -> Report:
    """One row a partition; too much lag is an error of its group."""
    rows = [_offset_row(view.description, partition) for view in found.views for partition in view.partitions]
    errors: list[KgctlError] = [*found.errors]
    if scopes:
        errors += [_nothing_in_scope(view) for view in found.views if not view.partitions]
    if fail_if_lag_over is not None:
        errors += [_too_much(view, fail_if_lag_over) for view in found.views if view.total_lag > fail_if_lag_over]
    return Report(OFFSETS, rows, errors, _offset_notices(found.views), ("topic", "partition"))


def members_report(found: GroupViews) -> Report:
    """One row a member, those without partitions too."""
    rows = [_member_row(view.description, member) for view in found.views for member in view.description.members]
    noted = found.views if len(found.views) <= MOST_NOTED else ()
    notices = [line for view in noted for line in _state_notices(view.description)]
    return Report(MEMBERS, rows, found.errors, notices, ("consumer_id",), something_done=bool(found.views))


def state_report(found: GroupViews) -> Report:
    """One row a group."""
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
        "flags": view.flags,
    }


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
        "upgraded": None if member.is_classic_in_consumer_group is None else not member.is_classic_in_consumer_group,
    }


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


def _nothing_in_scope(view: GroupView) -> KgctlError:
    group_id = view.description.group_id
    return NotFoundError(f"group {group_id!r} has no offsets and no members on these topics or partitions", group=group_id)


def _too_much(view: GroupView, limit: int) -> KgctlError:
    group_id = view.description.group_id
    return ExpectationError(f"group {group_id!r}: total lag {view.total_lag} is over {limit}", group=group_id)


def _offset_notices(views: Sequence[GroupView]) -> list[str]:
    if len(views) > MOST_NOTED:
        return [f"{len(views)} groups: total lag {sum(view.total_lag for view in views)}."]
    return [line for view in views for line in (*_state_notices(view.description), *_lag_notices(view))]


def _state_notices(description: GroupDescription) -> Iterator[str]:
    group_id, state = description.group_id, description.state
    if state.is_rebalancing:
        yield f"Group {group_id!r} is rebalancing ({state.value}): members and assignment will change."
    elif state is GroupState.EMPTY:
        yield f"Group {group_id!r} has no active members."


def _lag_notices(view: GroupView) -> Iterator[str]:
    group_id, rows = view.description.group_id, [partition.lag for partition in view.partitions]
    if not rows:
        yield f"Group {group_id!r} has no committed offsets."
        return
    without = sum(row.current_offset is None for row in rows)
    unread = f", {without} of them without a commit" if without else ""
    yield f"Group {group_id!r}: total lag {view.total_lag} in {len(rows)} partition{'s' if len(rows) > 1 else ''}{unread}."
    idle = sum(member.assignment is not None and not member.partition_count for member in view.description.members)
    if idle:
        yield f"Group {group_id!r}: {idle} of {len(view.description.members)} members own no partition (see --members)."
