"""Reconciliation: how a member gets from what it owns to its target, one heartbeat at a time.

Nothing is handed out before its old owner has given it up or is fenced. So a member first gives up what its target lacks
(UNREVOKED_PARTITIONS, still at its old epoch), then goes to the target's epoch and takes what is free; what is not yet free
keeps it in UNRELEASED_PARTITIONS. A partition keeps the epoch at which the member got it, so that a commit made with that epoch
still counts after the member has gone on (KIP-1251). Topics that the member no longer subscribes to count as absent from its
target, whatever the target says. Kafka: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from kgctl.assignors.spec import Target
from kgctl.coordinator.consumer.member import (
    MEMBER_RULES,
    NOTHING,
    ConsumerMember,
    PartitionForm,
    Partitions,
    ReconciliationStep,
    RecordedPartitions,
)
from kgctl.coordinator.modern.member import MemberState, Refusal
from kgctl.coordinator.profile import Profile
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicMetadata
from kgctl.model.values import (
    copied_map_capacity,
    copied_map_order,
    copied_set_capacity,
    copied_set_order,
    frozen_in_order,
    grown_capacity,
    hash_map_order,
    integer_hash,
    uuid_hash,
)

OwnedPartitions = Sequence[tuple[UUID, Sequence[int]]]
PartitionEpoch = Callable[[UUID, int], int]
_FREE = -1
_NEVER = -1
"""The epoch before its first of a member that has just come."""
_NONE_OWNED: Mapping[int, int] = {}


@frozen_in_order
class Reconciliation:
    """One member's way towards ``target``, the target of ``assignment_epoch``.

    ``owned``: what the member says it has, None if it does not say. ``names``: its topics, of which those of ``topics`` exist.
    """

    member: ConsumerMember
    assignment_epoch: int
    target: Target
    subscription_changed: bool
    owned: OwnedPartitions | None
    names: Sequence[str]
    topics: Mapping[str, TopicMetadata]
    partition_epoch: PartitionEpoch
    form: PartitionForm
    profile: Profile

    def subscribed(self) -> Container[UUID]:
        """Return the ids of the member's topics that exist."""
        if not self.profile.follows_subscriptions:
            return _EVERY_TOPIC
        return frozenset([self.topics[name].topic_id for name in self.names if name in self.topics])


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


_EVERY_TOPIC = _Everything()


def reconcile(facts: Reconciliation) -> ConsumerMember:
    """Return the member after this heartbeat; the same object when nothing changes. Raises `Refusal` for one in an unknown state.

    Kafka: CurrentAssignmentBuilder#build.
    """
    member = facts.member
    # A state that a younger broker wrote: only a member that says it owns nothing can start from here.
    if member.state is MemberState.UNKNOWN:
        if facts.owned is None or facts.owned:
            message = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
            raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)
        return _compute_next(facts, facts.assignment_epoch)
    step = _step(facts)
    if step is ReconciliationStep.COMPUTE_NEXT:
        is_free = member.state is MemberState.UNREVOKED_PARTITIONS and not facts.profile.keeps_epoch_while_revoking
        return _compute_next(facts, member.member_epoch + is_free)
    return _trim(facts) if step is ReconciliationStep.TRIM else member


def _step(facts: Reconciliation) -> ReconciliationStep:
    member, rules = facts.member, MEMBER_RULES[facts.member.state]
    # Nobody gets a partition before the one who has it says that it is given up, or its rebalance timeout is over (KIP-848).
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(facts.owned, member.pending_revocation):
        return rules.changed_holding if facts.subscription_changed else rules.holding
    if member.member_epoch == facts.assignment_epoch:
        return rules.changed_at_target if facts.subscription_changed else rules.at_target
    return rules.behind


def _still_owns(owned: OwnedPartitions | None, partitions: Partitions) -> bool:
    """Return whether the member has one of these, by its own word; without its word it counts as having them."""
    if owned is None:
        return True
    return any(number in partitions[topic_id] for topic_id, numbers in owned if topic_id in partitions for number in numbers)


def _trim(facts: Reconciliation) -> ConsumerMember:
    """Take topics away that the member no longer subscribes to; no new target is looked at.

    Kafka: CurrentAssignmentBuilder#updateCurrentAssignment.
    """
    member = facts.member
    # Java compares identities, and the empty map of a member that has just come is the one that stands for no topics.
    nothing_left = not facts.names and not member.pending_revocation and member.previous_member_epoch != _NEVER
    subscribed = facts.subscribed()
    dropped = [topic_id for topic_id in member.assigned if topic_id not in subscribed]
    if not dropped and not nothing_left:
        return member
    copied = copied_map_order(member.assigned, hash_of=uuid_hash)
    kept = {topic_id: member.assigned[topic_id] for topic_id in copied if topic_id in subscribed}
    revoked = member.assigned if nothing_left else _merged(facts, dropped)
    previous = member.member_epoch if facts.form.with_epochs else member.previous_member_epoch
    if revoked and _still_owns(facts.owned, revoked):
        state = MemberState.UNREVOKED_PARTITIONS
        return replace(member, previous_member_epoch=previous, state=state, assigned=kept, pending_revocation=revoked)
    return replace(member, previous_member_epoch=previous, assigned=kept)


def _merged(facts: Reconciliation, dropped: Sequence[UUID]) -> Partitions:
    """What was to be revoked and the topics dropped now, as a HashMap copied from the one and changed with merge."""
    pending, assigned = facts.member.pending_revocation, facts.member.assigned
    revoked, capacity = dict(pending), copied_map_capacity(len(pending))
    for topic_id in dropped:
        # merge looks first whether the table is full, also for a topic that is there already.
        if len(revoked) > capacity * 3 // 4:
            capacity *= 2
        before = pending.get(topic_id)
        revoked[topic_id] = assigned[topic_id] if before is None else _with_all(facts.form, before, assigned[topic_id])
    fresh = [topic_id for topic_id in dropped if topic_id not in pending]
    order = hash_map_order([*reversed(fresh), *pending], capacity=capacity, hash_of=uuid_hash)
    return {topic_id: revoked[topic_id] for topic_id in order}


def _with_all(form: PartitionForm, partitions: Mapping[int, int], others: Mapping[int, int]) -> Mapping[int, int]:
    """A HashMap copied from the one, with all of the others put into it."""
    both = {**partitions, **others}
    capacity = grown_capacity(len(both), form.copied_capacity(len(partitions)))
    return {number: both[number] for number in hash_map_order(both, capacity=capacity, hash_of=integer_hash)}


def _ordered(partitions: Mapping[UUID, Mapping[int, int]]) -> Partitions:
    return {topic_id: partitions[topic_id] for topic_id in hash_map_order(partitions, hash_of=uuid_hash)}


@dataclass(slots=True)
class _Split:
    """What happens to a member's partitions; ``waits``: something that it should get is not free."""

    kept: dict[UUID, Mapping[int, int]] = field(default_factory=dict)
    revoked: dict[UUID, Mapping[int, int]] = field(default_factory=dict)
    added: dict[UUID, Sequence[int]] = field(default_factory=dict)
    waits: bool = False


def _compute_next(facts: Reconciliation, base_epoch: int) -> ConsumerMember:
    member = facts.member
    kept = _all_kept(facts)
    if kept is not None:
        return member.moved(facts.assignment_epoch, member.member_epoch, MemberState.STABLE, kept, NOTHING)
    # First give up, then advance, then receive: the epoch grows only when everything to be revoked is revoked, so that commits of
    # what is still owned stay valid meanwhile.
    split = _split(facts)
    if split.revoked and _still_owns(facts.owned, split.revoked):
        return member.moved(
            base_epoch,
            member.member_epoch,
            MemberState.UNREVOKED_PARTITIONS,
            _ordered(split.kept),
            _ordered(split.revoked),
        )
    return member.moved(
        facts.assignment_epoch,
        member.member_epoch,
        MemberState.UNRELEASED_PARTITIONS if split.waits else MemberState.STABLE,
        _with_added(facts, split),
        NOTHING,
    )


def _all_kept(facts: Reconciliation) -> Partitions | None:
    """What a member of one topic keeps whose target is what it has: the same as without this, and most heartbeats come here."""
    assigned = facts.member.assigned
    if len(assigned) != 1 or len(facts.target) != 1 or facts.member.pending_revocation:
        return None
    if type(assigned) is RecordedPartitions:
        target, names, topics = assigned.kept_for
        if target is facts.target and names is facts.names and topics is facts.topics:
            return assigned
    topic_id, owned = next(iter(assigned.items()))
    wanted = facts.target.get(topic_id, ())
    if len(owned) != len(wanted) or topic_id not in facts.subscribed() or not all(map(owned.__contains__, wanted)):
        return None
    copied = facts.form.copied_order(owned, hash_of=integer_hash)
    if copied != list(owned):
        return {topic_id: {number: owned[number] for number in copied}}
    if type(assigned) is RecordedPartitions:
        assigned.kept_for = (facts.target, facts.names, facts.topics)
    return assigned


def _split(facts: Reconciliation) -> _Split:
    split, assigned, subscribed = _Split(), facts.member.assigned, facts.subscribed()
    for topic_id in _topics(facts.target, assigned):
        target = facts.target.get(topic_id, ()) if topic_id in subscribed else ()
        _split_topic(facts, split, topic_id, target)
    return split


def _split_topic(facts: Reconciliation, split: _Split, topic_id: UUID, target: Sequence[int]) -> None:
    owned = facts.member.assigned.get(topic_id, _NONE_OWNED)
    copied = facts.form.copied_order(owned, hash_of=integer_hash)
    pending = facts.member.pending_revocation.get(topic_id, _NONE_OWNED)
    wanted = frozenset(target)
    kept = {number: owned[number] for number in copied if number in wanted}
    revoked = {number: owned[number] for number in copied if number not in wanted}
    added = []
    for number in copied_set_order(target, hash_of=integer_hash):
        if number in owned:
            continue
        # What the member was about to give up is its own still; everything else has to be free.
        if facts.partition_epoch(topic_id, number) == _FREE or (number in pending and facts.profile.takes_back_revocations):
            added.append(number)
        else:
            split.waits = True
    for part, found in ((split.kept, kept), (split.revoked, revoked)):
        if found:
            part[topic_id] = found
    if added:
        split.added[topic_id] = added


def _topics(target: Target, assigned: Partitions) -> list[UUID]:
    """All topics of both, in the order of a HashSet made of the one and then the other."""
    names = dict.fromkeys((*target, *assigned))
    capacity = grown_capacity(len(names), copied_set_capacity(len(target)))
    return hash_map_order(names, capacity=capacity, hash_of=uuid_hash)


def _with_added(facts: Reconciliation, split: _Split) -> Partitions:
    if not split.added:
        return _ordered(split.kept)
    assigned: dict[UUID, Mapping[int, int]] = dict(split.kept)
    fresh = [topic_id for topic_id in hash_map_order(split.added, hash_of=uuid_hash) if topic_id not in assigned]
    for topic_id, numbers in split.added.items():
        assigned[topic_id] = _grow(facts, topic_id, assigned.get(topic_id, _NONE_OWNED), numbers)
    # New topics come in by computeIfAbsent: each goes in front of its bucket.
    order: Iterable[UUID] = (*reversed(fresh), *split.kept)
    return {topic_id: assigned[topic_id] for topic_id in hash_map_order(order, hash_of=uuid_hash)}


def _grow(facts: Reconciliation, topic_id: UUID, kept: Mapping[int, int], added: Sequence[int]) -> Mapping[int, int]:
    epochs = {**kept, **dict.fromkeys(added, facts.assignment_epoch)}
    copied_from = len(facts.member.assigned.get(topic_id, _NONE_OWNED))
    capacity = grown_capacity(len(epochs), facts.form.copied_capacity(copied_from) if kept else 16)
    return {number: epochs[number] for number in hash_map_order(epochs, capacity=capacity, hash_of=integer_hash)}
