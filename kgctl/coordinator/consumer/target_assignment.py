"""The target assignment: what each member of a group should own, computed by the group's assignor.

Kafka: GroupMetadataManager#maybeUpdateTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count, repeat
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from kgctl.assignors.partition_space import java_text_key
from kgctl.assignors.range import ServerRangeAssignor
from kgctl.assignors.spec import AssignorError, Move, Target, TargetAssignor, TargetMember, TargetSpec
from kgctl.assignors.target_order import CopiedTarget, capacity_for, have_same_partitions, unmoved_target
from kgctl.assignors.uniform import UniformAssignor
from kgctl.coordinator.consumer.group import ConsumerGroup, HeartbeatContext
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.records import target_metadata_record, target_record
from kgctl.coordinator.modern.member import NO_TARGET, Refusal
from kgctl.coordinator.modern.topics import Subscriptions
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.values import (
    bucket,
    copied_map_capacity,
    copied_set_capacity,
    frozen_in_order,
    grown_capacity,
    hash_map_order,
    integer_hash,
    power_of_two_at_least,
    string_hash,
    uuid_hash,
)


def moved_targets(spec: TargetSpec, moves: Iterable[Move]) -> Callable[[int], dict[UUID, Sequence[int]]]:
    """The target of a member, by its number in ``spec``, in the order of Java's maps."""
    ids = list(spec.topics)
    subscribers = Counter(topic_id for member in spec.members for topic_id in member.topic_ids)
    steps: dict[int, list[tuple[UUID, int, bool]]] = {}
    for giver, receiver, topic, partition in moves:
        steps.setdefault(giver, []).append((ids[topic], partition, False))
        steps.setdefault(receiver, []).append((ids[topic], partition, True))

    def target(number: int) -> dict[UUID, Sequence[int]]:
        member = spec.members[number]
        subscribed = frozenset(member.topic_ids)
        if number not in steps and subscribed.issuperset(member.target):
            return unmoved_target(member.target)
        topics = CopiedTarget(member.target)
        topics.remove_others(subscribed)
        for topic_id, partition, is_added in steps.get(number, ()):
            if is_added:
                rounded_up = -(-spec.topics[topic_id] // subscribers[topic_id])
                topics.add(topic_id, partition, capacity_for(rounded_up))
            else:
                topics.remove(topic_id, partition)
        return topics.ordered()

    return target


def range_order(target: Target, topic_count: int) -> dict[UUID, Sequence[int]]:
    """As the range assignor collects it: a map made for the member's topics, runs of partitions."""
    capacity = grown_capacity(len(target), capacity_for(topic_count))
    return {topic: target[topic] for topic in hash_map_order(target, capacity=capacity, hash_of=uuid_hash)}


@frozen_in_order
class UniformOrder:
    """As the uniform assignor collects it for a homogeneous group: a copy of the target before, changed.

    ``ranks``: the order in which the assignor goes through the topics.
    """

    ranks: Mapping[UUID, int]
    owned: Callable[[], Mapping[UUID, Mapping[int, int]]]
    """Topic -> the partitions that were in somebody's target before, with their rank among what members may have to give."""

    def __call__(self, target: Target, before: Target) -> dict[UUID, Sequence[int]]:
        """Return ``target`` in the order of Java's maps."""
        if have_same_partitions(target, before):
            return unmoved_target(before)
        kept = [topic for topic in hash_map_order(before, hash_of=uuid_hash) if topic in target]
        fresh: dict[UUID, None] = {}
        capacity = grown_capacity(len(before), power_of_two_at_least(len(before)))
        # computeIfAbsent, once a partition, looks first whether the table is full, and puts a new topic in front of its bucket.
        for topic in self._additions(target, before):
            if len(kept) + len(fresh) > capacity * 3 // 4:
                capacity *= 2
            if topic not in before:
                fresh[topic] = None
        order = hash_map_order([*reversed(fresh), *kept], capacity=capacity, hash_of=uuid_hash)
        return {topic: _partitions(target[topic], before.get(topic, ())) for topic in order}

    def _additions(self, target: Target, before: Target) -> Iterator[UUID]:
        """The topics of the partitions that are new, as they are added one by one.

        First those that nobody had, topic by topic. Then those that members had to give, in the order of these members, and of
        the topics in the map of each.
        """
        if len(target) == 1:
            (topic,) = target
            yield from repeat(topic, len(frozenset(target[topic]).difference(before.get(topic, ()))))
            return
        given: list[tuple[int, UUID]] = []
        everybodys = self.owned()
        for topic in sorted(target, key=self.ranks.__getitem__):
            known, owned = frozenset(before.get(topic, ())), everybodys.get(topic, {})
            for number in target[topic]:
                if number not in known:
                    if number not in owned:
                        yield topic
                    else:
                        given.append((owned[number], topic))
        given.sort(key=itemgetter(0))
        yield from map(itemgetter(1), given)


def _partitions(numbers: Sequence[int], before: Sequence[int]) -> Sequence[int]:
    initial = copied_set_capacity(len(before)) if before else 16
    return hash_map_order(numbers, capacity=grown_capacity(len(numbers), initial), hash_of=integer_hash)


ASSIGNORS: dict[str, TargetAssignor] = {"uniform": UniformAssignor(), "range": ServerRangeAssignor()}
"""By the names of ``group.consumer.assignors``."""
Order = Callable[[int, Target], Target]


class MemberTarget(NamedTuple):
    """What the heartbeating member should own, and the assignment epoch that this belongs to."""

    assignment_epoch: int
    target: Target


def update_target(shard: Shard, change: HeartbeatContext, subscriptions: Subscriptions) -> MemberTarget:
    """Compute a new target if the group epoch is ahead of it and the assignment interval is over; else the last one stays."""
    group, old, new, records = change.group, change.old, change.new, change.records
    last = MemberTarget(group.assignment_epoch, group.target_of(new.member_id, new.instance_id))
    # KIP-848: one target for each group epoch, computed by whichever heartbeat first finds the epoch ahead of it.
    interval_ms = shard.group_config(group.group_id).consumer_assignment_interval_ms
    if group.assignment_epoch >= subscriptions.group_epoch or not group.may_compute_target(interval_ms, shard.now_ms):
        return last
    assignor = ASSIGNORS.get(preferred_assignor(shard, group, old, new))
    # With the sender as its request has it: its records are not written yet (TargetAssignmentBuilder#addOrUpdateMember).
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
    records.append(target_metadata_record(group.group_id, subscriptions.group_epoch, _made_ms(shard)))
    if new.member_id not in changed:
        # It goes on with what the assignor made, be it the same partitions in another order.
        number = next(number for number, member in enumerate(spec.members) if member.member_id == new.member_id)
        changed[new.member_id] = order(number, assigned.get(new.member_id, NO_TARGET))
    return MemberTarget(subscriptions.group_epoch, changed[new.member_id])


def _made_ms(shard: Shard) -> int:
    return shard.now_ms if shard.config.profile.has_assignment_interval else 0


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
    replaced = group.static_members.get(new.instance_id) if new.instance_id is not None else None
    members = group.members_with(new).items()
    return {member_id: member for member_id, member in members if member_id == new.member_id or member_id != replaced}


def _spec(shard: Shard, group: ConsumerGroup, members: Mapping[str, ConsumerMember], subscriptions: Subscriptions) -> TargetSpec:
    image = shard.image
    known: dict[tuple[tuple[str, ...], str | None], Sequence[UUID]] = {}
    targets = []
    for member in members.values():
        wanted = (member.subscribed_topics, member.subscribed_regex)
        topic_ids = known.get(wanted)
        if topic_ids is None:
            topic_ids = known[wanted] = subscribed_topic_ids(group, member, image)
        targets.append(
            TargetMember(member.member_id, topic_ids, _target_before(group, member), member.instance_id, member.rack_id)
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
    """Return the ids of those topics of the subscription that exist."""
    return [image.topics[name].topic_id for name in subscribed_names(group, member) if name in image.topics]


def _changed(group: ConsumerGroup, spec: TargetSpec, assigned: Mapping[str, Target], order: Order) -> dict[str, Target]:
    """The targets of the members that have another one now or had none, in the order of the members and of Java's maps."""
    changed: dict[str, Target] = {}
    for number, member in enumerate(spec.members):
        target = assigned.get(member.member_id, NO_TARGET)
        if not group.has_target(member.member_id, target):
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
    return UniformOrder({topic_id: rank for rank, topic_id in enumerate(topics)}, cache(partial(_owned_before, spec)))


def _owned_before(spec: TargetSpec) -> dict[UUID, dict[int, int]]:
    owned: dict[UUID, dict[int, int]] = {}
    ranks = count()
    for member in spec.members:
        for topic_id in hash_map_order(member.target, hash_of=uuid_hash):
            owned.setdefault(topic_id, {}).update(dict.fromkeys(member.target[topic_id], next(ranks)))
    return owned
