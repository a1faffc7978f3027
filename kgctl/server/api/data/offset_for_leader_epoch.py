"""OffsetForLeaderEpoch: there is one epoch, and it ends where the log ends."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.server.api.checks import partition_error
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import ApiSpec, Call, Values

UNDEFINED = -1


def handle(call: Call, body: Any) -> Values:
    """One result a partition."""
    return {
        "topics": [
            {"topic": topic.topic, "partitions": [_partition(call, topic.topic, entry) for entry in topic.partitions]}
            for topic in body.topics
        ]
    }


def _partition(call: Call, topic: str, entry: Any) -> dict[str, Any]:
    partition = TopicPartition(topic, entry.partition)
    error = partition_error(call, partition, entry.current_leader_epoch)
    if error is not ErrorCode.NONE or entry.leader_epoch != LEADER_EPOCH:
        return {"error_code": error, "partition": entry.partition, "leader_epoch": UNDEFINED, "end_offset": UNDEFINED}
    return {
        "error_code": ErrorCode.NONE,
        "partition": entry.partition,
        "leader_epoch": LEADER_EPOCH,
        "end_offset": call.services.data.bounds(partition)[1],
    }


SPEC = ApiSpec(23, "OffsetForLeaderEpoch", 2, 4, handle)
