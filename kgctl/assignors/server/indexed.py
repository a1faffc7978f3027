"""A group as the server algorithms work on it: topics by index, so that nothing has to hash a UUID."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from kgctl.assignors.server.spec import TargetSpec
from kgctl.assignors.spec import AssignorError
from kgctl.model.java_order import copied_set_capacity, grown_capacity, uuid_hash

NO_TOPIC = -1

IndexedTarget = dict[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class IndexedMember:
    """`TargetMember` with indexes for ids."""

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
    """The group with indexes for ids."""
    ids = list(spec.topics)
    index = {topic: position for position, topic in enumerate(ids)}
    known: dict[int, list[int]] = {}

    def index_of(topic: UUID) -> int:
        if topic not in index:
            index[topic] = len(ids)
            ids.append(topic)
        return index[topic]

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
