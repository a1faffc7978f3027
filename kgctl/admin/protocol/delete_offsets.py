"""OffsetDelete (KIP-496)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgctl.admin.protocol.answers import partition_results
from kgctl.admin.results import PartitionResults
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.wire.apis import OFFSET_DELETE
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import Connection
from kgctl.wire.deadline import Deadline
from kgctl.wire.routing import LEFT_OUT, Failure, ask_coordinators


def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
) -> PartitionResults[None]:
    """Success also where nothing was committed. A failure of the whole request is on each partition."""
    wanted = list(dict.fromkeys(partitions))
    if not wanted:
        return partition_results({})

    def ask(connection: Connection, groups: list[str]) -> Mapping[str, Any]:
        answer = connection.call(OFFSET_DELETE, {"group_id": group_id, "topics": _topics(wanted)}, deadline)
        return dict.fromkeys(groups, Failure(ErrorCode(answer.error_code)) if answer.error_code else answer)

    answer = ask_coordinators(cluster, [group_id], ask, deadline)[group_id]
    if isinstance(answer, Failure):
        return partition_results(dict.fromkeys(wanted, answer), group_id)
    found = _by_partition(answer)
    return partition_results({partition: found.get(partition, LEFT_OUT) for partition in wanted}, group_id)


def _topics(partitions: Sequence[TopicPartition]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[dict[str, int]]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append({"partition_index": partition})
    return [{"name": topic, "partitions": numbers} for topic, numbers in by_topic.items()]


def _by_partition(answer: Any) -> dict[TopicPartition, Failure | None]:
    return {
        TopicPartition(topic.name, each.partition_index): Failure(ErrorCode(each.error_code)) if each.error_code else None
        for topic in answer.topics
        for each in topic.partitions
    }
