"""confluent-kafka's objects in kgctl's terms, and back."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType

from kgctl.admin.confluent import admin
from kgctl.admin.confluent.calls import client_config
from kgctl.model.groups import GroupState, GroupType, OffsetAndMetadata, TopicPartition


def test_every_state_has_kafkas_spelling() -> None:
    known = {each: admin.state(each) for each in ConsumerGroupState}

    assert {each.name for each, found in known.items() if found is GroupState.UNKNOWN} <= {"UNKNOWN", "UNKOWN"}


def test_every_type_has_kafkas_spelling() -> None:
    assert {admin.group_type(each) for each in ConsumerGroupType} == {
        GroupType.UNKNOWN,
        GroupType.CONSUMER,
        GroupType.CLASSIC,
    }
    assert admin.group_type(None) is GroupType.UNKNOWN


@pytest.mark.parametrize("offset", [OffsetAndMetadata(3), OffsetAndMetadata(0, "note"), OffsetAndMetadata(7, "", 0)])
def test_an_offset_survives_the_way_there_and_back(offset: OffsetAndMetadata) -> None:
    made = admin.to_commit(TopicPartition("t", 1), offset)

    assert (made.topic, made.partition) == ("t", 1)
    assert admin.committed(made) == offset


def test_the_users_properties_win_and_those_of_consumers_are_left_out() -> None:
    config = client_config({"bootstrap.servers": "a:1", "client.id": "me", "group.id": "g", "reconnect.backoff.ms": "9"})

    assert config["client.id"] == "me"
    assert config["reconnect.backoff.ms"] == "9"
    assert "group.id" not in config
    assert config["log_level"] == 0


def test_debugging_librdkafka_needs_its_log() -> None:
    assert client_config({"debug": "admin"})["log_level"] == "7"
    assert client_config({"debug": "admin", "log_level": "3"})["log_level"] == "3"
