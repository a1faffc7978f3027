"""A Java client's properties in librdkafka's terms."""

from __future__ import annotations

import pytest

from kgctl.admin.config.java_client import DROPPED, REFUSED, RENAMED, translate
from kgctl.admin.config.librdkafka import KNOWN_PROPERTIES
from kgctl.errors import UsageError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def fail(key: str, why: str) -> UsageError:
    return UsageError(f"{key}: {why}")


def test_names_that_both_know_pass_unchanged() -> None:
    properties = {"bootstrap.servers": "a:1", "security.protocol": "SSL", "sasl.mechanism": "PLAIN"}

    assert translate(properties, fail) == properties


def test_renamed_properties_keep_their_value() -> None:
    assert translate(dict.fromkeys(RENAMED, "v"), fail) == dict.fromkeys(RENAMED.values(), "v")


def test_what_has_no_bearing_on_administration_is_dropped() -> None:
    properties = {"key.deserializer": "X", "schema.registry.url": "http://x", "basic.auth.user.info": "u:p"}

    assert translate(properties, fail) == {}


def test_nothing_that_librdkafka_knows_is_dropped_or_refused() -> None:
    assert not DROPPED & KNOWN_PROPERTIES
    assert not set(REFUSED) & KNOWN_PROPERTIES
    assert set(RENAMED.values()) <= KNOWN_PROPERTIES


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_what_cannot_be_honoured_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match=REFUSED[key]):
        translate({key: "x"}, fail)


@pytest.mark.parametrize(
    ("config", "username", "password"),
    [
        (f'{PLAIN} required username="u" password="p";', "u", "p"),
        (f"{SCRAM} required username='u' password='p;x';", "u", "p;x"),
        (f"{SCRAM} REQUIRED\n  password=p\n  username=u ;", "u", "p"),
        (f'{PLAIN} required username="a\\"b" password="c\\\\d" serviceName="kafka";', 'a"b', "c\\d"),
        (f'{PLAIN} required username="u" password="a b=c";', "u", "a b=c"),
        (f'{PLAIN} required user_other="x" username="u" password="p";', "u", "p"),
    ],
)
def test_a_login_module_gives_name_and_password(config: str, username: str, password: str) -> None:
    assert translate({"sasl.jaas.config": config}, fail) == {"sasl.username": username, "sasl.password": password}


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("", "expected 'LoginModule required"),
        ("nonsense", "expected 'LoginModule required"),
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "Krb5LoginModule cannot be used"),
        (f'{PLAIN} required username="u";', "no username or no password"),
    ],
)
def test_another_login_module_is_refused(config: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        translate({"sasl.jaas.config": config}, fail)


def test_pem_stores_become_pem_files() -> None:
    properties = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.truststore.password": "ignored",
        "ssl.keystore.type": "pem",
        "ssl.keystore.location": "me.pem",
        "ssl.key.password": "pw",
    }

    assert translate(properties, fail) == {
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.pem",
        "ssl.key.password": "pw",
    }


@pytest.mark.parametrize(
    "properties",
    [{"ssl.keystore.location": "me.p12"}, {"ssl.keystore.location": "me", "ssl.keystore.type": "PKCS12"}],
)
def test_a_pkcs12_key_store_is_librdkafkas_own(properties: dict[str, str]) -> None:
    assert translate(properties, fail) == {"ssl.keystore.location": properties["ssl.keystore.location"]}


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"ssl.truststore.location": "t.jks"}, "trust store of type JKS cannot be read; .*ssl.ca.location"),
        ({"ssl.truststore.location": "t", "ssl.truststore.type": "PKCS12"}, "trust store of type PKCS12 cannot be read"),
        ({"ssl.keystore.location": "k.jks"}, "key store of type JKS cannot be read; convert it to PKCS12"),
        ({"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, "these are Java's names"),
    ],
)
def test_what_java_alone_can_read_is_refused_with_a_way_out(properties: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        translate(properties, fail)


@pytest.mark.parametrize(("java", "expected"), [("", "none"), ("HTTPS", "https"), ("https", "https")])
def test_the_empty_endpoint_algorithm_switches_the_check_off(java: str, expected: str) -> None:
    key = "ssl.endpoint.identification.algorithm"

    assert translate({key: java}, fail) == {key: expected}


def test_cipher_suites_of_tls_13_have_the_same_names_in_both() -> None:
    java = {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384"}

    assert translate(java, fail) == {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"}
    assert translate({"ssl.cipher.suites": ""}, fail) == {}
