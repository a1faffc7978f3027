"""From settings to an admin; nothing is contacted yet."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kgctl.admin.confluent import ConfluentGroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.admin.live import LiveGroupAdmin
from kgctl.errors import UnsupportedError, UsageError
from kgctl.model.groups import TopicPartition

SIGNED = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
}


@pytest.mark.parametrize(
    "settings",
    [
        ConnectionSettings("127.0.0.1:1"),
        ConnectionSettings(properties={"bootstrap.servers": "127.0.0.1:1"}),
        ConnectionSettings(properties={"metadata.broker.list": "127.0.0.1:1"}),
    ],
)
def test_a_cluster_is_administered_over_both_clients(settings: ConnectionSettings) -> None:
    with connect(settings) as admin:
        assert isinstance(admin, LiveGroupAdmin)


def test_no_cluster_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no cluster given"):
        connect(ConnectionSettings())


def test_a_malformed_address_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="expected host:port"):
        connect(ConnectionSettings("127.0.0.1:x"))


def test_a_login_that_only_librdkafka_covers_says_what_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), connect(ConnectionSettings("127.0.0.1:1", properties=SIGNED)) as admin:
        assert isinstance(admin, ConfluentGroupAdmin)
        with pytest.raises(UnsupportedError, match=r"does not cover sasl\.oauthbearer\.grant\.type urn"):
            admin.delete_offsets("g", [TopicPartition("t", 0)])

    assert "so all goes through librdkafka" in caplog.text


def test_properties_that_librdkafka_refuses_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"librdkafka does not take these properties: .*GSSAPI"):
        connect(ConnectionSettings("127.0.0.1:1", properties={"security.protocol": "SASL_PLAINTEXT"}))


def test_secrets_are_in_no_representation() -> None:
    settings = ConnectionSettings("a:1", embedded=Path("x"), properties={"sasl.password": "hidden"})

    assert "hidden" not in repr(settings)
