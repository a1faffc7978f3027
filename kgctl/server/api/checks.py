"""What keeps a broker from answering for a partition, or for a producer's transaction."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import RequestContext
from kgctl.server.transactions import FENCED_SINCE, ProducerIdentity, Transaction

NO_EPOCH = -1


def partition_error(context: RequestContext, partition: TopicPartition, leader_epoch: int = NO_EPOCH) -> ErrorCode:
    """NONE when the asked broker leads it in the epoch that the client knows."""
    if not context.services.catalog.has_partition(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if context.services.cluster.leader(partition.topic, partition.partition) is not context.broker:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if leader_epoch > LEADER_EPOCH:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE


def transaction_of(context: RequestContext, body: Any) -> tuple[Transaction | None, ErrorCode]:
    """The producer's transaction, or why there is none."""
    identity = ProducerIdentity(body.transactional_id, body.producer_id, body.producer_epoch)
    return known_to(context, *context.services.transactions.find(identity))


def known_to(context: RequestContext, transaction: Transaction | None, error: ErrorCode) -> tuple[Transaction | None, ErrorCode]:
    """Versions 0 and 1 have no PRODUCER_FENCED."""
    if error is ErrorCode.PRODUCER_FENCED and context.version < FENCED_SINCE:
        return None, ErrorCode.INVALID_PRODUCER_EPOCH
    return transaction, error
