"""The partition of a group, with values that Kafka gave."""

from __future__ import annotations

import pytest

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.partitioning import partition_for, replicas_of


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("g", 3),
        ("my-group", 12),
        ("payments", 13),
        ("console-consumer-12345", 6),
        ("", 0),
        ("polygenelubricants", 0),
        ("gruppe-\u00e4", 48),
    ],
)
def test_partition_is_kafkas(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition


def test_the_only_partition_has_every_group() -> None:
    assert partition_for("payments", 1) == 0


def test_replicas_are_the_brokers_after_the_partitions_own() -> None:
    config = CoordinatorConfig.from_properties({"offsets.topic.num.partitions": "50", "offsets.topic.replication.factor": "3"})
    first = partition_for("g", 50) % 5
    assert replicas_of("g", config, 5) == tuple((first + step) % 5 + 1 for step in range(3))
    assert replicas_of("g", config, 1) == (1,)
