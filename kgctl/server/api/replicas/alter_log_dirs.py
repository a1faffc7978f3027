"""AlterReplicaLogDirs: there is one folder, and everything lies in it. Kafka: ReplicaManager#alterReplicaLogDirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.fields import Refused
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, finish


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a partition; moving one to where it lies is done, anything else cannot be."""
    return (yield from _results(body, lambda path, partition: _outcome(context, path, partition)))


def _no_right(_context: RequestContext, body: Any, refused: Refused) -> Values:
    return finish(_results(body, lambda *_: refused[0]))


def _results(body: Any, outcome: Callable[[str, TopicPartition], ErrorCode]) -> Work[Values]:
    results: dict[str, dict[int, ErrorCode]] = defaultdict(dict)
    for folder in body.dirs:
        yield None
        for topic in folder.topics:
            yield None
            for index in topic.partitions:
                yield None
                results[topic.name][index] = outcome(folder.path, TopicPartition(topic.name, index))
    return {
        "results": [
            {"topic_name": name, "partitions": [{"partition_index": index, "error_code": code} for index, code in found.items()]}
            for name, found in results.items()
        ]
    }


def _outcome(context: RequestContext, path: str, partition: TopicPartition) -> ErrorCode:
    if path != context.services.data.folder:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not context.services.catalog.has_partition(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_here = context.services.cluster.leader(*partition) is context.broker
    return ErrorCode.NONE if is_here else ErrorCode.REPLICA_NOT_AVAILABLE


SPEC = ApiSpec(34, "AlterReplicaLogDirs", 1, 2, handle, right=ClusterRight(AclOperation.ALTER, _no_right))
