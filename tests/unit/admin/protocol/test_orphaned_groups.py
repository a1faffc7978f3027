"""Groups on partitions of the offsets topic that have no leader."""

from __future__ import annotations

from kgctl.admin.protocol.orphaned_groups import OFFSETS_TOPIC, orphaned_groups
from kgctl.admin.results import ItemError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node
from kgctl.wire.cluster import ClusterLayout, TopicLayout

NODES = {number: Node(number, "127.0.0.1", 9092 + number) for number in (1, 2)}


def missing(leaders: dict[int, int], replicas: dict[int, tuple[int, ...]]) -> dict[str, ItemError]:
    return dict(orphaned_groups(ClusterLayout(NODES, {OFFSETS_TOPIC: TopicLayout(0, leaders, replicas)})))


def not_listed(who: str, count: int) -> ItemError:
    what = f"groups on {count} of 4 partitions of __consumer_offsets have no coordinator and are not listed"
    return ItemError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{who}{what}")


def test_nothing_is_missing_where_every_partition_has_a_leader() -> None:
    assert missing({0: 1, 1: 2}, {0: (1,), 1: (2, 7)}) == {}


def test_brokers_that_are_gone_are_named_with_what_they_had() -> None:
    found = missing({0: 1, 1: -1, 2: -1, 3: -1}, {0: (1,), 1: (7,), 2: (7,), 3: (9, 1, 8)})

    assert found == {"broker 7": not_listed("broker 7 down: ", 2), "brokers 8, 9": not_listed("brokers 8, 9 down: ", 1)}


def test_a_partition_whose_brokers_are_all_there_is_the_topics_own_trouble() -> None:
    assert missing({0: 1, 1: 2, 2: 1, 3: -1}, {3: (1, 2)}) == {OFFSETS_TOPIC: not_listed("", 1)}


def test_an_offsets_topic_that_is_not_there_or_not_shown_says_nothing() -> None:
    assert orphaned_groups(ClusterLayout(NODES)) == {}
    assert orphaned_groups(ClusterLayout(NODES, {OFFSETS_TOPIC: TopicLayout(29, {})})) == {}
