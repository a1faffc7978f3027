"""DescribeLogDirs: how many bytes each partition has. Kafka: ReplicaManager#describeLogDirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.fields import refuse
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values


def handle(context: RequestContext, body: Any) -> Values:
    """One folder, with what was asked for and is led by this broker; all of it where nothing is named."""
    sizes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for partition in dict.fromkeys(_asked(context, body)):
        size = context.services.data.size(partition)
        sizes[partition.topic].append({"partition_index": partition.partition, "partition_size": size, "offset_lag": 0})
    folder = {
        "error_code": ErrorCode.NONE,
        "log_dir": context.services.data.folder,
        "topics": [{"name": topic, "partitions": partitions} for topic, partitions in sizes.items()],
        **context.services.data.room(),
    }
    return {"error_code": ErrorCode.NONE, "results": [folder]}


def _asked(context: RequestContext, body: Any) -> Iterable[TopicPartition]:
    catalog, cluster = context.services.catalog, context.services.cluster
    if body.topics is None:
        named = ((topic.name, range(topic.partition_count)) for topic in catalog.topics.values())
    else:
        named = ((topic.topic, topic.partitions) for topic in body.topics)
    for topic, partitions in named:
        for index in partitions:
            partition = TopicPartition(topic, index)
            if catalog.has_partition(partition) and cluster.leader(topic, index) is context.broker:
                yield partition


SPEC = ApiSpec(
    35, "DescribeLogDirs", 1, 5, handle, runs_in_thread=lambda *_: True, right=ClusterRight(AclOperation.DESCRIBE, refuse)
)
