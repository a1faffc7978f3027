"""The partition of a group, with values that Kafka gave."""

from __future__ import annotations

import pytest

from kgctl.coordinator.partitioning import partition_for


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
