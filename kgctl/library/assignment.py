"""`kgctl.assign`: who would get which partitions, by one of Kafka's assignors or one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.assignors.spec import TopicSpec
from kgctl.errors import UsageError
from kgctl.model.groups import NO_GENERATION
from kgctl.simulate.assign.evaluation import answer
from kgctl.simulate.assign.group_document import GroupDocument, Member

PREVIOUS_GENERATION = 1


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignor's answer.

    ``assignment``: member -> topic -> partitions, ascending, in the order of the members. ``moved``: partitions that a member
    owned and has no longer; ``moves_needed``: how many no assignment could have spared. ``unassigned``: partitions that nobody
    has for now (cooperative assignors revoke first). ``spread``: the most partitions of a member less the fewest.
    """

    assignment: Mapping[str, Mapping[str, tuple[int, ...]]]
    moved: int
    moves_needed: int
    unassigned: int
    spread: int


def assign(
    assignor: str,
    *,
    topics: Mapping[str, int],
    members: Mapping[str, Sequence[str]] | Sequence[str],
    previous: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
    racks: Mapping[str, str] | None = None,
    topic_racks: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> Assigned:
    """Return what the assignor answers for this group, exactly as Kafka's own would.

    ``assignor``: a name (range, roundrobin, sticky, cooperative-sticky, uniform, server-range, rack-affinity, kafka-go:range,
    ...), an installed one's, or ``module:Class``. ``topics``: numbers of partitions. ``members``: ids with the topics each
    subscribes to, or just ids that subscribe to all, in the order of the JoinGroup answer. ``previous``: what members had; one
    that only stands there has left. ``racks``: of members; ``topic_racks``: by topic, the replicas' racks of each partition.

    Raises:
        UsageError: unknown assignor or topic, or Kafka's assignor throws for this group.
        InvariantViolation: an assignor of one's own gives a partition to two, or to a member that does not subscribe.
    """
    subscriptions = dict(members) if isinstance(members, Mapping) else {member: list(topics) for member in members}
    _check_topics(topics, subscriptions)
    document = GroupDocument(
        "group",
        {name: TopicSpec(partitions, _racks(topic_racks, name)) for name, partitions in topics.items()},
        [
            _member(member, wanted, (previous or {}).get(member), (racks or {}).get(member))
            for member, wanted in subscriptions.items()
        ],
    )
    found = answer(document, assignor)
    return Assigned(
        {member: _ascending(found.assignment[member]) for member in subscriptions},
        found.moved,
        found.moves_needed,
        found.unassigned,
        found.spread,
    )


def _member(member_id: str, topics: Sequence[str], owned: Mapping[str, Sequence[int]] | None, rack: str | None) -> Member:
    generation = NO_GENERATION if owned is None else PREVIOUS_GENERATION
    return Member(member_id, tuple(topics), owned, generation, rack=rack)


def _racks(topic_racks: Mapping[str, Sequence[Sequence[str]]] | None, topic: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(replicas) for replicas in (topic_racks or {}).get(topic, ()))


def _ascending(topics: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(sorted(partitions)) for topic, partitions in topics.items()}


def _check_topics(topics: Mapping[str, int], subscriptions: Mapping[str, Sequence[str]]) -> None:
    for topic, partitions in topics.items():
        if partitions < 1:
            raise UsageError(f"topic '{topic}' must have at least one partition, not {partitions}")
    if not subscriptions:
        raise UsageError("a group to assign needs members")
