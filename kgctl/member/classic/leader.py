"""The leader's work: from the members' subscriptions to everybody's assignment."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.assignors.registry import get_assignor
from kgctl.assignors.spec import Assignor, GroupSpec, MemberSpec, TopicSpec
from kgctl.coordinator.results import JoinGroupMember
from kgctl.model.partitions import MetadataImage
from kgctl.model.subscription import NO_GENERATION
from kgctl.serde.consumer_protocol import decode_subscription, encode_assignment_by_topic, group_by_topic

Assignments = tuple[tuple[str, bytes], ...]


class LeaderAssignor:
    """A member's assignors, made when first used. Kafka's sticky one remembers the highest generation that it has seen."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._made: dict[str, Assignor] = {}
        self._max_generation: dict[str, int] = {}

    def assign(self, protocol_name: str, group: GroupSpec) -> Assignments:
        """The assignment of each member as bytes, in the order of the members."""
        max_generation = self._max_generation.get(protocol_name, NO_GENERATION)
        result = self._get(protocol_name).assign(GroupSpec(group.topics, group.members, max_generation))
        self._max_generation[protocol_name] = max(max_generation, int(getattr(result, "max_generation", NO_GENERATION)))
        members = (member.member_id for member in group.members)
        return tuple((member_id, encode_assignment_by_topic(list(result[member_id].items()))) for member_id in members)

    def _get(self, name: str) -> Assignor:
        if name not in self._made:
            self._made[name] = get_assignor(self._registered_name(name))
        return self._made[name]

    def _registered_name(self, name: str) -> str:
        from kgctl.assignors.registry import assignor_names

        own = self._prefix + name
        return own if own in assignor_names() else name


def group_spec(members: Sequence[JoinGroupMember], image: MetadataImage) -> GroupSpec:
    """The group as the leader sees it after JoinGroup."""
    specs = [_member_spec(member) for member in members]
    wanted = dict.fromkeys(topic for spec in specs for topic in spec.topics)
    topics = {
        name: TopicSpec(image.topics[name].partition_count, image.topics[name].partition_racks, image.topics[name].topic_id)
        for name in wanted
        if name in image.topics
    }
    return GroupSpec(topics, specs)


def _member_spec(member: JoinGroupMember) -> MemberSpec:
    subscription = decode_subscription(member.metadata)
    return MemberSpec(
        member.member_id,
        subscription.topics,
        owned=dict(group_by_topic(subscription.owned_partitions)),
        generation=subscription.generation_id,
        rack=subscription.rack_id,
        instance_id=member.group_instance_id,
        user_data=subscription.user_data,
    )
