"""The leader of a classic group of Kafka Streams: from the members' subscriptions to the bytes of their assignments."""

from __future__ import annotations

from uuid import UUID

from kgctl.assignors.high_availability import TaskSettings
from kgctl.assignors.spec import AssignorError, GroupSpec, MemberSpec, owned_by_topic
from kgctl.assignors.streams.partition_assignor import EndOffsets, Leader, StreamThread, TaskTopology, assign_streams
from kgctl.assignors.streams.user_data import decode_subscription_info, encode_assignment_info
from kgctl.model.groups import ConsumerAssignment, TopicPartition
from kgctl.serde.consumer_protocol import encode_assignment

PROTOCOL = "stream"


class StreamsPartitionAssignor:
    """``process_id``: the leader's instance, which is to look again where a later look may do better."""

    def __init__(self, topology: TaskTopology, settings: TaskSettings, probing_interval_ms: int, process_id: UUID) -> None:
        self._topology = topology
        self._settings = settings
        self._probing_interval_ms = probing_interval_ms
        self._process_id = process_id

    def assign(self, group: GroupSpec, end_offsets: EndOffsets, now_ms: int) -> dict[str, bytes]:
        """Return each member's assignment as bytes. Raises `AssignorError`: a member cannot be understood."""
        leader = Leader(self._process_id, now_ms, self._settings, self._probing_interval_ms)
        counts = {name: topic.partition_count for name, topic in group.topics.items()}
        found = assign_streams(list(map(_member, group.members)), self._topology, counts, end_offsets, leader)
        return {
            member_id: encode_assignment(ConsumerAssignment(each.partitions, encode_assignment_info(each.info)))
            for member_id, each in found.members.items()
        }


def _member(member: MemberSpec) -> StreamThread:
    data = member.user_data
    if not isinstance(data, bytes):
        raise AssignorError(f"member {member.member_id!r} says nothing of its tasks")
    try:
        info = decode_subscription_info(data)
    except ValueError as error:
        raise AssignorError(f"member {member.member_id!r}: {error}") from None
    owned = tuple(TopicPartition(topic, number) for topic, numbers in owned_by_topic(member).items() for number in numbers)
    return StreamThread(member.member_id, info, owned)
