"""What is kept of a share group's progress: hashes are those that Kafka 4.3.1 gave."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.model.groups import ZERO_UUID
from kgctl.model.share import PartitionState, SharePartitionKey, is_reset, reset_age_ms, share_partition_hash


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


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [
        ("by_duration:PT0S", 0),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:pt1h", 3_600_000),
        ("by_duration:PT-1M61S", 1_000),
        ("by_duration:-PT-2S", 2_000),
        ("by_duration:PT0.0019S", 1),
    ],
)
def test_a_duration_is_read_as_javas(text: str, age_ms: int) -> None:
    assert is_reset(text)
    assert reset_age_ms(text) == age_ms


@pytest.mark.parametrize("text", ["earliest", "latest"])
def test_words(text: str) -> None:
    assert is_reset(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        "EARLIEST",
        "by_duration",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1DT",
        "by_duration:PT-1S",
        "PT1S",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert not is_reset(text)
