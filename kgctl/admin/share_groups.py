"""Share groups (KIP-932) over kgctl's own connection: what they are like, and where they begin to read, which is told and moved.

In the place of commits they have a start offset a partition, and their coordinator counts their lag: of the records past a start
offset any may be acknowledged already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kgctl.admin import Committed, ItemError, PartitionResults, item_error
from kgctl.admin.answers import results_of_each
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetAndMetadata, StartOffset, TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.asking import LEFT_OUT, Failure, ask_a_group_each, ask_coordinator, by_topic, failure_in, partitions_in
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import ALTER_SHARE_GROUP_OFFSETS, DELETE_SHARE_GROUP_OFFSETS, DESCRIBE_SHARE_GROUP_OFFSETS, Connection

NO_LAG = -1
_NO_SHARE_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""The second from brokers that know the request and have share groups switched off (the feature share.version is 0)."""


def start_offsets(connection: Connection, groups: Sequence[str], deadline: Deadline) -> dict[str, Committed | Failure]:
    """The start offsets of those that are share groups of this coordinator; others are left out, and so are partitions in which
    nothing has been read yet. An error of a partition is its group's, whose picture would have a hole.
    """
    asked = [{"group_id": group, "topics": None} for group in groups]
    answer = connection.call(DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": asked}, deadline)
    found = {group.group_id: _start_offsets(group) for group in answer.groups}
    return {group_id: offsets for group_id, offsets in found.items() if offsets is not None}


def _start_offsets(group: Any) -> Committed | Failure | None:
    if failure := failure_in(group):
        return None if failure.code in _NO_SHARE_GROUP else failure
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for place, each in partitions_in(group.topics, name="topic_name"):
        if failure := failure_in(each):
            words = f"{place}: {failure.message or failure.code.name}"
            return Failure(failure.code, item_error(failure.code, partition=place, detail=words).message)
        if each.start_offset >= 0:
            lag = getattr(each, "lag", NO_LAG)
            found[place] = StartOffset(each.start_offset, "", each.leader_epoch, None if lag < 0 else lag)
    return dict(sorted(found.items()))


def alter_start_offsets(
    cluster: ClusterClient, wanted: Mapping[str, Committed], deadline: Deadline
) -> dict[str, PartitionResults[None]]:
    """Set start offsets of groups without members, a request a group; of the records past them none is acknowledged then. Makes a
    group that does not exist. One with members has NON_EMPTY_GROUP on each partition.
    """

    def values(group_id: str) -> dict[str, Any]:
        starts = (
            (place, {"partition_index": place.partition, "start_offset": start.offset})
            for place, start in wanted[group_id].items()
        )
        return {"group_id": group_id, "topics": by_topic(starts, name="topic_name")}

    answers = ask_a_group_each(cluster, wanted, ALTER_SHARE_GROUP_OFFSETS, values, deadline)
    return {group: results_of_each(group, wanted[group], answer, _by_partition) for group, answer in answers.items()}


def _by_partition(answer: Any) -> dict[TopicPartition, Failure | None]:
    return {place: failure_in(each) for place, each in partitions_in(answer.responses, name="topic_name")}


def in_part(starts: Committed, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ItemError]:
    """Why these partitions cannot be deleted: others of their topics have start offsets too."""
    left = {partition.topic: partition for partition in starts if partition not in partitions}
    why = "Kafka deletes the start offsets of a share group by whole topics, and {} has one too"
    return {each: ItemError(ErrorCode.INVALID_REQUEST, why.format(left[each.topic])) for each in partitions if each.topic in left}


def delete_start_offsets(
    cluster: ClusterClient, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
) -> PartitionResults[None]:
    """Take the start offsets on whole topics away, as there is no request for less: those of ``partitions``."""
    topics = [{"topic_name": topic} for topic in dict.fromkeys(partition.topic for partition in partitions)]
    answer = ask_coordinator(cluster, group_id, DELETE_SHARE_GROUP_OFFSETS, {"group_id": group_id, "topics": topics}, deadline)

    def by_partition(answer: Any) -> dict[TopicPartition, Failure | None]:
        found = {topic.topic_name: failure_in(topic) for topic in answer.responses}
        return {partition: found.get(partition.topic, LEFT_OUT) for partition in partitions}

    return results_of_each(group_id, partitions, answer, by_partition)
