"""The target assignment: what each member of a group should own, computed by the group's assignor.

Kafka: GroupMetadataManager#maybeUpdateTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from uuid import UUID

from kgctl.assignors.partition_space import java_text_key
from kgctl.assignors.server.range import ServerRangeAssignor
from kgctl.assignors.server.spec import Move, TargetAssignor, TargetMember, TargetSpec
from kgctl.assignors.server.uniform import UniformAssignor
from kgctl.assignors.spec import AssignorError
from kgctl.coordinator.consumer.assignment.subscription import Subscriptions
from kgctl.coordinator.consumer.assignment.target_moves import moved_targets
from kgctl.coordinator.consumer.assignment.target_order import UniformOrder, have_same_partitions, range_order
from kgctl.coordinator.consumer.change import Change
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import NO_TARGET, ConsumerMember, Target
from kgctl.coordinator.consumer.records import target_metadata_record, target_record
from kgctl.coordinator.consumer.refusal import Refusal
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.java_order import (
    bucket,
    copied_map_capacity,
    copied_set_capacity,
    hash_map_order,
    string_hash,
    uuid_hash,
)
from kgctl.model.partitions import MetadataImage

ASSIGNORS: dict[str, TargetAssignor] = {"uniform": UniformAssignor(), "range": ServerRangeAssignor()}
"""By the names of ``group.consumer.assignors``."""
Order = Callable[[int, Target], Target]


class MemberTarget(NamedTuple):
    """What the heartbeating member should own, and the assignment epoch that this belongs to."""

    assignment_epoch: int
    target: Target


def update_target(shard: Shard, change: Change, subscriptions: Subscriptions) -> MemberTarget:
    """Compute a new target if the group epoch is ahead of it and the assignment interval is over; else the last one stays."""
    group, old, new, records = change.group, change.old, change.new, change.records
    last = MemberTarget(group.assignment_epoch, group.target_of(new.member_id, new.instance_id))
    if group.assignment_epoch >= subscriptions.group_epoch or not _may_compute(shard, group):
        return last
    assignor = ASSIGNORS.get(preferred_assignor(shard, group, old, new))
    members = _members(group, new)
    moves: list[Move] = []
    try:
        if assignor is None:
            raise AssignorError("there is no such assignor")
        spec = _spec(shard, group, members, subscriptions)
        if spec.is_homogeneous and isinstance(assignor, ServerRangeAssignor):
            spec = replace(spec, members=_as_the_first(spec.members))
        assigned = assignor.assign_targets(spec, moves)
    except (AssignorError, IndexError) as error:
        # An index is out of range where a leader of the classic protocol has given out partitions that do not exist. Kafka's
        # assignor fails in the same way.
        message = f"Failed to compute a new target assignment for epoch {subscriptions.group_epoch}: {error}"
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
    order = _order(group, spec, members, moves, runs=isinstance(assignor, ServerRangeAssignor))
    changed = _changed(group, spec, assigned, order)
    for member_id, target in changed.items():
        records.append(target_record(group.group_id, member_id, target))
    records.append(target_metadata_record(group.group_id, subscriptions.group_epoch, shard.now_ms))
    if new.member_id not in changed:
        # It goes on with what the assignor made, be it the same partitions in another order.
        number = next(number for number, member in enumerate(spec.members) if member.member_id == new.member_id)
        changed[new.member_id] = order(number, assigned.get(new.member_id, NO_TARGET))
    return MemberTarget(subscriptions.group_epoch, changed[new.member_id])


def _may_compute(shard: Shard, group: ConsumerGroup) -> bool:
    """The interval between two targets keeps a burst of joins from making one target each (new in Kafka 4.3)."""
    interval_ms = shard.group_config(group.group_id).consumer_assignment_interval_ms
    last_ms = group.assignment_timestamp_ms
    return last_ms == 0 or interval_ms == 0 or shard.now_ms >= last_ms + interval_ms


def preferred_assignor(shard: Shard, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> str:
    """The assignor that most members ask for; without a wish, the first one configured.

    Ties as in Kafka: the first in a HashMap copied from the counts, in which a name that ``new`` brings in stands in front of its
    bucket.
    """
    counts = dict(group.assignor_counts)
    names = group.assignor_counts.java_order()
    capacity = copied_map_capacity(len(names))
    for member, by in ((old, -1), (new, 1)):
        name = member.server_assignor
        if name is not None:
            if counts.get(name, 0) == 0:
                names.insert(0, name)
            counts[name] = counts.get(name, 0) + by
            if counts[name] <= 0:
                names.remove(name)
                del counts[name]
    names.sort(key=lambda name: bucket(string_hash(name), capacity))
    return max(names, key=counts.__getitem__, default=shard.config.group_consumer_assignors[0])


def described_assignor(shard: Shard, group: ConsumerGroup) -> str:
    """The assignor that most members ask for, as ConsumerGroupDescribe says it."""
    names = group.assignor_counts.java_order()
    return max(names, key=group.assignor_counts.__getitem__, default=shard.config.group_consumer_assignors[0])


def _members(group: ConsumerGroup, new: ConsumerMember) -> dict[str, ConsumerMember]:
    """All members with ``new``, without the one whose instance id it takes over, in the order of Kafka's HashMap of them."""
    members = {member_id: group.members[member_id] for member_id in group.members.java_order()}
    members[new.member_id] = new
    order = hash_map_order(members)
    replaced = group.static_members.get(new.instance_id) if new.instance_id is not None else None
    return {member_id: members[member_id] for member_id in order if member_id == new.member_id or member_id != replaced}


def _spec(shard: Shard, group: ConsumerGroup, members: Mapping[str, ConsumerMember], subscriptions: Subscriptions) -> TargetSpec:
    image = shard.image
    known: dict[tuple[tuple[str, ...], str | None], Sequence[UUID]] = {}
    targets = []
    for member in members.values():
        wanted = (member.subscribed_topics, member.regex)
        if wanted not in known:
            known[wanted] = subscribed_topic_ids(group, member, image)
        targets.append(
            TargetMember(member.member_id, known[wanted], _target_before(group, member), member.instance_id, member.rack_id)
        )
    first = next(iter(members.values()))
    return TargetSpec(
        targets,
        {topic.topic_id: topic.partition_count for topic in image.topics.values()},
        subscriptions.is_homogeneous,
        len(subscribed_names(group, first)),
    )


def _as_the_first(targets: Sequence[TargetMember]) -> Sequence[TargetMember]:
    """All members with the topics of the first one in the range assignor's order, as it reads those of a homogeneous group.

    Only a member whose expression is not resolved yet can differ from the rest of such a group.
    """
    if all(target.topic_ids == targets[0].topic_ids for target in targets):
        return targets
    first = min(targets, key=lambda target: (target.instance_id is None, java_text_key(target.instance_id or target.member_id)))
    return [replace(target, topic_ids=first.topic_ids) for target in targets]


def _target_before(group: ConsumerGroup, member: ConsumerMember) -> Target:
    """Its own target, or for a static member that replaces another the target of that one."""
    holder = group.static_members.get(member.instance_id) if member.instance_id is not None else None
    return group.targets.get(holder or member.member_id, NO_TARGET)


def subscribed_names(group: ConsumerGroup, member: ConsumerMember) -> Sequence[str]:
    """The topics a member subscribes to, by name or by an expression that has been resolved, in Kafka's order."""
    resolved = None if member.regex is None else group.resolved_regexes.get(member.regex)
    if resolved is None or not resolved.topics:
        return member.subscribed_topics
    if not member.subscribed_topics:
        return resolved.topics
    larger, smaller = member.subscribed_topics, resolved.topics
    if len(larger) <= len(smaller):
        larger, smaller = smaller, larger
    return [*larger, *(name for name in smaller if name not in larger)]


def subscribed_topic_ids(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> list[UUID]:
    """Those of its topics that exist."""
    return [image.topics[name].topic_id for name in subscribed_names(group, member) if name in image.topics]


def _changed(group: ConsumerGroup, spec: TargetSpec, assigned: Mapping[str, Target], order: Order) -> dict[str, Target]:
    """The targets of the members that have another one now or had none, in the order of the members and of Java's maps."""
    changed: dict[str, Target] = {}
    for number, member in enumerate(spec.members):
        target, recorded = assigned.get(member.member_id, NO_TARGET), group.targets.get(member.member_id)
        if recorded is None or not have_same_partitions(target, recorded):
            changed[member.member_id] = order(number, target)
    return changed


def _order(
    group: ConsumerGroup, spec: TargetSpec, members: Mapping[str, ConsumerMember], moves: Sequence[Move], *, runs: bool
) -> Order:
    """How the assignor orders the target of a member, given by its number in ``spec``."""
    if runs:
        return partial(_order_of_runs, group, spec, members)
    if not spec.is_homogeneous:
        moved = moved_targets(spec, moves)
        return lambda number, _: moved(number)
    uniform = _uniform_order(spec)
    return lambda number, target: uniform(target, spec.members[number].target)


def _order_of_runs(
    group: ConsumerGroup, spec: TargetSpec, members: Mapping[str, ConsumerMember], number: int, target: Target
) -> Target:
    """For a homogeneous group Kafka counts the topics that exist, for others also those that do not."""
    member = spec.members[number]
    topics = member.topic_ids if spec.is_homogeneous else subscribed_names(group, members[member.member_id])
    return range_order(target, len(topics))


def _uniform_order(spec: TargetSpec) -> UniformOrder:
    first = spec.members[0].topic_ids
    names = len(first) if spec.subscribed_names is None else spec.subscribed_names
    topics = hash_map_order(first, capacity=copied_set_capacity(names), hash_of=uuid_hash)
    return UniformOrder({topic_id: rank for rank, topic_id in enumerate(topics)}, _owned_before(spec))


def _owned_before(spec: TargetSpec) -> dict[UUID, set[int]]:
    owned: dict[UUID, set[int]] = {}
    for member in spec.members:
        for topic_id, numbers in member.target.items():
            owned.setdefault(topic_id, set()).update(numbers)
    return owned
