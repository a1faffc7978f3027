"""librdkafka's properties as the connection takes them."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.wire.settings import Address, SaslSettings, TlsSettings, WireSettings, not_covered, parse_bootstrap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1", (Address("a", 1),)),
        ("a", (Address("a", 9092),)),
        ("a:1, b:2", (Address("a", 1), Address("b", 2))),
        ("[::1]:9093", (Address("::1", 9093),)),
        ("[::1]", (Address("::1", 9092),)),
        ("SASL_SSL://a:1", (Address("a", 1),)),
        ("a:1,,", (Address("a", 1),)),
    ],
)
def test_bootstrap_servers_are_read_as_clients_read_them(text: str, expected: tuple[Address, ...]) -> None:
    assert parse_bootstrap(text) == expected


@pytest.mark.parametrize("text", ["", ",", "a:", "a:x", "a:0", "a:65536", ":1", "::1", "a b:1", "a:-1", "user@a:1", "ftp://a:1"])
def test_a_malformed_bootstrap_server_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="bootstrap server"):
        parse_bootstrap(text)


@pytest.mark.parametrize(("text", "named"), [("http://a:8082", "as in a:9092"), ("b:1,HTTPS://a", "as in a:9092")])
def test_a_web_service_is_no_broker(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=f"web service; .* {named}"):
        parse_bootstrap(text)


def test_an_address_shows_ipv6_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a", 9092)) == "a:9092"


def test_plaintext_needs_nothing_but_a_server() -> None:
    assert WireSettings.from_properties({"bootstrap.servers": "a:1"}) == WireSettings((Address("a", 1),))


def test_all_of_tls_and_sasl_is_taken_over() -> None:
    settings = WireSettings.from_properties(
        {
            "bootstrap.servers": "a:1",
            "client.id": "me",
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": "ca",
            "ssl.certificate.location": "crt",
            "ssl.key.location": "key",
            "ssl.key.password": "pw",
            "ssl.crl.location": "crl",
            "ssl.cipher.suites": "X",
            "ssl.endpoint.identification.algorithm": "none",
            "enable.ssl.certificate.verification": "false",
            "sasl.mechanisms": "scram-sha-256",
            "sasl.username": "u",
            "sasl.password": "p",
            "broker.address.family": "v4",
            "receive.message.max.bytes": "1000",
        }
    )

    tls = TlsSettings("ca", None, "crt", None, "key", None, "pw", "crl", "X", verify=False, check_hostname=False)
    assert settings == WireSettings((Address("a", 1),), "me", tls, SaslSettings("SCRAM-SHA-256", "u", "p"), "v4", 1000)


def test_passwords_are_in_no_representation() -> None:
    settings = WireSettings.from_properties(
        {
            "bootstrap.servers": "a:1",
            "security.protocol": "SASL_SSL",
            "ssl.key.password": "hidden-key",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "hidden-login",
        }
    )

    assert "hidden" not in repr(settings)


def test_a_probed_authority_is_the_systems_own() -> None:
    settings = WireSettings.from_properties({"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.ca.location": "probe"})

    assert settings.tls == TlsSettings()


@pytest.mark.parametrize("missing", ["sasl.username", "sasl.password"])
def test_sasl_without_a_login_is_a_usage_error(missing: str) -> None:
    properties = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
        missing: "",
    }

    with pytest.raises(UsageError, match=missing):
        WireSettings.from_properties(properties)


def test_a_number_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"receive\.message\.max\.bytes: 'much'"):
        WireSettings.from_properties({"bootstrap.servers": "a:1", "receive.message.max.bytes": "much"})


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, None),
        ({"sasl.mechanism": "GSSAPI"}, None),
        ({"security.protocol": "SASL_SSL"}, "the SASL mechanism GSSAPI"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}, None),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
            },
            "sasl.oauthbearer.metadata.authentication.type azure_imds",
        ),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "plain"}, None),
        ({"security.protocol": "SSL", "ssl.keystore.location": "x.p12"}, "ssl.keystore.location"),
        ({"security.protocol": "PLAINTEXT", "ssl.keystore.location": "x.p12"}, None),
    ],
)
def test_what_only_librdkafka_can_do_is_named(properties: dict[str, str], expected: str | None) -> None:
    assert not_covered(properties) == expected
