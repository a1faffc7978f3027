"""Offsets of groups in ZooKeeper, copied into groups on Kafka: a reset of the Kafka groups to what the others have committed.

So it has all that a reset has: a plan, clamps to the logs, refusal of active groups, undo. What is its own: the source must be
at rest too, before and after, and everything that was written is read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.admin.client import GroupAdmin
from kgctl.admin.plan.offset_reset import FromFile, PlannedOffset, ResetResult, TopicScope, is_within
from kgctl.admin.reset import ResetPlan, ResetRequest, plan_reset
from kgctl.admin.zookeeper.nodes import RunningInstancesError
from kgctl.errors import KgctlError, NotFoundError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition

Committed = Mapping[TopicPartition, OffsetAndMetadata]
NOT_VERIFIED = "NOT_VERIFIED"


@dataclass(frozen=True, slots=True)
class Migration:
    """What is to be copied. ``names`` maps each source to its target; ``active`` are the sources with running instances."""

    names: Mapping[str, str]
    offsets: Mapping[str, Committed]
    plan: ResetPlan
    active: Mapping[str, int]

    def for_execution(self) -> ResetPlan:
        """The plan without the targets of active sources, which are errors of it."""
        refused = [RunningInstancesError(source, count) for source, count in self.active.items()]
        targets = {self.names[source] for source in self.active}
        groups = tuple(group for group in self.plan.groups if group.group_id not in targets)
        return ResetPlan(groups, (*self.plan.errors, *refused))


def plan_migration(
    source: GroupAdmin, target: GroupAdmin, names: Mapping[str, str], scopes: Sequence[TopicScope] = (), *, clamp: bool = True
) -> Migration:
    """Look at both sides and change nothing. ``names``: source -> target; ``scopes``: only these topics and partitions."""
    described = source.describe_groups(list(names))
    errors = [error.to_exception(group=group_id) for group_id, error in described.errors.items()]
    present = [name for name in names if name in described.values]
    committed = source.list_committed_offsets(present)
    errors += [error.to_exception(group=group_id) for group_id, error in committed.errors.items()]
    errors += [flaw for flaws in (described.flaws, committed.flaws) for group in flaws.values() for flaw in group]
    offsets = {name: _within(committed.values[name], scopes) for name in present if name in committed.values}
    errors += [_nothing(name) for name, commits in offsets.items() if not commits]
    wanted = {names[name]: _planned(commits) for name, commits in offsets.items() if commits}
    plan = ResetPlan(())
    if wanted:
        plan = plan_reset(target, ResetRequest(tuple(wanted), FromFile(wanted), clamp=clamp, create=True))
    active = {name: len(group.members) for name, group in described.values.items() if not group.state.is_inactive}
    return Migration(names, offsets, ResetPlan(plan.groups, (*errors, *plan.errors)), active)


def verify_migration(
    source: GroupAdmin, target: GroupAdmin, migration: Migration, done: Mapping[str, Sequence[TopicPartition]]
) -> list[KgctlError]:
    """What is not as it should be after the deed. ``done``: target -> the partitions that were written, or were right already."""
    targets = {name: migration.names[name] for name in migration.offsets if migration.names[name] in done}
    if not targets:
        return []
    problems: list[KgctlError] = []
    running = source.describe_groups(list(targets)).values
    now = source.list_committed_offsets(list(targets)).values
    there = target.list_committed_offsets(list(targets.values())).values
    planned = {(row.group_id, row.partition): row.new for row in migration.plan.rows if row.result is not ResetResult.FAILED}
    for name, to_group in targets.items():
        if name in running and not running[name].state.is_inactive:
            problems.append(RunningInstancesError(name, len(running[name].members)))
        for partition in done[to_group]:
            wanted, found = planned.get((to_group, partition)), there.get(to_group, {}).get(partition)
            if wanted is not None and (found is None or found.offset != wanted.offset):
                problems.append(_differs(to_group, partition, f"{wanted.offset} was written, {_shown(found)} is there"))
            before, after = migration.offsets[name].get(partition), now.get(name, {}).get(partition)
            if after != before:
                problems.append(_differs(name, partition, f"{_shown(before)} was copied, {_shown(after)} is committed now"))
    return problems


def _within(commits: Committed, scopes: Sequence[TopicScope]) -> Committed:
    return {partition: commit for partition, commit in commits.items() if not scopes or is_within(partition, scopes)}


def _planned(commits: Committed) -> dict[TopicPartition, PlannedOffset]:
    return {partition: PlannedOffset(commit) for partition, commit in sorted(commits.items())}


def _nothing(group: str) -> NotFoundError:
    return NotFoundError(f"group {group!r} has no committed offsets there: nothing to copy", group=group)


def _differs(group: str, partition: TopicPartition, how: str) -> KgctlError:
    message = f"group {group!r}, {partition}: {how}"
    return KgctlError(message, code=NOT_VERIFIED, group=group, topic=partition.topic, partition=partition.partition)


def _shown(commit: OffsetAndMetadata | None) -> str:
    return "no offset" if commit is None else str(commit.offset)
