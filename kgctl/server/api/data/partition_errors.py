"""What keeps a broker from answering for a partition."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.server.call import Call
from kgctl.server.partition_data import LEADER_EPOCH

NO_EPOCH = -1


def partition_error(call: Call, partition: TopicPartition, leader_epoch: int = NO_EPOCH) -> ErrorCode:
    """NONE when the asked broker leads it in the epoch that the client knows."""
    if not call.services.catalog.has_partition(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if call.services.cluster.leader(partition.topic, partition.partition) is not call.broker:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if leader_epoch > LEADER_EPOCH:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE
