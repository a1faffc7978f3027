"""Groups of a cluster that a simulation begins with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kgctl.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.cli.session import Session
    from kgctl.model.groups import GroupDescription, TopicPartition
    from kgctl.simulate.scenario.observed import Observed

SAMPLE_S = 5.0
"""So long is the traffic of the group of ``group: {from: live:GROUP}`` looked at."""


def group_with_members(admin: GroupAdmin, group_id: str, purpose: str) -> GroupDescription:
    """The group as it is now. ``purpose``: what its members are needed for, in words.

    Raises:
        NotFoundError: there is no such group. UsageError: it has no members. KgctlError: the cluster does not tell.
    """
    from kgctl.model.groups import GroupState

    described = admin.describe_groups([group_id])
    if group_id in described.errors:
        raise described.errors[group_id].to_exception(group=group_id)
    group = described.values[group_id]
    if group.state is GroupState.DEAD:
        raise NotFoundError(f"group {group_id!r} does not exist", group=group_id)
    if not group.members:
        raise UsageError(f"group {group_id!r} has no members {purpose}", group=group_id)
    return group


def observed(session: Session, group_id: str, sample_s: float) -> Observed:
    """Return a group of the cluster as it is, and the rates of two looks at its offsets, ``sample_s`` apart; 0: no rates.

    Raises:
        NotFoundError, UsageError: there is no such group, or nothing to learn from it. KgctlError: the cluster does not tell.
    """
    from kgctl.simulate.scenario.observed import Observed

    with session.connect() as admin:
        group = group_with_members(admin, group_id, "to write a scenario about")
        topics = _topics(admin, group)
        first, lag = _positions(admin, group_id, topics)
        if not sample_s:
            return Observed(group=group, topics=topics, lag=lag)
        session.notice(f"watching the offsets of {len(first)} partitions for {sample_s:g}s")
        began = time.monotonic()
        time.sleep(sample_s)
        second, lag = _positions(admin, group_id, topics)
        passed_s = time.monotonic() - began
    written = dict.fromkeys(topics, 0.0)
    processed = 0.0
    for partition, (end, committed) in second.items():
        end_before, committed_before = first.get(partition, (end, committed))
        written[partition.topic] += max(end - end_before, 0) / passed_s
        if committed is not None and committed_before is not None:
            processed += max(committed - committed_before, 0) / passed_s
    return Observed(group=group, topics=topics, written=written, processed=processed or None, lag=lag)


def _topics(admin: GroupAdmin, group: GroupDescription) -> dict[str, int]:
    """The topics that members subscribe to or own, with their partitions."""
    names: dict[str, None] = {}
    for member in group.members:
        names.update(dict.fromkeys(member.subscribed_topics or ()))
        names.update(dict.fromkeys(member.assignment or ()))
    found = dict(admin.list_topics(list(names))) if names else {}
    if not found:
        raise UsageError(f"none of the topics of group {group.group_id!r} exists", group=group.group_id)
    return found


def _positions(
    admin: GroupAdmin, group_id: str, topics: dict[str, int]
) -> tuple[dict[TopicPartition, tuple[int, int | None]], int | None]:
    """Log end and commit of each partition, and the lag where all of it is known."""
    from kgctl.model.groups import TopicPartition

    partitions = [TopicPartition(topic, number) for topic, count in sorted(topics.items()) for number in range(count)]
    logs = admin.list_log_offsets(partitions).values
    committed = admin.list_committed_offsets([group_id]).values.get(group_id, {})
    found: dict[TopicPartition, tuple[int, int | None]] = {}
    lag = 0
    for partition in partitions:
        log = logs.get(partition)
        if log is None or log.log_end_offset is None:
            continue
        offset = committed[partition].offset if partition in committed and committed[partition].offset >= 0 else None
        found[partition] = (log.log_end_offset, offset)
        lag += log.log_end_offset - offset if offset is not None else 0
    return found, lag
