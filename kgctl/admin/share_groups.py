"""Share groups (KIP-932) over kgctl's own connection: what they are like, and where they begin to read, which is told and moved.

In the place of commits they have a start offset a partition, and their coordinator counts their lag: of the records past a start
offset any may be acknowledged already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kgctl.admin import ItemError, PartitionResults
from kgctl.admin.answers import group_state, partition_results
from kgctl.errors import UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupDescription, GroupType, MemberDescription, OffsetAndMetadata, StartOffset, TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.asking import LEFT_OUT, Failure, ask_coordinators
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import (
    ALTER_SHARE_GROUP_OFFSETS,
    DELETE_SHARE_GROUP_OFFSETS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    Connection,
    Request,
)

StartOffsets = Mapping[TopicPartition, OffsetAndMetadata]

NO_LAG = -1
_NO_SHARE_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""The second from brokers that know the request and have share groups switched off (the feature share.version is 0)."""


def described(group: Any, connection: Connection) -> GroupDescription | Failure:
    """A group of ShareGroupDescribe's answer."""
    if group.error_code:
        return Failure(ErrorCode(group.error_code), group.error_message)
    return GroupDescription(
        group_id=group.group_id,
        state=group_state(group.group_state),
        type=GroupType.SHARE,
        protocol_type=GroupType.SHARE.value,
        assignor=group.assignor_name or None,
        coordinator=connection.node,
        members=tuple(sorted(map(_member, group.members), key=lambda member: member.member_id)),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def _member(member: Any) -> MemberDescription:
    topics = sorted(member.assignment.topic_partitions, key=lambda topic: topic.topic_name)
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        rack_id=member.rack_id,
        assignment={topic.topic_name: tuple(sorted(topic.partitions)) for topic in topics},
        subscribed_topics=tuple(sorted(member.subscribed_topic_names)),
        member_epoch=member.member_epoch,
    )


def start_offsets(connection: Connection, groups: Sequence[str], deadline: Deadline) -> dict[str, StartOffsets | Failure]:
    """The start offsets of those that are share groups of this coordinator; others are left out, and so are partitions in which
    nothing has been read yet. An error of a partition is its group's, whose picture would have a hole.
    """
    asked = [{"group_id": group, "topics": None} for group in groups]
    answer = connection.call(DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": asked}, deadline)
    found = {group.group_id: _start_offsets(group) for group in answer.groups}
    return {group_id: offsets for group_id, offsets in found.items() if offsets is not None}


def _start_offsets(group: Any) -> StartOffsets | Failure | None:
    if group.error_code:
        code = ErrorCode(group.error_code)
        return None if code in _NO_SHARE_GROUP else Failure(code, group.error_message)
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in group.topics:
        for each in topic.partitions:
            if each.error_code:
                return Failure(ErrorCode(each.error_code), each.error_message)
            if each.start_offset >= 0:
                lag = getattr(each, "lag", NO_LAG)
                place = TopicPartition(topic.topic_name, each.partition_index)
                found[place] = StartOffset(each.start_offset, "", each.leader_epoch, None if lag < 0 else lag)
    return dict(sorted(found.items()))


def alter_start_offsets(
    cluster: ClusterClient, wanted: Mapping[str, StartOffsets], deadline: Deadline
) -> dict[str, PartitionResults[None]]:
    """Set start offsets of groups without members, a request a group; of the records past them none is acknowledged then. Makes a
    group that does not exist. One with members has NON_EMPTY_GROUP on each partition.
    """

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Any]]:
        version, unsent = connection.version(ALTER_SHARE_GROUP_OFFSETS), list(groups)

        def requests() -> Iterator[Request]:
            for group in groups:
                unsent.remove(group)
                yield Request(ALTER_SHARE_GROUP_OFFSETS, version, _alteration(group, wanted[group]))

        try:
            for group, answer in zip(groups, connection.stream(requests(), deadline), strict=True):
                yield {group: _failure(answer) or answer}
        except UnreachableError as error:
            error.unsent = unsent
            raise

    answers = ask_coordinators(cluster, wanted, ask, deadline, is_idempotent=False)
    return {group: _altered(group, wanted[group], answer) for group, answer in answers.items()}


def _alteration(group_id: str, offsets: StartOffsets) -> dict[str, Any]:
    topics: dict[str, list[dict[str, int]]] = {}
    for (topic, partition), start in offsets.items():
        topics.setdefault(topic, []).append({"partition_index": partition, "start_offset": start.offset})
    named = [{"topic_name": topic, "partitions": partitions} for topic, partitions in topics.items()]
    return {"group_id": group_id, "topics": named}


def _altered(group_id: str, offsets: StartOffsets, answer: Any) -> PartitionResults[None]:
    if isinstance(answer, Failure):
        return partition_results(dict.fromkeys(offsets, answer), group_id)
    found = {
        TopicPartition(topic.topic_name, each.partition_index): _failure(each)
        for topic in answer.responses
        for each in topic.partitions
    }
    return partition_results({partition: found.get(partition, LEFT_OUT) for partition in offsets}, group_id)


def in_part(starts: StartOffsets, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ItemError]:
    """Why these partitions cannot be deleted: others of their topics have start offsets too."""
    left = {partition.topic: partition for partition in starts if partition not in partitions}
    why = "Kafka deletes the start offsets of a share group by whole topics, and {} has one too"
    return {each: ItemError(ErrorCode.INVALID_REQUEST, why.format(left[each.topic])) for each in partitions if each.topic in left}


def delete_start_offsets(
    cluster: ClusterClient, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
) -> PartitionResults[None]:
    """Take the start offsets on whole topics away, as there is no request for less: those of ``partitions``."""
    topics = [{"topic_name": topic} for topic in dict.fromkeys(partition.topic for partition in partitions)]

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Any]]:
        answer = connection.call(DELETE_SHARE_GROUP_OFFSETS, {"group_id": group_id, "topics": topics}, deadline)
        yield dict.fromkeys(groups, _failure(answer) or answer)

    answer = ask_coordinators(cluster, [group_id], ask, deadline, is_idempotent=False)[group_id]
    if isinstance(answer, Failure):
        return partition_results(dict.fromkeys(partitions, answer), group_id)
    found = {topic.topic_name: _failure(topic) for topic in answer.responses}
    return partition_results({partition: found.get(partition.topic, LEFT_OUT) for partition in partitions}, group_id)


def _failure(answer: Any) -> Failure | None:
    return Failure(ErrorCode(answer.error_code), answer.error_message) if answer.error_code else None
