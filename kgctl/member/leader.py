"""What a member says when it joins, and the leader's work: from the members' subscriptions to everybody's assignment.

Kafka: ConsumerCoordinator#metadata and #onLeaderElected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kgctl.assignors.registry import get_assignor, protocol_name
from kgctl.assignors.spec import Assignor, AssignorError, GroupSpec, MemberSpec, TopicSpec
from kgctl.assignors.wire_form import encode_cooperative, encode_sticky
from kgctl.model.groups import NO_GENERATION, ConsumerSubscription, MetadataImage, TopicPartition
from kgctl.model.requests import JoinGroupMember, JoinProtocol
from kgctl.model.values import frozen_in_order
from kgctl.serde.consumer_protocol import (
    MalformedConsumerProtocol,
    decode_subscription,
    decode_topics_and_user_data,
    encode_assignment_by_topic,
    encode_subscription,
    group_by_topic,
)

Assignments = tuple[tuple[str, bytes], ...]


class LeaderAssignor:
    """A member's assignors, made when first used. Kafka's sticky one remembers the highest generation that it has seen.

    ``prefix``: what the client's own assignors begin with in kgctl's list. ``strategy``: what it offers, by kgctl's names.
    """

    __slots__ = ("_by_protocol", "_made", "_max_generation", "_prefix", "_protocols", "_strategy", "left_over")

    def __init__(self, prefix: str, strategy: Sequence[str] = ()) -> None:
        self._prefix = prefix
        self._strategy = strategy
        self._protocols = {name: protocol_name(name) for name in reversed(strategy) if ":" in name}
        self._by_protocol = {protocol: name for name, protocol in self._protocols.items()}
        self._made: dict[str, Assignor] = {}
        self._max_generation: dict[str, int] = {}
        self.left_over = 0
        """Partitions that the last assignment of an assignor of the user's own gives to nobody."""

    def assign(self, protocol_name: str, group: GroupSpec) -> Assignments:
        """The assignment of each member as bytes, in the order of the members."""
        max_generation = self._max_generation.get(protocol_name, NO_GENERATION)
        assignor = self._get(protocol_name)
        result = assignor.assign(GroupSpec(group.topics, group.members, max_generation))
        self.left_over = int(getattr(assignor, "left_over", 0))
        self._max_generation[protocol_name] = max(max_generation, int(getattr(result, "max_generation", NO_GENERATION)))
        members = (member.member_id for member in group.members)
        return tuple((member_id, encode_assignment_by_topic(list(result[member_id].items()))) for member_id in members)

    def join_protocols(self, subscription: ConsumerSubscription, remembered: Remembered | None) -> tuple[JoinProtocol, ...]:
        """The protocols of a JoinGroup, in the order of preference. Kafka: ``ConsumerCoordinator#metadata``."""
        encoded: dict[bytes | None, bytes] = {}
        found = []
        for name in self._strategy:
            user_data = self._user_data(name, subscription, remembered)
            metadata = encoded.get(user_data)
            if metadata is None:
                says = subscription
                if user_data != subscription.user_data:
                    topics, owned = subscription.topics, subscription.owned_partitions
                    says = ConsumerSubscription(
                        topics, user_data, owned, subscription.generation_id, subscription.rack_id, subscription.version
                    )
                metadata = encoded[user_data] = encode_subscription(says)
            found.append(JoinProtocol(name=self._protocols.get(name, name), metadata=metadata))
        return tuple(found)

    def _user_data(self, name: str, subscription: ConsumerSubscription, remembered: Remembered | None) -> bytes | None:
        if name in USER_DATA:
            return USER_DATA[name](remembered)
        own = getattr(self._get(name), "user_data", None)
        if own is None:
            return subscription.user_data
        owned = dict(group_by_topic(subscription.owned_partitions))
        said: bytes | None = own(MemberSpec("", subscription.topics, owned, subscription.generation_id, subscription.rack_id))
        return said

    def _get(self, name: str) -> Assignor:
        if name not in self._made:
            self._made[name] = get_assignor(self._by_protocol.get(name) or self._registered_name(name))
        return self._made[name]

    def _registered_name(self, name: str) -> str:
        from kgctl.assignors.registry import assignor_names

        own = self._prefix + name
        return own if own in assignor_names() else name


def group_spec(members: Sequence[JoinGroupMember], image: MetadataImage) -> GroupSpec:
    """Return the group as the leader sees it after JoinGroup. Raises `AssignorError` for a member that cannot be understood."""
    specs = [_member_spec(member) for member in members]
    wanted = dict.fromkeys(topic for spec in specs for topic in spec.topics)
    # A topic that does not exist is no failure: it has no partitions to hand out yet (AbstractPartitionAssignor#assign), and
    # the leader joins again when it sees some.
    topics = {
        name: TopicSpec(image.topics[name].partition_count, image.topics[name].partition_racks, image.topics[name].topic_id)
        for name in wanted
        if name in image.topics
    }
    return GroupSpec(topics, specs)


def _member_spec(member: JoinGroupMember) -> MemberSpec:
    subscription = _subscription(member)
    return MemberSpec(
        member.member_id,
        subscription.topics,
        owned=dict(group_by_topic(subscription.owned_partitions)),
        generation=subscription.generation_id,
        rack=subscription.rack_id,
        instance_id=member.group_instance_id,
        user_data=subscription.user_data,
    )


def _subscription(member: JoinGroupMember) -> ConsumerSubscription:
    """kafka-go's members say version 1 and leave out the owned partitions that it has. Java's leader throws there."""
    try:
        return decode_subscription(member.metadata)
    except MalformedConsumerProtocol:
        try:
            return ConsumerSubscription(*decode_topics_and_user_data(member.metadata), version=0)
        except MalformedConsumerProtocol as error:
            raise AssignorError(f"the subscription of member {member.member_id!r} cannot be read: {error}") from None


@frozen_in_order
class Remembered:
    """The last assignment, as the assignors' other half keeps it for the next round."""

    partitions: frozenset[TopicPartition]
    generation_id: int


def _sticky_user_data(remembered: Remembered | None) -> bytes | None:
    if remembered is None:
        return None
    owned: Mapping[str, Sequence[int]] = dict(group_by_topic(sorted(remembered.partitions)))
    return encode_sticky(owned, remembered.generation_id)


def _cooperative_user_data(remembered: Remembered | None) -> bytes:
    return encode_cooperative(NO_GENERATION if remembered is None else remembered.generation_id)


USER_DATA: Mapping[str, Callable[[Remembered | None], bytes | None]] = {
    "sticky": _sticky_user_data,
    "cooperative-sticky": _cooperative_user_data,
}
"""Assignors that send something of their own along."""
