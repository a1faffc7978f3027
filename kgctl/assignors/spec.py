"""What an assignor is given and what it answers: names at the edge, integers inside.

An assignor is any object with a ``name`` and ``assign(group: GroupSpec)``. It is pure: no clock, no randomness, no state from one
call to the next (Kafka's sticky assignor remembers one number, the highest generation; it is `GroupSpec.max_generation` here).

A client assignor sees what a group's leader sees after JoinGroup; the members stand in the order of the JoinGroup response.
A server assignor sees the group as the coordinator does; `kgctl.assignors.server.spec` has the form that the coordinator uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Protocol, runtime_checkable
from uuid import UUID

from kgctl.assignors.partition_space import NumberedPartitions, PartitionIds, PartitionSpace
from kgctl.model.groups import NO_GENERATION, TopicPartition
from kgctl.model.values import frozen_in_order

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


@runtime_checkable
class Assignor(Protocol):
    """An assignor: one of kgctl's, or a user's own.

    `assign` gives every member of the group an entry, and each partition of a subscribed topic to one subscriber (a cooperative
    assignor may leave out those that have to be revoked first). Raises `AssignorError` where Kafka's would throw.

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
