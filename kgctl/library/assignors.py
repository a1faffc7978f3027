"""`kgctl.assign`: who would get which partitions, by one of Kafka's assignors or one's own; and those for other clients.

`kafka_python_assignor` and `aiokafka_assignor` make a ``partition_assignment_strategy``. The leaders of those clients then assign
as Java's would: the same partitions to the same members, sticky ones with the same tie-breaks. What members send about themselves
(sticky's user data, owned partitions of cooperative groups) stays the client library's own, which is Kafka's on the wire.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kgctl.arguments import checked
from kgctl.assignors.registry import get_assignor, protocol_name
from kgctl.assignors.spec import NOTHING, GroupSpec, MemberSpec, PartitionsByTopic, TopicSpec
from kgctl.assignors.wire_form import encode_sticky
from kgctl.errors import UsageError
from kgctl.model.groups import NO_GENERATION
from kgctl.model.values import frozen_in_order
from kgctl.serde.consumer_protocol import group_by_topic
from kgctl.simulate.assign.evaluation import answer
from kgctl.simulate.assign.groups import GroupDocument, Member

PREVIOUS_GENERATION = 1


@frozen_in_order
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


@checked(not_empty=("assignor", "topics", "members"))
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

    A topic that a member subscribes to need not exist.

    Raises:
        UsageError: unknown assignor; racks of what is not there; or Kafka's assignor throws for this group.
        UserCodeError: an assignor of one's own raises, or gives a partition to two, or to a member that does not subscribe.
    """
    _check(topics, members, racks or {}, topic_racks or {})
    subscriptions = dict(members) if isinstance(members, Mapping) else {member: [*topics] for member in members}
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


def _check(topics: Mapping[str, int], members: Collection[str], racks: Collection[str], topic_racks: Mapping[str, Any]) -> None:
    for topic, partitions in topics.items():
        if partitions < 1:
            raise UsageError(f"topic '{topic}' must have at least one partition, not {partitions}")
        if topic in topic_racks and len(topic_racks[topic]) != partitions:
            raise UsageError(f"topic_racks: '{topic}' has {partitions} partitions, and racks for {len(topic_racks[topic])}")
    if not members:
        raise UsageError("a group to assign needs members")
    twice = next((member for member, times in Counter(list(members)).items() if times > 1), None)
    if twice is not None:
        raise UsageError(f"members names '{twice}' twice")
    for what, named, known in (("racks", racks, members), ("topic_racks", topic_racks, topics)):
        unknown = next((name for name in named if name not in known), None)
        if unknown is not None:
            raise UsageError(f"{what} names '{unknown}', which is none of {', '.join(known) or 'none'}")


@checked(not_empty=("name",))
def kafka_python_assignor(name: str) -> type[Any]:
    """Return a class for ``KafkaConsumer(partition_assignment_strategy=[...])`` of kafka-python.

    ``name``: one of kgctl's assignors, an installed one, or ``module:Class``. Cooperative only for "cooperative-sticky".

    Raises:
        UsageError: there is no such assignor, or no kafka-python.
    """
    try:
        from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
        from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
    except ImportError as error:
        raise UsageError(f"kafka_python_assignor needs kafka-python 3: {error}") from None
    wanted = protocol_name(name)
    bases = {"sticky": StickyPartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}

    def assign(self: Any, cluster: Any, members: Iterable[Any]) -> dict[str, Any]:
        del self
        specs = [_kafka_python_member(member) for member in members]
        assigned = _assign(name, cluster.partitions_for_topic, specs)
        return {member: ConsumerProtocolAssignment(0, topics, b"") for member, topics in assigned.items()}

    def metadata(self: Any, topics: Iterable[str]) -> Any:
        del self
        return ConsumerProtocolSubscription(0, sorted(topics), _user_data(name, topics))

    def sticky_metadata(self: Any, topics: Iterable[str]) -> Any:
        """With user data as Java writes them: kafka-python 3.0 puts a version in front, which Java cannot read."""
        owned = self.member_assignment
        claim = b"" if owned is None else encode_sticky(dict(group_by_topic(sorted(owned))), self.generation)
        return ConsumerProtocolSubscription(0, sorted(topics), claim)

    own: dict[str, Any] = {"name": wanted, "assign": assign}
    if wanted == "sticky":
        own["metadata"] = sticky_metadata
    if wanted not in bases:
        own |= {"metadata": metadata, "on_assignment": lambda self, assignment, generation: None}  # noqa: ARG005
    return type(_class_name(wanted), (bases.get(wanted, AbstractPartitionAssignor),), own)


@checked(not_empty=("name",))
def aiokafka_assignor(name: str) -> type[Any]:
    """Return a class for ``AIOKafkaConsumer(partition_assignment_strategy=[...])`` of aiokafka.

    As `kafka_python_assignor`, but for cooperative assignors, which aiokafka does not speak. Use one class a consumer: aiokafka
    keeps what a sticky member owns in the class.
    """
    try:
        from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
        from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
    except ImportError as error:
        raise UsageError(f"aiokafka_assignor needs aiokafka: {error}") from None
    wanted = protocol_name(name)
    if wanted == "cooperative-sticky":
        raise UsageError("aiokafka does not rebalance cooperatively: use 'sticky', or kafka-python, or kgctl.ConsumerGroup")

    def assign(cls: Any, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        del cls
        specs = [
            MemberSpec(member, tuple(data.subscription), user_data=data.user_data or None) for member, data in members.items()
        ]
        assigned = _assign(name, cluster.partitions_for_topic, specs)
        return {member: ConsumerProtocolMemberAssignment(0, topics, b"") for member, topics in assigned.items()}

    def metadata(cls: Any, topics: Iterable[str]) -> Any:
        del cls
        return ConsumerProtocolMemberMetadata(0, sorted(topics), _user_data(name, topics))

    own: dict[str, Any] = {"name": wanted, "assign": classmethod(assign)}
    if wanted != "sticky":
        own |= {"metadata": classmethod(metadata), "on_assignment": classmethod(lambda cls, assignment: None)}  # noqa: ARG005
    base = StickyPartitionAssignor if wanted == "sticky" else AbstractPartitionAssignor
    return type(_class_name(wanted), (base,), own)


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace(":", "-").split("-")) + "KgctlAssignor"


def _user_data(name: str, topics: Iterable[str]) -> bytes:
    """What an assignor of one's own lets its members say; they know no more of themselves here than their topics."""
    said = getattr(get_assignor(name), "user_data", None)
    return b"" if said is None else said(MemberSpec("", tuple(sorted(topics)))) or b""


def _assign(
    name: str, partitions_for_topic: Callable[[str], Iterable[int] | None], members: list[MemberSpec]
) -> dict[str, list[tuple[str, list[int]]]]:
    """Member -> [(topic, partitions)], as both libraries put it on the wire."""
    wanted = dict.fromkeys(topic for member in members for topic in member.topics)
    counts = {topic: len(set(partitions_for_topic(topic) or ())) for topic in wanted}
    topics = {topic: TopicSpec(count) for topic, count in counts.items() if count}
    assigned = get_assignor(name).assign(GroupSpec(topics, members))
    return {
        member.member_id: [(topic, list(partitions)) for topic, partitions in assigned[member.member_id].items()]
        for member in members
    }


def _kafka_python_member(member: Any) -> MemberSpec:
    said = member.metadata
    data = said.user_data
    return MemberSpec(
        member.member_id,
        tuple(said.topics),
        owned=_owned(getattr(said, "owned_partitions", None)),
        generation=getattr(said, "generation_id", NO_GENERATION),
        rack=getattr(said, "rack_id", None),
        instance_id=getattr(member, "group_instance_id", None),
        user_data=(data.encode() if hasattr(data, "encode") else data) or None,
    )


def _owned(topics: Any) -> PartitionsByTopic:
    return {each.topic: list(each.partitions) for each in topics} if topics else NOTHING
