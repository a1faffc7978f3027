"""The table of librdkafka's properties."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException

from kgctl.admin.properties import CLIENT_PROPERTIES, KNOWN_PROPERTIES, OTHER_PROPERTIES

NOT_A_PROPERTY = "No such configuration property"


def refusal(name: str) -> str:
    """What librdkafka says to a value that no property takes; a name that it does not know is said first."""
    try:
        Consumer({"group.id": "g", name: "\x01no value\x01"}).close()
    except KafkaException as error:
        return str(error.args[0].str())
    return ""


@pytest.mark.parametrize("name", sorted(KNOWN_PROPERTIES - {"plugin.library.paths"}))
def test_the_installed_librdkafka_knows_every_name(name: str) -> None:
    assert NOT_A_PROPERTY not in refusal(name)


def test_it_does_not_know_others() -> None:
    assert NOT_A_PROPERTY in refusal("no.such.property")


def test_no_name_is_in_both_tables() -> None:
    assert not CLIENT_PROPERTIES & OTHER_PROPERTIES
