"""``--command-config`` and ``-X``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.admin.properties import load_command_config, parse_x
from kgctl.errors import UsageError


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_java_clients_file_is_read(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        """# as for kafka-consumer-groups.sh
bootstrap.servers=a:1,\\
                  b:2
security.protocol=sasl_ssl
sasl.mechanism=scram-sha-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
""",
    )

    assert load_command_config(path) == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
    }


def test_librdkafkas_names_may_stand_beside_javas(tmp_path: Path) -> None:
    path = file(tmp_path, "sasl.mechanisms = plain\nssl.ca.location = /ca.pem\nenable.ssl.certificate.verification=FALSE\n")

    assert load_command_config(path) == {
        "sasl.mechanisms": "PLAIN",
        "ssl.ca.location": "/ca.pem",
        "enable.ssl.certificate.verification": "false",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=1\n", r"client\.properties:1: a: no such property$"),
        ("xyz=1\n", r"client\.properties:1: xyz: no such property$"),
        ("bootstrap.server=a:1\n", r"bootstrap\.server: no such property; did you mean bootstrap\.servers\?"),
        ("security.protocoll=SSL\n", r"no such property; did you mean security\.protocol\?"),
        ("\n# x\nsasl.usename=u\n", r"client\.properties:3: sasl\.usename: no such property; did you mean sasl\.username\?"),
        ("security.protocol=TLS\n", r":1: security\.protocol: 'TLS' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("\nssl.truststore.location=t.jks\n", r":2: ssl\.truststore\.location: a trust store of type JKS cannot be read"),
        ("enable.ssl.certificate.verification=maybe", r":1: .*: 'maybe' is neither true nor false"),
        ("client.id=\\u00", r":1: malformed \\u escape"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_command_config(file(tmp_path, text))


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*nosuch: No such file"):
        load_command_config(tmp_path / "nosuch")
    with pytest.raises(UsageError, match="cannot read"):
        load_command_config(tmp_path)
    (tmp_path / "binary").write_bytes(b"a=\xff\xfe")
    with pytest.raises(UsageError, match=r"not UTF-8 text \(byte 2\)"):
        load_command_config(tmp_path / "binary")


def test_x_takes_any_property_and_the_last_wins() -> None:
    assert parse_x(["client.id=a=b", "client.id= c", "security.protocol=ssl"]) == {
        "client.id": " c",
        "security.protocol": "SSL",
    }


def test_x_takes_javas_names_too() -> None:
    assert parse_x(["ssl.truststore.type=PEM", "ssl.truststore.location=ca.pem"]) == {"ssl.ca.location": "ca.pem"}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("client.id", "-X client.id: expected key=value"),
        ("=x", "-X =x: expected key=value"),
        ("sasl.pasword=x", "-X sasl.pasword: no such property; did you mean sasl.password?"),
        ("security.protocol=x", "-X security.protocol: 'x' is none of"),
        ("socket.timeout.ms=abc", "-X socket.timeout.ms: 'abc' is not a number"),
        ("request.timeout.ms=5s", "-X request.timeout.ms: '5s' is not a number"),
        ("message.max.bytes=", "-X message.max.bytes: '' is not a number"),
    ],
)
def test_a_malformed_x_is_a_usage_error(argument: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_x([argument])
    assert caught.value.message.startswith(message)
