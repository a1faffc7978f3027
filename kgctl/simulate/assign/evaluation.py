"""The answer to "who gets what?" for one group and one assignor, and what to think of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import (
    AssignorError,
    GroupAssignment,
    GroupSpec,
    MemberSpec,
    PartitionsByTopic,
    have_equal_subscriptions,
    promises_of,
)
from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.assign.groups import GroupDocument


@frozen_in_order
class MemberChange:
    """A member's partitions, counted: ``kept`` of those it owned, ``gained`` new ones, ``lost`` to others or to nobody."""

    member: MemberSpec
    partitions: int
    kept: int
    gained: int
    lost: int


@dataclass(frozen=True)
class Answer:
    """What an assignor answers for a group. ``owned`` is what the members had before."""

    id: str | int
    assignor: str
    group: GroupSpec
    assignment: GroupAssignment
    owned: Mapping[str, PartitionsByTopic]

    @cached_property
    def changes(self) -> Sequence[MemberChange]:
        space = self.assignment.space
        changes = []
        for member in self.group.members:
            numbers = self.assignment.ids(member.member_id)
            before = [number for number in space.numbers(self.owned.get(member.member_id, {})) if number < space.total]
            kept = len(set(before).intersection(numbers)) if before else 0
            changes.append(MemberChange(member, len(numbers), kept, len(numbers) - kept, len(set(before)) - kept))
        return changes

    @property
    def moved(self) -> int:
        """Partitions that some member owned and has no longer, those that are nobody's for now included."""
        return sum(change.lost for change in self.changes)

    @property
    def moves_needed(self) -> int:
        """A lower bound of ``moved`` for any assignment.

        Partitions of topics that their member does not subscribe to have to move, and where all subscribe alike what a member has
        above its share of an even assignment.
        """
        owned = [change.kept + change.lost for change in self.changes]
        if have_equal_subscriptions(self.group.members):
            share, extra = divmod(self.assignment.space.total, max(len(owned), 1))
            above = sorted((count - share for count in owned), reverse=True)
            even = sum(max(count - (place < extra), 0) for place, count in enumerate(above))
            return max(even, self._foreign())
        return self._foreign()

    def _foreign(self) -> int:
        total = 0
        for member in self.group.members:
            owned = self.owned.get(member.member_id, {})
            subscribed = set(member.topics)
            total += sum(len(set(partitions)) for topic, partitions in owned.items() if topic not in subscribed)
        return min(total, self.moved)

    @property
    def unassigned(self) -> int:
        """Partitions of subscribed topics that nobody has: to be revoked first, or forgotten by an assignor of the user's own."""
        subscribed = _subscribers(self.group.members)
        total = sum(topic.partition_count for name, topic in self.group.topics.items() if name in subscribed)
        return max(0, total - sum(change.partitions for change in self.changes))

    @property
    def spread(self) -> int:
        """The difference between the largest and the smallest number of partitions of a member."""
        sizes = [change.partitions for change in self.changes]
        return max(sizes) - min(sizes) if sizes else 0

    def topic_spreads(self, by_member: Mapping[str, PartitionsByTopic]) -> dict[str, int]:
        """The same for each topic alone, among its subscribers. ``by_member`` is the assignment by name."""
        sizes: defaultdict[str, set[int]] = defaultdict(set)
        holders: Counter[str] = Counter()
        for topics in by_member.values():
            holders.update(topics.keys())
            for topic, partitions in topics.items():
                sizes[topic].add(len(partitions))
        subscribers = _subscribers(self.group.members)
        return {
            topic: max(sizes[topic]) - (min(sizes[topic]) if holders[topic] >= subscribers[topic] else 0)
            for topic in self.assignment.space.names
            if topic in sizes
        }

    @cached_property
    def cross_rack_share(self) -> float | None:
        """Of the partitions whose racks are known and whose member has one: the share without a replica in its member's rack."""
        racks = {name: topic.racks for name, topic in self.group.topics.items() if topic.racks}
        total = crossing = 0
        for member in self.group.members:
            if not member.rack or not racks:
                continue
            for topic, partitions in self.assignment[member.member_id].items():
                found = [racks[topic][p] for p in partitions if racks[topic][p]] if topic in racks else []
                total += len(found)
                crossing += sum(member.rack not in replicas for replicas in found)
        return round(crossing / total, 4) if total else None


def _subscribers(members: Sequence[MemberSpec]) -> Counter[str]:
    by_subscription = Counter(member.topics for member in members)
    subscribers: Counter[str] = Counter()
    for topics, count in by_subscription.items():
        for topic in set(topics):
            subscribers[topic] += count
    return subscribers


def answer(document: GroupDocument, name: str) -> Answer:
    """The assignor's answer for this group.

    Raises:
        UsageError: unknown assignor, a target that cannot be one, or Kafka's assignor throws for this input.
        UserCodeError: an assignor of the user's own raises, or answers what no assignor may.
    """
    group = document.group(name)
    owned = {member.member_id: member.owned for member in document.members if member.owned}
    assignor = get_assignor(name)
    try:
        found = assignor.assign(group)
    except AssignorError as error:
        raise UsageError(f"{name}: Kafka's assignor fails for this group: {error}", code="ASSIGNOR_FAILED") from error
    assert isinstance(found, GroupAssignment)  # kgctl's own, or one that the border made
    return Answer(document.id, name, group, found, owned)


MAX_ROUNDS = 20


def rounds(document: GroupDocument, name: str, *, until_settled: bool = False) -> Sequence[Answer]:
    """The answers of one round, or of as many as it takes until no member has to revoke anything.

    Between two rounds every member revokes what it does not have any longer, and joins again with the rest in a new generation.
    An eager assignor needs one round.

    Raises:
        UsageError: as `answer`.
    """
    answers = [answer(document, name)]
    if not until_settled or not promises_of(get_assignor(name)).is_cooperative:
        return answers
    generation = max((document.max_generation, 0, *(member.generation or 0 for member in document.members)))
    while answers[-1].moved and len(answers) < MAX_ROUNDS:
        generation += 1
        document = document.after_round(dict(answers[-1].assignment), generation)
        answers.append(answer(document, name))
    return answers
