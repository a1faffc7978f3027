"""A live member whose user lacks a right, on Apache Kafka with access control lists: which exception, and what it says."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from kgctl import ConsumerGroup, Generation
from kgctl.errors import AuthError, CommitError
from tests.support.kafka.data import create_topic, unique
from tests.support.kafka.security import SecureKafkaBroker
from tests.support.patience import PATIENCE_MS

pytestmark = pytest.mark.kafka

READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE


def member(broker: SecureKafkaBroker, group_id: str, topic: str, protocol: Any) -> ConsumerGroup:
    properties = broker.client_properties("SASL_PLAINTEXT", user="eve")
    return ConsumerGroup(properties.pop("bootstrap.servers"), group_id, [topic], protocol=protocol, properties=properties)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    ("on_group", "on_topic", "lacking"),
    [
        (None, READ, "group"),
        (DESCRIBE, READ, "group"),
        (READ, None, "topic"),
        (READ, DESCRIBE, "topic"),
    ],
)
def test_a_right_that_is_lacking(
    secure_kafka_broker: SecureKafkaBroker,
    protocol: str,
    on_group: AclOperation | None,
    on_topic: AclOperation | None,
    lacking: str,
) -> None:
    names = {"group": unique("group"), "topic": create_topic(secure_kafka_broker.bootstrap, unique("topic"))}
    for kind, name, operation in [("group", names["group"], on_group), ("topic", names["topic"], on_topic)]:
        if operation is not None:
            secure_kafka_broker.allow("eve", ResourceType[kind.upper()], name, [operation])

    with member(secure_kafka_broker, names["group"], names["topic"], protocol) as group, pytest.raises(AuthError) as caught:
        group.next(timeout_ms=PATIENCE_MS)

    assert caught.value.code == f"{lacking.upper()}_AUTHORIZATION_FAILED"
    assert caught.value.message.startswith(
        f"not authorised for {lacking} '{names[lacking]}': user 'eve' lacks the right READ on the {lacking} (kafka-acls --add"
    )


def commit_until_refused(generation: Generation, topic: str) -> None:
    """A broker hears of a changed list a moment later."""
    for offset in itertools.count(2):
        generation.commit({(topic, 0): offset})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_right_that_is_taken_away(secure_kafka_broker: SecureKafkaBroker, protocol: str) -> None:
    group_id, topic = unique("group"), create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    secure_kafka_broker.allow("eve", ResourceType.GROUP, group_id, [READ])
    secure_kafka_broker.allow("eve", ResourceType.TOPIC, topic, [READ])
    with member(secure_kafka_broker, group_id, topic, protocol) as group:
        generation = group.next(timeout_ms=PATIENCE_MS)
        generation.commit({(topic, 0): 1})
        secure_kafka_broker.revoke("eve", ResourceType.TOPIC, [topic])

        with pytest.raises(CommitError) as caught:
            commit_until_refused(generation, topic)

    assert caught.value.code == "TOPIC_AUTHORIZATION_FAILED"
