"""Which partition of ``__consumer_offsets``, and so which broker, looks after a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.model.java_order import string_hash

if TYPE_CHECKING:
    from kgctl.coordinator.config import CoordinatorConfig


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition of a group among ``partition_count``.

    Kafka: GroupCoordinatorService#partitionFor, with ``Utils.abs``, for which the absolute value of the smallest int is 0.
    """
    value = string_hash(group_id)
    return 0 if value == -(2**31) else abs(value) % partition_count


def replicas_of(group_id: str, config: CoordinatorConfig, brokers: int) -> tuple[int, ...]:
    """The brokers, numbered from 1, with a replica of the group's partition, the preferred leader first.

    Replicas are spread over the brokers one after the other; there are at most as many as brokers.
    """
    partition = partition_for(group_id, config.offsets_topic_num_partitions)
    count = min(config.offsets_topic_replication_factor, brokers)
    return tuple((partition + step) % brokers + 1 for step in range(count))
