"""Many groups with many commits, put into a cluster quickly and checked to be there."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.benchmarks.subject import Size
from tests.support.kafka.data import TIMEOUT_S, admin_client, create_topic, produce

TOPIC = "orders"
RECORDS = 20
COMMITTED = 5
IN_FLIGHT = 50
ROUNDS = 20


def populate(bootstrap: str, size: Size) -> list[str]:
    """``size.groups`` groups without members, each with a commit on every partition of one topic; returns their names."""
    create_topic(bootstrap, TOPIC, size.partitions)
    produce(bootstrap, TOPIC, dict.fromkeys(range(size.partitions), RECORDS))
    names = [f"group-{number:04d}" for number in range(size.groups)]
    admin = admin_client(bootstrap)
    waiting = names
    for _ in range(ROUNDS):
        waiting = [
            name
            for start in range(0, len(waiting), IN_FLIGHT)
            for name in _commit(admin, waiting[start : start + IN_FLIGHT], size)
        ]
        if not waiting:
            return names
    raise RuntimeError(f"{len(waiting)} groups of {size.groups} could not be written")


def _commit(admin: AdminClient, names: Sequence[str], size: Size) -> list[str]:
    """Commits for ``names``, all at once; returns those of which something was refused (a new topic is not known everywhere)."""
    rows = {name: [TopicPartition(TOPIC, partition, COMMITTED) for partition in range(size.partitions)] for name in names}
    asked = [admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, rows[name])]) for name in names]
    answers = [future.result(TIMEOUT_S) for futures in asked for future in futures.values()]
    return [answer.group_id for answer in answers if any(row.error is not None for row in answer.topic_partitions)]
