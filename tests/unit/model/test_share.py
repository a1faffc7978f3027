"""What is kept of a share group's progress: hashes are those that Kafka 4.3.1 gave."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.model.groups import ZERO_UUID
from kgctl.model.share import PartitionState, SharePartitionKey, share_partition_hash


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (SharePartitionKey("g", ZERO_UUID, 0), 6_076),
        (SharePartitionKey("my-group", UUID("11111111-1111-1111-2222-222222222222"), 7), 1_028_114_622),
        (SharePartitionKey("gruppe-\u00e4", UUID("00000000-0000-0001-0000-0000ffffffff"), 49), -595_622_302),
    ],
)
def test_the_hash_of_a_share_partition_is_java_s(key: SharePartitionKey, expected: int) -> None:
    assert share_partition_hash(key) == expected


def test_a_partition_of_which_nothing_is_kept_has_no_start_offset() -> None:
    assert PartitionState() == PartitionState(0, -1, -1, (), 0)
