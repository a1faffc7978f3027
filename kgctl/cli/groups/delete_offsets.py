"""``kgctl delete-offsets``."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kgctl.admin.client import GroupAdmin
from kgctl.admin.plan.scope import TopicScope, parse_topic_scopes
from kgctl.cli.options import GroupArguments, GroupOptions, TopicOptions, Yes, merged_groups
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.output.result_rows import result_report
from kgctl.cli.selection import confirm
from kgctl.cli.session import session_of
from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.model.partitions import NO_OFFSET, TopicPartition

COLUMNS = (Column("group"), Column("topic"), Column("partition"))
EPILOG = "Example: kgctl delete-offsets payments --topic orders:0,2-5 --yes"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(delete_offsets)


def delete_offsets(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    topic: TopicOptions = None,
    yes: Yes = False,
) -> Report:
    """Delete a group's committed offsets on topics or partitions. Asks first, unless --yes.

    Works on an active group too, for topics that none of its members reads; partitions of the others fail, each named. A
    partition that is named and has no commit fails as not found.
    """
    group_ids = merged_groups(groups, group)
    if len(group_ids) != 1 or not group_ids[0]:
        raise UsageError("give exactly one group")
    scopes = parse_topic_scopes(topic or ())
    if not scopes:
        raise UsageError("no scope given: use --topic TOPIC or --topic TOPIC:0,2-5")
    group_id, session = group_ids[0], session_of(ctx)
    with session.connect() as admin:
        committed, uncommitted = _wanted(admin, group_id, scopes)
        if committed:
            confirm(session, f"Delete {len(committed)} committed offsets of {group_id!r} ({_named(committed)})?", yes=yes)
        errors = admin.delete_offsets(group_id, committed).errors if committed else {}
    failures: dict[TopicPartition, KgctlError] = {
        **{partition: _not_committed(group_id, partition) for partition in uncommitted},
        **{partition: error.to_exception(group=group_id, partition=partition) for partition, error in errors.items()},
    }
    rows: list[tuple[Row, KgctlError | None]] = [
        ({"group": group_id, "topic": partition.topic, "partition": partition.partition}, failures.get(partition))
        for partition in sorted([*committed, *uncommitted])
    ]
    return result_report(COLUMNS, rows, "deleted", ("topic", "partition"))


def _wanted(admin: GroupAdmin, group_id: str, scopes: Sequence[TopicScope]) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """The partitions meant that have a commit, and those named that have none.

    Raises:
        KgctlError: the group, a topic or a partition does not exist, or the group has nothing on a topic.
    """
    for asked in (admin.describe_groups([group_id]), offsets := admin.list_committed_offsets([group_id])):
        if error := asked.errors.get(group_id):
            raise error.to_exception(group=group_id)
    commits = offsets.values[group_id]
    committed = {partition for partition, commit in commits.items() if commit.offset != NO_OFFSET}
    counts = admin.list_topics([scope.topic for scope in scopes])
    wanted: set[TopicPartition] = set()
    for scope in scopes:
        found = {partition for partition in committed if partition in scope}
        if scope.topic in counts and scope.ranges is not None:
            found.update(scope.resolve(counts[scope.topic]))
        if not found:
            raise NotFoundError(
                f"group {group_id!r} has no committed offsets on {scope.topic!r}", group=group_id, topic=scope.topic
            )
        wanted |= found
    return sorted(wanted & committed), sorted(wanted - committed)


def _not_committed(group_id: str, partition: TopicPartition) -> KgctlError:
    return NotFoundError(
        f"group {group_id!r} has no committed offset on {partition}",
        group=group_id,
        topic=partition.topic,
        partition=partition.partition,
    )


def _named(partitions: Sequence[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:10]))
    return shown if len(partitions) <= 10 else f"{shown} and {len(partitions) - 10} more"
