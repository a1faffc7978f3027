"""What a group's leader does between JoinGroup and SyncGroup: the members' bytes in, the assignments' bytes out.

Kafka: ``ConsumerCoordinator#onLeaderElected``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.assignors.spec import Assignor, GroupAssignment, GroupSpec, MemberSpec, TopicSpec
from kgctl.assignors.wire_form import AssignmentWriter, SubscriptionReader
from kgctl.model.groups import NO_GENERATION


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member of the JoinGroup response; ``metadata`` is its ConsumerProtocolSubscription."""

    member_id: str
    metadata: bytes
    instance_id: str | None = None


def lead(
    assignor: Assignor,
    topics: Mapping[str, TopicSpec],
    members: Sequence[JoinedMember],
    max_generation: int = NO_GENERATION,
) -> tuple[dict[str, bytes], int]:
    """Each member's ConsumerProtocolAssignment, and the highest generation seen, which the leader gives to the next call.

    ``assignor`` must be one of kgctl's client assignors, whose answers are lists of numbers.

    Raises:
        ValueError: a member's metadata are no subscription. AssignorError: Kafka's assignor throws for this group.
    """
    reader = SubscriptionReader()
    specs = []
    for member in members:
        said = reader.read(member.metadata)
        specs.append(
            MemberSpec(
                member.member_id,
                said.topics,
                said.owned,
                generation=max(said.generation, NO_GENERATION),
                rack=said.rack or None,
                instance_id=member.instance_id,
                user_data=said.user_data,
            )
        )
    assignment = assignor.assign(GroupSpec(topics, specs, max_generation))
    assert isinstance(assignment, GroupAssignment)
    writer = AssignmentWriter(assignment.space)
    highest = getattr(assignment, "max_generation", max_generation)
    return {member_id: writer.write(assignment.ordered_ids(member_id)) for member_id in assignment}, highest
