"""What share fetches and acknowledgements have in common: who asks, what is acknowledged, where a partition's leader is."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.fields import endpoint_of
from kgctl.server.api.share.heartbeat import is_member_id
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import RequestContext
from kgctl.server.runtime import Values
from kgctl.server.share.manager import Outcome, SharePartitionManager
from kgctl.server.share.sessions import SessionKey, TopicIdPartition
from kgctl.server.traffic import Work, waited
from kgctl.share.partition import AcknowledgementBatch, AcknowledgeType, ShareFailure

RENEW_SINCE = 2
"""The version of ShareFetch and ShareAcknowledge with renewals (KIP-1222)."""


def manager_of(context: RequestContext) -> SharePartitionManager:
    """What the asked broker has of share groups."""
    return context.services.shares.of(context.broker)


def refusal(context: RequestContext, body: Any) -> ErrorCode | None:
    """Why the whole request is not looked at."""
    if body.group_id is None:
        return ErrorCode.INVALID_REQUEST if context.profile.is_since("4.3") else ErrorCode.UNKNOWN_SERVER_ERROR
    if not context.may(AclOperation.READ, Resource.GROUP, body.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None if is_member_id(body.member_id) else ErrorCode.INVALID_REQUEST


def lock_timeout_ms(context: RequestContext, group_id: str) -> int:
    """How long the group's members may keep what they acquire."""
    return manager_of(context).group_settings(group_id).share_record_lock_duration_ms


class Named(NamedTuple):
    """A partition that a request names, and its topic's name; None where there is no such topic."""

    partition: TopicIdPartition
    topic: str | None


def named(context: RequestContext, topics: Sequence[Any]) -> Work[list[tuple[Named, Any]]]:
    """The partitions of a request with what it says of each."""
    found = []
    for topic in topics:
        known = context.services.catalog.by_id(topic.topic_id)
        for entry in topic.partitions:
            index = entry if isinstance(entry, int) else entry.partition_index
            found.append((Named(TopicIdPartition(topic.topic_id, index), None if known is None else known.name), entry))
            yield None
        yield None
    return found


def cannot_tell(context: RequestContext, topics: Sequence[str | None]) -> bool:
    """Whether Kafka's authorizer is asked about a topic without a name, which it takes for an error of its own."""
    return context.services.access.is_asked and None in topics


def partition_problem(context: RequestContext, topic: str, partition: TopicIdPartition) -> ErrorCode | None:
    """Why nothing is read from the partition or acknowledged in it."""
    if not context.may(AclOperation.READ, Resource.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not context.services.catalog.has_partition(TopicPartition(topic, partition.partition)):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


class Acknowledging(NamedTuple):
    """Acknowledgements under way: what is known of their partitions by now, and what they wait for."""

    outcomes: Mapping[TopicIdPartition, Outcome | Awaitable[Outcome]]
    known: Mapping[TopicIdPartition, ShareFailure | None]

    def end(self) -> Work[Mapping[TopicIdPartition, ShareFailure | None]]:
        """Wait for them; what came of it for each partition."""
        told = yield from _all(self.outcomes)
        return {**told, **self.known}


def acknowledge(context: RequestContext, body: Any, entries: Sequence[tuple[Named, Any]]) -> Work[Acknowledging]:
    """Begin to acknowledge what a request says of its partitions. Raises `WholeRequestFailed`.

    Kafka leaves a partition without batches out of the answer, unless there is one with some (KafkaApis#handleAcknowledgements).
    """
    with_renewals = context.version >= RENEW_SINCE
    is_renewal = with_renewals and body.is_renew_ack
    results: dict[TopicIdPartition, ShareFailure | None] = {}
    empty: list[TopicIdPartition] = []
    wanted: dict[TopicIdPartition, Sequence[AcknowledgementBatch]] = {}
    for (partition, topic), entry in entries:
        batches = entry.acknowledgement_batches
        error = ErrorCode.UNKNOWN_TOPIC_ID
        if topic is not None:
            is_sound = _is_sound(batches, with_renewals=with_renewals, is_renewal=is_renewal)
            error = (partition_problem(context, topic, partition) if is_sound else ErrorCode.INVALID_REQUEST) or ErrorCode.NONE
        if error is not ErrorCode.NONE:
            results[partition] = ShareFailure(error, None)
        elif not batches:
            empty.append(partition)
        else:
            wanted[partition] = [
                AcknowledgementBatch(each.first_offset, each.last_offset, tuple(each.acknowledge_types)) for each in batches
            ]
        yield None
    if not wanted:
        return Acknowledging({}, results)
    outcomes = manager_of(context).acknowledge(SessionKey(body.group_id, body.member_id), wanted)
    return Acknowledging(outcomes, {**results, **dict.fromkeys(empty)})


def _all(outcomes: Mapping[TopicIdPartition, Any]) -> Work[dict[TopicIdPartition, Outcome]]:
    told: dict[TopicIdPartition, Outcome] = {}
    for partition, outcome in outcomes.items():
        told[partition] = yield from waited(outcome)
        yield None
    return told


def _is_sound(batches: Sequence[Any], *, with_renewals: bool, is_renewal: bool) -> bool:
    """Whether batches are in order, and each has one type or one for each record.

    Kafka: KafkaApis#validateAcknowledgementBatches.
    """
    end = -1
    last = AcknowledgeType.RENEW if with_renewals else AcknowledgeType.REJECT
    for batch in batches:
        types = batch.acknowledge_types
        if not end <= batch.first_offset <= batch.last_offset or not types:
            return False
        if len(types) > 1 and batch.last_offset - batch.first_offset != len(types) - 1:
            return False
        if not all(AcknowledgeType.GAP <= each <= last for each in types):
            return False
        if AcknowledgeType.RENEW in types and not is_renewal:
            return False
        end = batch.last_offset
    return True


_LEADER_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class ShareLeaders:
    """Tells a client the leaders of partitions that it has asked the wrong broker about."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._brokers: dict[int, Values] = {}

    def of(self, partition: TopicIdPartition, error: ErrorCode) -> Values:
        """What is said of a partition's leader beside this error."""
        topic = self._context.services.catalog.by_id(partition.topic_id)
        if error not in _LEADER_ELSEWHERE or topic is None:
            return {"leader_id": 0, "leader_epoch": 0}
        leader = self._context.services.cluster.leader(topic.name, partition.partition)
        self._brokers[leader.node_id] = {"node_id": leader.node_id, **endpoint_of(leader, self._context), "rack": None}
        return {"leader_id": leader.node_id, "leader_epoch": LEADER_EPOCH}

    def endpoints(self) -> list[Values]:
        """Where the leaders are that were told."""
        return [*self._brokers.values()]


def by_topic(entries: Mapping[TopicIdPartition, Values]) -> list[Values]:
    """The answers for partitions under their topics."""
    topics: dict[Any, Values] = {}
    for (topic_id, index), entry in entries.items():
        topic = topics.setdefault(topic_id, {"topic_id": topic_id, "partitions": []})
        topic["partitions"].append({"partition_index": index, **entry})
    return [*topics.values()]
