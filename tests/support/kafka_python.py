"""kafka-python as the second opinion on what a cluster holds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kgctl.model.groups import TopicPartition

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas by importlib.resources.read_text
    import kafka
    from kafka.admin import OffsetSpec


def subscribe(consumer: Any, topic: str) -> None:
    """Subscribe, and return when the consumer has seen the topic's partitions. It joins its group with the first poll.

    kafka-python 3.0.12 forgets that it wants to know a topic when an answer for others is still on its way: with a slow server
    the first of a group then assigns nothing, and notices five minutes later. If it learns of the topic after its first join, it
    joins once more.
    """
    consumer.subscribe([topic])
    while not consumer.partitions_for_topic(topic):
        pass


@contextmanager
def _client(bootstrap: str) -> Iterator[kafka.KafkaAdminClient]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            yield client
        finally:
            client.close()


def committed_offsets(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    """The committed offsets of a group."""
    with _client(bootstrap) as client:
        found = client.list_group_offsets({group: None})[group]
    return {TopicPartition(each.topic, each.partition): offset.offset for each, offset in found.items()}


def log_bounds(bootstrap: str, partition: TopicPartition) -> tuple[int, int]:
    """Log start and log end of one partition."""
    asked = kafka.TopicPartition(*partition)
    with _client(bootstrap) as client:
        start = client.list_partition_offsets({asked: OffsetSpec.EARLIEST})[asked].offset
        end = client.list_partition_offsets({asked: OffsetSpec.LATEST})[asked].offset
    return start, end


def group_ids(bootstrap: str) -> set[str]:
    """All groups."""
    with _client(bootstrap) as client:
        return {each["group_id"] for each in client.list_groups()}
