"""Apache Kafka 4.3.1 as a component of the tests: brokers on loopback, what to put into them, and the tools that it ships."""

from __future__ import annotations

from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.data import admin_client, commit, committed, create_topic, delete_topic, produce, unique
from tests.support.kafka.security import SecureKafkaBroker
from tests.support.kafka.tools import kcg_rows, run_kafka_tool, run_kcg

__all__ = [
    "KafkaBroker",
    "KafkaCluster",
    "SecureKafkaBroker",
    "admin_client",
    "commit",
    "committed",
    "create_topic",
    "delete_topic",
    "kcg_rows",
    "produce",
    "run_kafka_tool",
    "run_kcg",
    "unique",
]
