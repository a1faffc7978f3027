"""What an assignor is given and what it answers: names at the edge, integers inside.

An assignor is any object with a ``name`` and ``assign(group: GroupSpec)``. It is pure: no clock, no randomness, no state from one
call to the next (Kafka's sticky assignor remembers one number, the highest generation; it is `GroupSpec.max_generation` here).

A client assignor sees what a group's leader sees after JoinGroup; the members stand in the order of the JoinGroup response.
A server assignor sees the group as the coordinator does; `TargetSpec`, with topics by id, is the form that the coordinator uses:
``UniformAssignor().assign_targets(spec)``. What the assignors share, orders of members and the racks of topics, is here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import md5
from types import MappingProxyType
from typing import NamedTuple, Protocol
from uuid import UUID

from kgctl.assignors.partition_space import NumberedPartitions, PartitionIds, PartitionSpace, java_text_key, sorted_like_java
from kgctl.model.groups import NO_GENERATION, TopicPartition
from kgctl.model.values import copied_set_capacity, copied_set_order, frozen_in_order, grown_capacity, hash_map_order, uuid_hash

PartitionsByTopic = Mapping[str, Sequence[int]]
OwnedPartitions = PartitionsByTopic | NumberedPartitions
NOTHING: PartitionsByTopic = MappingProxyType({})


def _nothing() -> PartitionsByTopic:
    return NOTHING


class AssignorError(Exception):
    """Kafka's assignor throws for this input: the group would not get an assignment."""


@frozen_in_order
class TopicSpec:
    """A topic. ``racks`` has the racks of each partition's replicas, or is empty where none are known."""

    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()
    topic_id: UUID | None = None


@frozen_in_order
class StickyClaim:
    """The sticky assignor's user data, decoded. ``generation`` None: the old form (v0), which has none."""

    owned: OwnedPartitions = field(default_factory=_nothing)
    generation: int | None = None


@frozen_in_order
class MemberSpec:
    """A member as its subscription describes it.

    ``generation`` is that of ``owned`` in the subscription (version 2 and later), -1 for none. ``user_data`` are the bytes that
    the assignor's other half put into the subscription, or for the sticky assignor what they say. ``rack`` None or "" is none.
    For a server assignor ``owned`` is the member's present target.
    """

    member_id: str
    topics: tuple[str, ...]
    owned: OwnedPartitions = field(default_factory=_nothing)
    generation: int = NO_GENERATION
    rack: str | None = None
    instance_id: str | None = None
    user_data: bytes | StickyClaim | None = None


def owned_by_topic(member: MemberSpec) -> PartitionsByTopic:
    """Return ``member.owned`` by topic: names are made where it has a partition space's numbers."""
    return member.owned if isinstance(member.owned, Mapping) else member.owned.by_topic()


@frozen_in_order
class GroupSpec:
    """A group to assign: its topics (those without partitions count as missing) and its members in order.

    The caller keeps member ids distinct. ``max_generation``: the highest generation that the leader saw in earlier rounds.
    """

    topics: Mapping[str, TopicSpec]
    members: Sequence[MemberSpec]
    max_generation: int = NO_GENERATION


class GroupAssignment(Mapping[str, dict[str, list[int]]]):
    """Who gets what: ``assignment[member_id]`` is ``{topic: [partitions, ascending]}``; every member has an entry.

    Held as numbers of a `PartitionSpace`, so that a million partitions need a few megabytes; names are made when asked for.
    """

    __slots__ = ("_ids", "space")

    def __init__(self, space: PartitionSpace, ids: Mapping[str, Sequence[int]]) -> None:
        self.space = space
        self._ids = ids

    def ids(self, member_id: str) -> Sequence[int]:
        """The member's partitions as numbers of ``space``, in no particular order."""
        return self._ids[member_id]

    def owned(self, member_id: str) -> PartitionIds:
        """The member's partitions, to be its ``owned`` in the next round."""
        return PartitionIds(self.space, self._ids[member_id])

    def ordered_ids(self, member_id: str) -> Sequence[int]:
        """The member's partitions as numbers, in the order of Kafka's list."""
        return self._ids[member_id]

    def partitions(self, member_id: str) -> list[TopicPartition]:
        """The member's partitions in the order in which Kafka's assignor lists them, which is that of the assignment's bytes."""
        return [self.space.partition(number) for number in self.ordered_ids(member_id)]

    def __getitem__(self, member_id: str) -> dict[str, list[int]]:
        return self.space.by_topic(self._ids[member_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


@frozen_in_order
class Promises:
    """What an assignor declares about its answers, beyond what every assignor must; tests hold it to that.

    ``even_in_total``: where all subscribe alike, members' totals differ by at most one. ``even_per_topic``: the same for each
    topic among its subscribers. ``moves_least``: where all subscribe alike and racks play no part, no more partitions move than
    have to. ``ignores_member_order``: the order of the members is without meaning. ``is_cooperative``: what has to be revoked
    first is left out.
    """

    even_in_total: bool = False
    even_per_topic: bool = False
    moves_least: bool = False
    ignores_member_order: bool = False
    is_cooperative: bool = False


def promises_of(assignor: Assignor) -> Promises:
    """What the assignor declares in its attribute ``promises``; nothing, if it has none."""
    found = getattr(assignor, "promises", None)
    return found if isinstance(found, Promises) else Promises()


class Assignor(Protocol):
    """An assignor: one of kgctl's, or a user's own.

    `assign` gives every member of the group an entry, and each partition of a subscribed topic to one subscriber (a cooperative
    assignor may leave out those that have to be revoked first). What a user's own raises is told as `UserCodeError`.

    A third method is optional: ``user_data(member: MemberSpec) -> bytes | None``, called by each member before it joins, with
    what it knows of itself (no id); the leader finds the bytes in `MemberSpec.user_data`. Kafka: ``subscriptionUserData``.
    """

    @property
    def name(self) -> str:
        """Return the protocol's name, as members offer it."""
        ...

    def assign(self, group: GroupSpec) -> Mapping[str, PartitionsByTopic]:
        """Return the assignment of this group."""
        ...


def java_map_order(members: Sequence[MemberSpec]) -> list[MemberSpec]:
    """Members as the leader's ``HashMap`` of subscriptions iterates over them."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in hash_map_order(by_id)]


def sorted_members(members: Sequence[MemberSpec]) -> list[MemberSpec]:
    """Static members first, by instance id, then the others by member id.

    Members that share an instance id stay in map order. Kafka: ``AbstractPartitionAssignor.MemberInfo#compareTo``.
    """
    static = [member for member in members if member.instance_id is not None]
    if not static:
        return by_member_id(members)
    dynamic = [member for member in members if member.instance_id is None]
    ordered = sorted(java_map_order(static) if len(static) < 2 else _in_map_order(members, static), key=_instance_key)
    return ordered + by_member_id(dynamic)


def _in_map_order(members: Sequence[MemberSpec], wanted: Iterable[MemberSpec]) -> list[MemberSpec]:
    ids = {member.member_id for member in wanted}
    return [member for member in java_map_order(members) if member.member_id in ids]


def _instance_key(member: MemberSpec) -> bytes:
    return java_text_key(member.instance_id or "")


def by_member_id(members: Sequence[MemberSpec]) -> list[MemberSpec]:
    """Members in the order of ``String.compareTo`` over their ids."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in sorted_like_java(by_id)]


def subscribed_space(group: GroupSpec) -> PartitionSpace:
    """The partitions of all topics that somebody subscribes to and that exist."""
    wanted: set[str] = set()
    last: tuple[str, ...] = ()
    for member in group.members:
        if member.topics is not last:
            last = member.topics
            wanted.update(last)
    return PartitionSpace(
        {name: topic.partition_count for name, topic in group.topics.items() if topic.partition_count > 0 and name in wanted}
    )


def have_equal_subscriptions(members: Sequence[MemberSpec]) -> bool:
    """Whether all members name the same topics, in any order and with any repetition."""
    if not members:
        return True
    first = members[0].topics
    wanted = set(first)
    return all(member.topics is first or member.topics == first or set(member.topics) == wanted for member in members)


Racks = frozenset[str]


def partition_racks(topic: TopicSpec) -> list[Racks]:
    """The racks of each partition's replicas; none where the topic has no racks."""
    if not topic.racks:
        return [frozenset()] * topic.partition_count
    known: dict[tuple[str, ...], Racks] = {}
    return [known.setdefault(racks, frozenset(racks)) for racks in topic.racks]


def use_racks(consumer_racks: Iterable[str], racks: Sequence[Racks]) -> bool:
    """Whether racks can make a difference.

    Some consumer sits in a rack that has a replica, and not every partition is in all of the racks. Kafka:
    ``AbstractPartitionAssignor#useRackAwareAssignment``.
    """
    wanted = frozenset(consumer_racks)
    distinct = set(racks)
    union = frozenset().union(*distinct)
    return not wanted.isdisjoint(union) and distinct != {union}


Target = Mapping[UUID, Sequence[int]]
_NO_TARGET: Target = MappingProxyType({})


def _no_target() -> Target:
    return _NO_TARGET


@frozen_in_order
class TargetMember:
    """A member of a consumer-protocol group.

    ``topic_ids``: its subscribed topics *that exist*, in the order in which Java iterates over their names (for names that come
    in as a list that is `kgctl.model.values.copied_set_order`). ``target``: its present target assignment, topics in the
    order in which they were put into their ``HashMap``, partitions in the order in which their ``HashSet`` was filled.
    """

    member_id: str
    topic_ids: Sequence[UUID]
    target: Target = field(default_factory=_no_target)
    instance_id: str | None = None
    rack: str | None = None


@frozen_in_order
class TargetSpec:
    """The group. ``members`` stand in map order: that of the ``HashMap`` of member specs which the coordinator fills.

    ``topics``: topic id -> number of partitions, at least of all subscribed topics. ``is_homogeneous``: all members subscribe to
    the same names. ``subscribed_names``: how many names the first member subscribes to, topics that do not exist included; None:
    as many as it has ``topic_ids``. Targets must be valid: one owner a partition, partitions that exist. ``assignable``: the
    partitions that may be assigned, by topic, where not all may; only "simple" looks at them, and gives some several owners.
    """

    members: Sequence[TargetMember]
    topics: Mapping[UUID, int]
    is_homogeneous: bool
    subscribed_names: int | None = None
    assignable: Mapping[UUID, Collection[int]] | None = None


class Move(NamedTuple):
    """A partition goes from one member to another: numbers in the spec's order, the giver -1 where nobody has it."""

    giver: int
    receiver: int
    topic: int
    partition: int


class TargetAssignor(Protocol):
    """A server assignor as the coordinator calls it."""

    @property
    def name(self) -> str:
        """Return the name in ``group.consumer.assignors``."""
        ...

    def assign_targets(self, spec: TargetSpec, moves: list[Move] | None = None) -> dict[str, dict[UUID, Sequence[int]]]:
        """The new target of every member; members that are left out have none.

        ``moves`` gets the steps on the way there from an assignor that moves partitions one by one: "uniform", for a
        heterogeneous group.

        A member whose target does not change gets the very partition lists of its old target. Lists stand in the order in which
        Kafka fills its sets, so that the answer can be the ``target`` of the next call.
        """
        ...


def by_id(
    spec: TargetSpec, ids: Sequence[UUID], targets: Sequence[Mapping[int, Sequence[int]]]
) -> dict[str, dict[UUID, Sequence[int]]]:
    """Targets with topics by index as targets with topics by id."""
    return {
        member.member_id: {ids[topic]: partitions for topic, partitions in target.items()}
        for member, target in zip(spec.members, targets, strict=True)
    }


NO_TOPIC = -1

IndexedTarget = dict[int, Sequence[int]]


@frozen_in_order
class IndexedMember:
    """A `TargetMember` with indexes in the place of topic ids."""

    member_id: str
    topics: Sequence[int]
    target: Mapping[int, Sequence[int]]
    instance_id: str | None = None


@dataclass(frozen=True)
class IndexedGroup:
    """`TargetSpec` with indexes for ids. ``counts`` has -1 for a topic that does not exist."""

    members: Sequence[IndexedMember]
    ids: Sequence[UUID]
    counts: Sequence[int]
    is_homogeneous: bool
    subscribed_names: int

    @cached_property
    def spread_hashes(self) -> Sequence[int]:
        """For each topic the hash by which Java's maps choose a bucket; its low bits are the bucket's number."""
        hashes = [uuid_hash(topic_id) & 0xFFFF_FFFF for topic_id in self.ids]
        return [found ^ (found >> 16) for found in hashes]

    def check_topics_exist(self, topics: Sequence[int]) -> None:
        """Raises AssignorError if one of these subscribed topics has no metadata."""
        missing = next((topic for topic in topics if self.counts[topic] < 0), None)
        if missing is not None:
            raise AssignorError(f"Members are subscribed to topic {self.ids[missing]} which doesn't exist in the topic metadata.")

    def set_order(self, topics: Sequence[int], names: int) -> list[int]:
        """Topics as the ``HashSet`` copied from a collection of ``names`` elements iterates over them."""
        return self._by_bucket(topics, copied_set_capacity(names))

    def map_order(self, target: Mapping[int, Sequence[int]]) -> Sequence[int]:
        """A target's topics as its ``HashMap`` iterates over them."""
        return list(target) if len(target) < 2 else self._by_bucket(list(target), grown_capacity(len(target)))

    def _by_bucket(self, topics: Sequence[int], capacity: int) -> list[int]:
        hashes, mask = self.spread_hashes, capacity - 1
        return sorted(topics, key=lambda topic: hashes[topic] & mask)


def indexed(spec: TargetSpec) -> IndexedGroup:
    """Return the group with indexes in the place of topic ids."""
    ids = list(spec.topics)
    index = {topic: position for position, topic in enumerate(ids)}
    known: dict[int, list[int]] = {}

    def index_of(topic: UUID) -> int:
        found = index.get(topic)
        if found is None:
            found = index[topic] = len(ids)
            ids.append(topic)
        return found

    members = []
    for member in spec.members:
        topics = known.get(id(member.topic_ids))
        if topics is None:
            topics = known[id(member.topic_ids)] = [index_of(topic) for topic in member.topic_ids]
        target = {index_of(topic): partitions for topic, partitions in member.target.items()}
        members.append(IndexedMember(member.member_id, topics, target, member.instance_id))
    counts = [*spec.topics.values(), *[-1] * (len(ids) - len(spec.topics))]
    names = spec.subscribed_names
    if names is None:
        names = len(spec.members[0].topic_ids) if spec.members else 0
    return IndexedGroup(members, ids, counts, spec.is_homogeneous, names)


AssignIndexed = Callable[[IndexedGroup], Sequence[IndexedTarget]]
AssignNumbers = Callable[[IndexedGroup, PartitionSpace, Sequence[OwnedPartitions]], Sequence[Sequence[int]] | None]
"""The numbers of each member's partitions, where the numbers of what they own are enough to know them; else None."""


@lru_cache(maxsize=16_384)
def topic_id_of_name(name: str) -> UUID:
    """Return Java's ``UUID.nameUUIDFromBytes`` of the name in UTF-8, for a topic whose id is not known.

    Kept: the ids of 1,000 topics cost as much as a tenth of a whole assignment, and each call asks for the same.
    """
    return UUID(bytes=md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest(), version=3)


def assign_by_name(assign: AssignIndexed, group: GroupSpec, by_number: AssignNumbers | None = None) -> GroupAssignment:
    """The targets of a group with topics by name; for the order of members and topics Java's rules hold.

    ``by_number`` is asked first: what it knows needs no names.
    """
    space = PartitionSpace({name: topic.partition_count for name, topic in group.topics.items() if topic.partition_count > 0})
    members = java_map_order(group.members)
    index = dict(space.index)
    for member in members:
        for name in member.owned if isinstance(member.owned, Mapping) else ():
            index.setdefault(name, len(index))
    known: dict[tuple[str, ...], list[int]] = {}
    last: tuple[str, ...] | None = None
    for member in members:
        if member.topics is not last and member.topics not in known:
            known[member.topics] = [space.index[name] for name in copied_set_order(member.topics) if name in space.index]
        last = member.topics
    indexed_group = IndexedGroup(
        [IndexedMember(m.member_id, known[m.topics], {}, m.instance_id) for m in members],
        [_topic_id(group, name) for name in index],
        [*space.counts, *[-1] * (len(index) - len(space.counts))],
        have_equal_subscriptions(members),
        len(set(members[0].topics)) if members else 0,
    )
    numbers = None if by_number is None else by_number(indexed_group, space, [member.owned for member in members])
    if numbers is None:
        named = [
            replace(one, target=_target(owned_by_topic(m), index)) for one, m in zip(indexed_group.members, members, strict=True)
        ]
        numbers = [_numbers(space, target) for target in assign(replace(indexed_group, members=named))]
    return GroupAssignment(space, _in_group_order(group.members, members, numbers))


def _topic_id(group: GroupSpec, name: str) -> UUID:
    topic = group.topics.get(name)
    return topic.topic_id if topic is not None and topic.topic_id is not None else topic_id_of_name(name)


def _target(owned: PartitionsByTopic, index: Mapping[str, int]) -> IndexedTarget:
    return {
        index[name]: partitions if len(partitions) == 1 else list(dict.fromkeys(partitions))
        for name, partitions in owned.items()
        if partitions and name in index
    }


def _in_group_order(
    members: Sequence[MemberSpec], in_map_order: Sequence[MemberSpec], numbers: Sequence[Sequence[int]]
) -> dict[str, Sequence[int]]:
    by_id = {member.member_id: found for member, found in zip(in_map_order, numbers, strict=True)}
    return {member.member_id: by_id[member.member_id] for member in members}


def _numbers(space: PartitionSpace, target: Mapping[int, Sequence[int]]) -> Sequence[int]:
    numbers: list[int] = []
    for topic, partitions in target.items():
        offset = space.offsets[topic]
        if isinstance(partitions, range) and partitions.step == 1:
            run = range(offset + partitions.start, offset + partitions.stop)
            if len(target) == 1:
                return run
            numbers.extend(run)
        elif len(partitions) == 1:
            numbers.append(offset + partitions[0])
        else:
            numbers.extend([offset + partition for partition in partitions])
    return numbers
