"""OffsetForLeaderEpoch: there is one epoch, and it ends where the log ends."""

from __future__ import annotations

from functools import partial
from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.fields import partition_error
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each

UNDEFINED = -1


def handle(context: RequestContext, body: Any) -> Work[Values]:
    topics = []
    for topic in body.topics:
        partitions = yield from each(topic.partitions, partial(_partition, context, topic.topic))
        topics.append({"topic": topic.topic, "partitions": partitions})
        yield None
    return {"topics": topics}


def _partition(context: RequestContext, topic: str, entry: Any) -> dict[str, Any]:
    partition = TopicPartition(topic, entry.partition)
    error = partition_error(context, AclOperation.DESCRIBE, partition, entry.current_leader_epoch)
    if error is not ErrorCode.NONE or entry.leader_epoch != LEADER_EPOCH:
        return {"error_code": error, "partition": entry.partition, "leader_epoch": UNDEFINED, "end_offset": UNDEFINED}
    return {
        "error_code": ErrorCode.NONE,
        "partition": entry.partition,
        "leader_epoch": LEADER_EPOCH,
        "end_offset": context.services.data.bounds(partition)[1],
    }


SPEC = ApiSpec(23, "OffsetForLeaderEpoch", 2, 4, handle)
