"""The hash of what a group subscribes to, by Kafka's own values."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.coordinator.modern.topics import group_hash, topic_hash
from kgctl.model.groups import MetadataImage, TopicMetadata

A = TopicMetadata("a", UUID(int=(1 << 64) + 1), 4)
B = TopicMetadata("b", UUID(int=(2 << 64) + 2), 2)
IMAGE = MetadataImage({"a": A, "b": B})


def test_a_topic() -> None:
    assert topic_hash(A) == 4820124364570110643


def test_racks_count_in_order_of_name() -> None:
    racks = (("r2", "r1"), ("zone-ä",))

    assert topic_hash(TopicMetadata("a", A.topic_id, 2, racks)) == 8969516913025168675


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (["a"], 1187049698849029284),
        (["b"], 1858990977811292233),
        (["a", "b"], -2049430257243996320),
        (["b", "a"], -2049430257243996320),
        (["a", "gone"], 1187049698849029284),
        (["gone"], 0),
        ([], 0),
    ],
)
def test_a_group_hashes_the_topics_that_exist_by_name(names: list[str], value: int) -> None:
    assert group_hash(names, IMAGE) == value
