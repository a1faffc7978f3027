"""What several APIs share: authorised operations, errors under their topics, why a broker does not answer for a partition."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kgctl.errors import StorageError
from kgctl.model.access import NOT_TOLD, AclOperation, Resource
from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.cluster import Broker
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work
from kgctl.server.transactions import FENCED_SINCE, ProducerIdentity, Transaction

log = logging.getLogger(__name__)

Refused = tuple[ErrorCode, str]
NO_RIGHT: Mapping[Resource, Refused] = {
    resource: (error, KAFKAS_WORDS[error])
    for resource, error in (
        (Resource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (Resource.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (Resource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    )
}
"""What whoever may not do something with a resource is told: Kafka's error and its words."""


def unsupported(_: RequestContext, __: Any) -> Values:
    """The answer where the groups that an API is for are off, of APIs whose error stands at the top."""
    return {"error_code": ErrorCode.UNSUPPORTED_VERSION}


def refuse(_context: RequestContext, _body: Any, refused: Refused) -> Values:
    """The answer to whoever has no right to the cluster, of APIs whose error stands at the top."""
    return {"error_code": refused[0], "error_message": refused[1]}


def each_once(topics: Iterable[Any], whose: str, entries: str, index: str) -> Work[list[tuple[Any, dict[int, list[Any]]]]]:
    """Topics with all that a request says of each of their partitions, by the names of the fields: brokers keep maps of them."""
    found: dict[Any, tuple[Any, dict[int, list[Any]]]] = {}
    for topic in topics:
        _, said = found.setdefault(getattr(topic, whose), (topic, {}))
        for entry in getattr(topic, entries):
            said.setdefault(getattr(entry, index), []).append(entry)
            yield None
        yield None
    return list(found.values())


TIMED_OUT: tuple[ErrorCode, None] = (ErrorCode.REQUEST_TIMED_OUT, None)


def has_no_time(body: Any) -> bool:
    """Whether the controller is given no time at all: it drops such a request from its queue. Kafka: KafkaEventQueue."""
    return int(body.timeout_ms) <= 0


def cluster_operations(context: RequestContext, *, is_asked: bool) -> int:
    """What whoever asks may do with the cluster; nothing where it is not theirs to see."""
    if not is_asked:
        return NOT_TOLD
    return context.operations(Resource.CLUSTER) if context.may(AclOperation.DESCRIBE, Resource.CLUSTER) else 0


def endpoint_of(broker: Broker, context: RequestContext) -> dict[str, Any]:
    """Where whoever asks finds a broker, by the listener that they came in by; as most answers say it."""
    host, port = broker.at(context.session.listener).told
    return {"host": host, "port": port}


class TopicErrors:
    """Collects (topic, partition, error); a topic stands where it first appeared."""

    def __init__(self) -> None:
        self._topics: dict[tuple[str, UUID | None], list[dict[str, Any]]] = {}

    def add(self, topic: str, topic_id: UUID | None, partition: int, error: ErrorCode) -> None:
        entry = {"partition_index": partition, "error_code": error}
        self._topics.setdefault((topic, topic_id), []).append(entry)

    def merge(self, results: Iterable[tuple[TopicPartition, ErrorCode]], ids: dict[str, UUID | None]) -> Work[None]:
        """The coordinator's outcomes, after those that never reached it (Kafka: OffsetCommitResponse.Builder#merge)."""
        for partition, error in results:
            self.add(partition.topic, ids.get(partition.topic), partition.partition, error)
            yield None

    def topics(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "topic_id": topic_id, "partitions": partitions}
            for (name, topic_id), partitions in self._topics.items()
        ]


def storage_failed(error: StorageError) -> tuple[ErrorCode, str]:
    """Code and message of a change that could not be written, one line of which is logged. Nothing of it was done."""
    log.error("%s", error)
    return ErrorCode.KAFKA_STORAGE_ERROR, "Disk error when trying to access log file on the disk."


def assignment_problem(
    context: RequestContext, partitions: Iterable[Sequence[int]], replication: int | None = None
) -> str | None:
    """What is wrong with the replicas that a client names for partitions, or None. ``replication``: of the partitions before.

    Kafka: ReplicationControlManager#validateManualPartitionAssignment.
    """
    known, start = {broker.node_id for broker in context.services.cluster.brokers}, "The manual partition assignment includes"
    for replicas in partitions:
        if not replicas:
            return f"{start} an empty replica list."
        for place, node_id in enumerate(in_order := sorted(replicas)):
            if node_id not in known:
                return f"{start} broker {node_id}, but no such broker is registered."
            if node_id in in_order[:place]:
                return f"{start} the broker {node_id} more than once."
        if len(replicas) != (replication or len(replicas)):
            return (
                f"{start} a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, "
                f"which have {replication} replica(s)."
            )
        replication = len(replicas)
    return None


NO_EPOCH = -1


def partition_error(
    context: RequestContext, operation: AclOperation, partition: TopicPartition, leader_epoch: int = NO_EPOCH
) -> ErrorCode:
    """NONE when the asked broker leads it in the epoch that the client knows, and the client may do this with its topic."""
    if not context.may(operation, Resource.TOPIC, partition.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not context.services.catalog.has_partition(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if context.services.cluster.leader(partition.topic, partition.partition) is not context.broker:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if leader_epoch > LEADER_EPOCH:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE


def transaction_of(context: RequestContext, body: Any) -> tuple[Transaction | None, ErrorCode]:
    """The producer's transaction, or why there is none, or none for it."""
    if not context.may(AclOperation.WRITE, Resource.TRANSACTIONAL_ID, body.transactional_id):
        return None, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    identity = ProducerIdentity(body.transactional_id, body.producer_id, body.producer_epoch)
    return known_to(context, *context.services.transactions.find(identity))


def known_to(context: RequestContext, transaction: Transaction | None, error: ErrorCode) -> tuple[Transaction | None, ErrorCode]:
    """Return the error in a form that versions 0 and 1 know: they lack PRODUCER_FENCED."""
    if error is ErrorCode.PRODUCER_FENCED and context.version < FENCED_SINCE:
        return None, ErrorCode.INVALID_PRODUCER_EPOCH
    return transaction, error
