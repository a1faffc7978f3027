"""The order of Java's maps."""

from __future__ import annotations

from kgctl.cli.kafka_tool.java import as_committed, hash_of_partition, in_java_order
from kgctl.model.groups import TopicPartition

REPARTITION, WORDS = "app-11858-856-words-repartition", "words-11858-853"


def test_partitions_of_one_bucket_are_as_the_coordinator_told_them() -> None:
    """Seen on Apache Kafka 4.3.1: with these names partitions of both topics are in one bucket."""
    commits = [TopicPartition(REPARTITION, 1), TopicPartition(REPARTITION, 2), *(TopicPartition(WORDS, n) for n in (0, 1, 2))]
    told = [(WORDS, 1), (REPARTITION, 1), (WORDS, 0), (REPARTITION, 2), (WORDS, 2)]
    assert in_java_order(as_committed(commits), hash_of_partition) == told
