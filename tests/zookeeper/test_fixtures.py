"""What the other tests of this folder stand on: ZooKeeper and Apache Kafka 1.1.1 work here."""

from __future__ import annotations

import pytest
from kazoo.client import KazooClient

from tests.support.zookeeper.old_kafka import OldKafka, wait_until

pytestmark = pytest.mark.zookeeper


def test_each_test_has_a_tree_of_its_own(kazoo: KazooClient) -> None:
    assert kazoo.get_children("/") == []


@pytest.mark.deep  # test_old_kafka.py begins with the same
@pytest.mark.kafka
def test_old_consumer_registers_reads_and_commits_in_zookeeper(old_kafka: OldKafka) -> None:
    old_kafka.create_topic("fixtures", 2)
    old_kafka.produce("fixtures", {0: 3, 1: 2})
    consumer = old_kafka.consumer("readers", "fixtures", "readers")
    try:
        wait_until("all records are read", lambda: len(consumer.records) == 5)
        wait_until("all offsets are committed", lambda: len(old_kafka.describe("readers")) == 2)
    finally:
        consumer.stop()
    rows = old_kafka.describe("readers")
    assert {key: (row["CURRENT-OFFSET"], row["LAG"]) for key, row in rows.items()} == {
        ("fixtures", 0): ("3", "0"),
        ("fixtures", 1): ("2", "0"),
    }
    assert "readers" in old_kafka.list_groups()  # the broker is the session's
