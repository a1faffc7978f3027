"""Which partition of ``__consumer_offsets``, and so which broker, looks after a group."""

from __future__ import annotations

from kgctl.model.java_order import string_hash


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition of a group among ``partition_count``.

    Kafka: GroupCoordinatorService#partitionFor, with ``Utils.abs``, for which the absolute value of the smallest int is 0.
    """
    value = string_hash(group_id)
    return 0 if value == -(2**31) else abs(value) % partition_count
