"""``--command-config`` and ``-X``."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

import pytest

from kgctl.admin.properties import (
    DROPPED,
    REFUSED,
    RENAMED,
    Property,
    load_command_config,
    parse_properties,
    parse_x,
    translate,
)
from kgctl.errors import AuthError, UsageError
from kgctl.extras import install_line
from kgctl.wire.settings import KNOWN_PROPERTIES, MskLogin, msk_login, msk_token


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
    with pytest.raises(UsageError, match=r"not UTF-8 text \(line 1, byte 2\)"):
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


def parsed(text: str) -> list[tuple[str, str]]:
    return [(entry.key, entry.value) for entry in parse_properties(text, "f")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Truth = Beauty", [("Truth", "Beauty")]),
        (" Truth:Beauty", [("Truth", "Beauty")]),
        ("Truth                    :Beauty", [("Truth", "Beauty")]),
        ("Truth Beauty and more", [("Truth", "Beauty and more")]),
        ("fruits    apple, \\\n     banana, \\\n     pear", [("fruits", "apple, banana, pear")]),
        ("cheeses", [("cheeses", "")]),
        ("cheeses=", [("cheeses", "")]),
        ("# no\n! no\n\n   \t\na=1", [("a", "1")]),
        ("a=1 # not a comment", [("a", "1 # not a comment")]),
        ("a\\:b\\=c\\ d=1", [("a:b=c d", "1")]),
        ("a=\\t\\n\\r\\f\\q\\\\", [("a", "\t\n\r\fq\\")]),
        ("a=\\u0041\\u00e9", [("a", "Aé")]),
        ("a==1", [("a", "=1")]),
        ("a=b=c", [("a", "b=c")]),
        ("a=1\r\nb=2\rc=3", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a=x\\\\\nb=2", [("a", "x\\"), ("b", "2")]),
        ("a=x\\\n# goes on\nb=2", [("a", "x# goes on"), ("b", "2")]),
        ("a=1\\", [("a", "1")]),
        ("a=trailing ", [("a", "trailing ")]),
        ("", []),
    ],
)
def test_files_are_read_as_java_reads_them(text: str, expected: list[tuple[str, str]]) -> None:
    assert parsed(text) == expected


def test_each_entry_has_the_line_it_begins_on() -> None:
    assert parse_properties("# one\na=1,\\\n  2\n\nb=3\n", "f") == [Property("a", "1,2", 2), Property("b", "3", 5)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12G4", "\\uzzzz=1"])
def test_a_malformed_unicode_escape_names_file_and_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^f:2: malformed \\u escape"):
        parse_properties(f"x=1\n{text}", "f")


AMAZON = "software.amazon.msk.auth.iam"


@pytest.mark.parametrize(
    "text",
    [
        f"sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config={AMAZON}.IAMLoginModule required awsProfileName=ops;\n"
        f"sasl.client.callback.handler.class={AMAZON}.IAMClientCallbackHandler\n",
        "sasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={AMAZON}.IAMOAuthBearerLoginCallbackHandler\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required awsProfileName='ops';\n",
    ],
    ids=["its mechanism", "its handler for tokens"],
)
def test_both_forms_of_amazons_login_are_read(tmp_path: Path, text: str) -> None:
    properties = dict(load_command_config(file(tmp_path, text)))
    assert properties == {"sasl.mechanism": "OAUTHBEARER", "aws.msk.iam": "true", "aws.msk.profile": "ops"}


@pytest.mark.parametrize(
    ("given", "variables", "region"),
    [
        ({"bootstrap.servers": "b-1.prod.abc123.c2.kafka.eu-west-1.amazonaws.com:9098"}, {"AWS_REGION": "x"}, "eu-west-1"),
        ({"bootstrap.servers": "boot-a.c1.kafka-serverless.us-east-2.amazonaws.com:9098"}, {}, "us-east-2"),
        ({"bootstrap.servers": "proxy:9098"}, {"AWS_DEFAULT_REGION": "eu-north-1"}, "eu-north-1"),
        ({"bootstrap.servers": "proxy:9098", "aws.msk.region": "eu-south-1"}, {"AWS_REGION": "x"}, "eu-south-1"),
    ],
)
def test_the_region_is_that_of_the_brokers_names(given: dict[str, str], variables: dict[str, str], region: str) -> None:
    assert msk_login({**parse_x(["sasl.mechanism=aws_msk_iam"]), **given}, variables) == MskLogin(region)


def test_a_region_that_nothing_tells_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"needs aws\.msk\.region"):
        msk_login({"aws.msk.iam": "true", "bootstrap.servers": "proxy:9098"}, {})


def test_amazons_own_signer_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    token, expires_s = msk_token(MskLogin("eu-west-1"))
    address = base64.urlsafe_b64decode(token + "==").decode()
    assert address.startswith("https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&")
    assert "Credential=AKIDEXAMPLE" in address
    assert expires_s > 1_700_000_000

    with pytest.raises(AuthError, match="AWS signs no token for no-such-profile"):
        msk_token(MskLogin("eu-west-1", "no-such-profile"))


def test_without_amazons_signer_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(UsageError, match=re.escape(install_line("msk"))):
        msk_token(MskLogin("eu-west-1"))
