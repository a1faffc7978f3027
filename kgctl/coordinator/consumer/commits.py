"""Whether a group of the consumer protocol accepts a commit or a fetch of offsets.

Kafka: ConsumerGroup#validateOffsetCommit and #validateOffsetFetch.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.requests import OffsetCommit, OffsetCommitPartition, OffsetFetch, TxnOffsetCommit
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import ZERO_UUID, MetadataImage

_MEMBER_EPOCH_VERSION = 9
"""OffsetCommit says a member epoch, not a generation, from this version on."""


def commit_error(
    members: Mapping[str, ConsumerMember], request: OffsetCommit | TxnOffsetCommit, image: MetadataImage
) -> ErrorCode:
    """The error for the whole request, or NONE.

    A member may commit with an older epoch what it has owned since then (KIP-1251): a commit that was under way while it went on
    to the next epoch is not lost.
    """
    transactional = isinstance(request, TxnOffsetCommit)
    anonymous = request.generation_id == -1 and not request.member_id and request.group_instance_id is None
    if (request.generation_id < 0 and not members) or (transactional and anonymous):
        return ErrorCode.NONE
    member = members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not transactional and not member.uses_classic_protocol and request.api_version < _MEMBER_EPOCH_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    if request.generation_id == member.member_epoch or (
        request.generation_id < member.member_epoch and _has_owned_all(member, request, image)
    ):
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if transactional or member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH


def _has_owned_all(member: ConsumerMember, request: OffsetCommit | TxnOffsetCommit, image: MetadataImage) -> bool:
    """Whether the member has owned each of these partitions since the epoch it names."""
    for partition in request.partitions:
        topic_id = partition.topic_id if isinstance(request, OffsetCommit) else _resolve(partition, image)
        epoch = member.assignment_epoch(topic_id, partition.partition)
        if epoch is None or request.generation_id < epoch:
            return False
    return True


def _resolve(partition: OffsetCommitPartition, image: MetadataImage) -> UUID:
    topic = image.topics.get(partition.topic)
    return ZERO_UUID if topic is None else topic.topic_id


def fetch_error(members: Mapping[str, ConsumerMember], request: OffsetFetch) -> ErrorCode:
    """The error for the whole fetch, or NONE: anybody may look who does not claim to be a member.

    With an epoch but no member id, Kafka looks for the member null in a map that has no null, and fails.
    """
    if request.member_id is None:
        return ErrorCode.NONE if request.member_epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR
    member = members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.member_epoch == member.member_epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
