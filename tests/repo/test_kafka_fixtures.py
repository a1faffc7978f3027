"""The suite's own Apache Kafka works: what other tests stand on."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from tests.support.kafka import (
    KafkaBroker,
    KafkaCluster,
    SecureKafkaBroker,
    commit,
    committed,
    create_topic,
    kcg_rows,
    produce,
    run_kcg,
    unique,
)
from tests.support.kafka.data import admin_client, wait_until_coordinating
from tests.support.kafka.security import MECHANISMS
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.kafka


@pytest.mark.needs("javac")
def test_commit_on_broker_is_seen_by_kafkas_own_tool(kafka_broker: KafkaBroker) -> None:
    topic, group = create_topic(kafka_broker.bootstrap, unique("orders"), 2), unique("payments")
    produce(kafka_broker.bootstrap, topic, {0: 5, 1: 3})
    commit(kafka_broker.bootstrap, group, {(topic, 0): 4, (topic, 1): 0})
    done = run_kcg(["--bootstrap-server", kafka_broker.bootstrap, "--describe", "--group", group])
    rows = {row["PARTITION"]: (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in kcg_rows(done.stdout)}
    assert rows == {"0": ("4", "5", "1"), "1": ("0", "3", "3")}


@pytest.mark.deep
def test_commits_survive_a_kill_and_a_new_start(own_kafka_broker: KafkaBroker) -> None:
    topic = create_topic(own_kafka_broker.bootstrap, "orders")
    commit(own_kafka_broker.bootstrap, "payments", {(topic, 0): 7})
    own_kafka_broker.stop(kill=True)
    own_kafka_broker.start()
    wait_until_coordinating(own_kafka_broker.bootstrap)
    assert committed(own_kafka_broker.bootstrap, "payments") == {("orders", 0): 7}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_user_logs_in_and_sees_what_is_allowed(secure_kafka_broker: SecureKafkaBroker, protocol: str, mechanism: str) -> None:
    """The topics of others, who allow users more, do not matter."""
    mine = [create_topic(secure_kafka_broker.bootstrap, unique(name)) for name in ("hidden", "allowed")]
    secure_kafka_broker.allow("eve", ResourceType.TOPIC, mine[1], [AclOperation.DESCRIBE])
    properties = secure_kafka_broker.client_properties(protocol, mechanism, "eve")
    listed = admin_client(properties["bootstrap.servers"], properties).list_topics(timeout=PATIENCE_S).topics
    assert [topic for topic in mine if topic in listed] == [mine[1]]


@pytest.mark.deep
def test_three_brokers_replicate(three_kafka_brokers: KafkaCluster) -> None:
    topic = create_topic(three_kafka_brokers.bootstrap, unique("orders"), 3, replication=3)
    partitions = admin_client(three_kafka_brokers.bootstrap).list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    assert [sorted(partition.replicas) for partition in partitions.values()] == [[1, 2, 3]] * 3
