"""What is wrong with a ConsumerGroupHeartbeat before any group is looked at.

Kafka: GroupCoordinatorService#throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from kgctl.coordinator.consumer.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kgctl.coordinator.consumer.refusal import Refusal
from kgctl.coordinator.requests import ConsumerGroupHeartbeat
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode

_CONSUMER_GENERATED_ID_VERSION = 1
"""From this version on the member makes its own id."""


def check_request(shard: Shard, request: ConsumerGroupHeartbeat) -> None:
    """Raises `Refusal` for a request that contradicts itself or lacks what it needs."""
    epoch = request.member_epoch
    needs_id = request.api_version >= _CONSUMER_GENERATED_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH
    _check_blank("MemberId", request.member_id if needs_id else None)
    _check_blank("GroupId", request.group_id)
    _check_blank("InstanceId", request.instance_id)
    _check_blank("RackId", request.rack_id)
    if epoch == 0:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH:
        _require("InstanceId can't be null.", request.instance_id is not None)
    else:
        _require("MemberEpoch is invalid.", epoch > STATIC_LEAVE_EPOCH)
    assignors = shard.config.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = ", ".join(sorted(assignors, reverse=True))  # as Kafka's hash map has them: uniform, range
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}."
        raise Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_join(request: ConsumerGroupHeartbeat) -> None:
    _require("RebalanceTimeoutMs must be provided in first request.", request.rebalance_timeout_ms != -1)
    _require("TopicPartitions must be empty when (re-)joining.", request.topic_partitions == ())
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    _require("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.", subscribes)


def _check_blank(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def _require(message: str, holds: bool) -> None:  # noqa: FBT001 - reads as an assertion
    if not holds:
        raise Refusal(ErrorCode.INVALID_REQUEST, message)
