"""TLS, SASL and access control against Apache Kafka, through kgctl's own connection and through librdkafka."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import trustme
from confluent_kafka.admin import AclOperation, ResourceType

from kgctl.admin import GroupAdmin, Lacking, Sight, rights
from kgctl.admin import lacking as rights_lacking
from kgctl.admin.confluent import ConfluentGroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.admin.properties import load_command_config
from kgctl.errors import AuthError, KgctlError, UnreachableError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetAndMetadata, StartOffset, TopicPartition
from tests.support.kafka import SecureKafkaBroker, commit, create_topic, produce, unique
from tests.support.kafka.consumers import joined
from tests.support.kafka.security import pkcs8
from tests.support.kafka.streams import streams_member
from tests.support.patience import PATIENCE_MS, SOON_S

pytestmark = pytest.mark.kafka

LOGINS = [
    ("SSL", "PLAIN"),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]


@pytest.fixture(params=["live", "confluent"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def open_admin(backend: str, properties: Mapping[str, str]) -> GroupAdmin:
    if backend == "confluent":
        return ConfluentGroupAdmin(properties, PATIENCE_MS)
    return connect(ConnectionSettings(properties=properties, timeout_ms=PATIENCE_MS))


def as_client_certificate(broker: SecureKafkaBroker, properties: dict[str, str]) -> dict[str, str]:
    """On the SSL listener the user is whom the certificate names; without one it is ANONYMOUS, a super user too."""
    return {
        **properties,
        "ssl.certificate.location": str(broker.certificates.client_certificate),
        "ssl.key.location": str(broker.certificates.client_key),
    }


@pytest.mark.parametrize(("protocol", "mechanism"), LOGINS)
def test_every_login_reads_and_changes(
    secure_kafka_broker: SecureKafkaBroker, backend: str, protocol: str, mechanism: str
) -> None:
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    group, partition = unique("group"), TopicPartition(topic, 0)
    with open_admin(backend, secure_kafka_broker.client_properties(protocol, mechanism)) as admin:
        assert admin.alter_offsets(group, {partition: OffsetAndMetadata(5)}).status == "ok"
        assert admin.list_committed_offsets([group]).values == {group: {partition: OffsetAndMetadata(5)}}
        assert group in admin.list_groups().values
        assert admin.list_log_offsets([partition]).values[partition].log_end_offset == 0
        if backend == "live":
            assert admin.delete_offsets(group, [partition]).status == "ok"
        assert admin.delete_groups([group]).status == "ok"


@pytest.mark.parametrize(("protocol", "mechanism"), LOGINS)
def test_a_java_clients_file_gives_the_same_login(
    secure_kafka_broker: SecureKafkaBroker, backend: str, protocol: str, mechanism: str, tmp_path: Path
) -> None:
    java = secure_kafka_broker.java_properties(protocol, mechanism)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in java.items()))
    with open_admin(backend, load_command_config(file)) as admin:
        assert admin.list_groups().status == "ok"


def test_a_client_certificate_is_shown(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    properties = as_client_certificate(secure_kafka_broker, secure_kafka_broker.client_properties("SSL"))
    with open_admin(backend, properties) as admin:
        assert admin.list_groups().status == "ok"


def test_a_client_certificate_of_another_authority_is_refused(secure_kafka_broker: SecureKafkaBroker, tmp_path: Path) -> None:
    """So the one of the test above was shown, and looked at. librdkafka keeps to itself one that the broker would not know."""
    stranger = trustme.CA().issue_cert("stranger@localhost", common_name="kgctl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(pem.bytes() for pem in stranger.cert_chain_pems))
    key.write_bytes(pkcs8(stranger))
    shown = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    with (
        open_admin("live", secure_kafka_broker.client_properties("SSL") | shown) as admin,
        pytest.raises((UnreachableError, AuthError)),
    ):
        admin.list_groups()


def fails(backend: str, properties: Mapping[str, str]) -> KgctlError:
    """The error of a first call, which must come soon."""
    started = time.monotonic()
    with pytest.raises(KgctlError) as caught, open_admin(backend, properties) as admin:
        admin.list_groups()
    assert time.monotonic() - started < SOON_S
    return caught.value


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_an_authentication_error(
    secure_kafka_broker: SecureKafkaBroker, backend: str, mechanism: str
) -> None:
    properties = secure_kafka_broker.client_properties("SASL_SSL", mechanism) | {"sasl.password": "not-the-password"}
    error = fails(backend, properties)

    assert isinstance(error, AuthError)
    assert "Authentication failed" in error.message
    assert "not-the-password" not in error.message


def test_an_unknown_authority_is_unreachable(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    properties = secure_kafka_broker.client_properties("SASL_SSL")
    error = fails(backend, properties | {"ssl.ca.location": str(secure_kafka_broker.certificates.other_ca)})

    assert isinstance(error, UnreachableError)
    assert "certificate" in error.message


def test_verification_switched_off_trusts_any(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    properties = secure_kafka_broker.client_properties("SSL") | {"enable.ssl.certificate.verification": "false"}
    del properties["ssl.ca.location"]
    with open_admin(backend, properties) as admin:
        assert admin.list_groups().status == "ok"


def test_a_missing_certificate_file_is_a_usage_error(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    properties = secure_kafka_broker.client_properties("SSL") | {"ssl.ca.location": "/nosuch/ca.pem"}

    assert isinstance(fails(backend, properties), UsageError)


@pytest.mark.parametrize(
    ("listener", "protocol", "expected", "hint"),
    [
        ("SSL", "PLAINTEXT", UnreachableError, "speaks TLS"),
        ("SASL_PLAINTEXT", "PLAINTEXT", UnreachableError, "want SASL"),
        ("PLAINTEXT", "SSL", UnreachableError, "TLS handshake failed"),
        ("PLAINTEXT", "SASL_PLAINTEXT", AuthError, "does this listener use SASL?"),
    ],
)
def test_the_wrong_protocol_for_a_listener_is_told(
    secure_kafka_broker: SecureKafkaBroker,
    backend: str,
    listener: str,
    protocol: str,
    expected: type[KgctlError],
    hint: str,
) -> None:
    properties = secure_kafka_broker.client_properties(protocol)
    error = fails(backend, properties | {"bootstrap.servers": secure_kafka_broker.address(listener)})

    assert isinstance(error, expected)
    assert backend == "confluent" or hint in error.message


def test_a_user_without_rights_is_told_for_which_group(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    group, partition = unique("group"), TopicPartition(topic, 0)
    commit(secure_kafka_broker.bootstrap, group, {(topic, 0): 1})
    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    with open_admin(backend, secure_kafka_broker.client_properties("SASL_SSL", user="alice")) as admin:
        described = admin.describe_groups([group])
        offsets = admin.list_committed_offsets([group])
        altered = admin.alter_offsets(group, {partition: OffsetAndMetadata(2)})
        deleted = admin.delete_groups([group])
        listed = admin.list_groups()

    assert {each: error.code for each, error in described.errors.items()} == {group: denied}
    lacks = f"not authorised for group '{group}': user 'alice' lacks the right"
    assert described.errors[group].message == f"{lacks} DESCRIBE on the group"
    assert altered.errors[partition].message == f"{lacks} READ on the group"
    assert deleted.errors[group].message == f"{lacks} DELETE on the group"
    assert {each: error.code for each, error in offsets.errors.items()} == {group: denied}
    assert {each: error.code for each, error in altered.errors.items()} == {partition: denied}
    assert {each: error.code for each, error in deleted.errors.items()} == {group: denied}
    assert group not in listed.values
    assert listed.status == "ok"


def test_a_user_who_may_only_look_cannot_change(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    produce(secure_kafka_broker.bootstrap, topic, {0: 3})
    group, partition = unique("group"), TopicPartition(topic, 0)
    commit(secure_kafka_broker.bootstrap, group, {(topic, 0): 1})
    secure_kafka_broker.allow("bob", ResourceType.GROUP, group, [AclOperation.DESCRIBE])
    secure_kafka_broker.allow("bob", ResourceType.TOPIC, topic, [AclOperation.DESCRIBE])
    with open_admin(backend, secure_kafka_broker.client_properties("SASL_SSL", user="bob")) as admin:
        assert group in admin.list_groups().values
        assert group in admin.describe_groups([group]).values
        assert admin.list_committed_offsets([group]).values == {group: {partition: OffsetAndMetadata(1)}}
        assert admin.list_log_offsets([partition]).values[partition].log_end_offset == 3
        altered = admin.alter_offsets(group, {partition: OffsetAndMetadata(2)})
        deleted = admin.delete_groups([group])

    assert {error.code for error in altered.errors.values()} == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
    assert {error.code for error in deleted.errors.values()} == {ErrorCode.GROUP_AUTHORIZATION_FAILED}


def test_the_rights_that_the_manual_names_are_enough(secure_kafka_broker: SecureKafkaBroker) -> None:
    """Each operation with its own rights and no others."""
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    reset, cleaned, deleted = unique("reset"), unique("cleaned"), unique("deleted")
    partition = TopicPartition(topic, 0)
    for group in (reset, cleaned, deleted):
        commit(secure_kafka_broker.bootstrap, group, {(topic, 0): 1})
    secure_kafka_broker.allow("bob", ResourceType.GROUP, reset, [AclOperation.READ])
    secure_kafka_broker.allow("bob", ResourceType.GROUP, cleaned, [AclOperation.DELETE])
    secure_kafka_broker.allow("bob", ResourceType.GROUP, deleted, [AclOperation.DELETE])
    secure_kafka_broker.allow("bob", ResourceType.TOPIC, topic, [AclOperation.READ])
    with open_admin("live", secure_kafka_broker.client_properties("SASL_SSL", user="bob")) as admin:
        assert admin.alter_offsets(reset, {partition: OffsetAndMetadata(0)}).status == "ok"
        assert admin.remove_members(reset, member_ids=["m"]).errors["m"].code is ErrorCode.UNKNOWN_MEMBER_ID
        assert admin.delete_offsets(cleaned, [partition]).status == "ok"
        assert admin.delete_groups([deleted]).status == "ok"


def test_what_a_user_may_not_change_is_known_before_the_change(secure_kafka_broker: SecureKafkaBroker) -> None:
    """Of groups of every type, there or not: by DescribeGroups before version 6, to which they all are classic groups."""
    bootstrap = secure_kafka_broker.bootstrap
    topic = create_topic(bootstrap, unique("topic"), 1)
    kinds = ["classic", "consumer", "share", "streams", "missing"]
    groups = {kind: unique(kind) for kind in kinds}
    commit(bootstrap, groups["classic"], {(topic, 0): 0})
    partition = TopicPartition(topic, 0)
    with (
        joined(bootstrap, groups["consumer"], topic, {"m": 1}, group_protocol="consumer"),
        streams_member(bootstrap, groups["streams"], topic),
        connect(ConnectionSettings(bootstrap, timeout_ms=PATIENCE_MS)) as root,
        open_admin("live", secure_kafka_broker.client_properties("SASL_SSL", user="bob")) as admin,
    ):
        assert root.alter_offsets(groups["share"], {partition: StartOffset(0)}).status == "ok"
        found = root.describe_groups([*groups.values()])
        types = {kind: found.values[groups[kind]].type.value for kind in kinds[:-1]}
        assert types == dict(zip(kinds[:-1], kinds[:-1], strict=True))
        wanted = (rights.COMMIT, [*groups.values()], [topic])
        secure_kafka_broker.allow("bob", ResourceType.GROUP, [*groups.values()], [AclOperation.DESCRIBE])
        secure_kafka_broker.allow("bob", ResourceType.TOPIC, topic, [AclOperation.DESCRIBE])
        lacking = rights_lacking(admin, *wanted)
        assert {group: error.code for group, error in lacking.groups.items()} == dict.fromkeys(
            groups.values(), ErrorCode.GROUP_AUTHORIZATION_FAILED
        )
        assert [error.message for error in lacking.topics.values()] == [
            f"not authorised for topic '{topic}': user 'bob' lacks the right READ on the topic"
        ]
        secure_kafka_broker.allow("bob", ResourceType.GROUP, [*groups.values()], [AclOperation.READ])
        secure_kafka_broker.allow("bob", ResourceType.TOPIC, topic, [AclOperation.READ])
        assert rights_lacking(admin, *wanted) == rights_lacking(root, *wanted) == Lacking()
        assert set(rights_lacking(admin, rights.DELETE_GROUP, groups.values()).groups) == {*groups.values()}


def test_a_hidden_topic_is_an_error_of_its_partition(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    partition = TopicPartition(topic, 0)
    with open_admin(backend, secure_kafka_broker.client_properties("SASL_SSL", user="alice")) as admin:
        found = admin.list_log_offsets([partition])

    assert not found.values
    assert found.errors[partition].code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_offsets_may_not_be_deleted_nor_members_removed_without_rights(secure_kafka_broker: SecureKafkaBroker) -> None:
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    group, partition = unique("group"), TopicPartition(topic, 0)
    commit(secure_kafka_broker.bootstrap, group, {(topic, 0): 1})
    with open_admin("live", secure_kafka_broker.client_properties("SASL_SSL", user="alice")) as admin:
        deleted = admin.delete_offsets(group, [partition])
        removed = admin.remove_members(group, member_ids=["m"])

    assert {error.code for error in deleted.errors.values()} == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
    assert {error.code for error in removed.errors.values()} == {ErrorCode.GROUP_AUTHORIZATION_FAILED}


def test_what_may_be_hidden_from_a_user_is_known(secure_kafka_broker: SecureKafkaBroker, backend: str) -> None:
    """Commits on a topic that a user may not describe are left out without an error: only the missing right can be told."""
    broker = secure_kafka_broker
    seen, secret, group = (
        create_topic(broker.bootstrap, unique("seen")),
        create_topic(broker.bootstrap, unique("secret")),
        unique("g"),
    )
    commit(broker.bootstrap, group, {(seen, 0): 1, (secret, 0): 1})
    broker.allow("eve", ResourceType.GROUP, group, [AclOperation.DESCRIBE])
    broker.allow("eve", ResourceType.TOPIC, seen, [AclOperation.DESCRIBE])
    broker.allow("carol", ResourceType.GROUP, "*", [AclOperation.DESCRIBE])
    broker.allow("carol", ResourceType.TOPIC, "*", [AclOperation.DESCRIBE])
    with open_admin(backend, broker.client_properties("SASL_SSL", user="eve")) as admin:
        assert list(admin.list_committed_offsets([group]).values[group]) == [TopicPartition(seen, 0)]
        assert admin.sight() == Sight(all_groups=False, all_topics=False, user="eve")
    with open_admin(backend, broker.client_properties("SASL_SSL", user="carol")) as admin:
        assert len(admin.list_committed_offsets([group]).values[group]) == 2
        assert admin.sight() == Sight(user="carol")


def test_no_limit_holds_where_commits_may_be_hidden(secure_kafka_broker: SecureKafkaBroker) -> None:
    broker = secure_kafka_broker
    seen, secret, group = (
        create_topic(broker.bootstrap, unique("seen")),
        create_topic(broker.bootstrap, unique("secret")),
        unique("g"),
    )
    produce(broker.bootstrap, secret, {0: 30})
    commit(broker.bootstrap, group, {(seen, 0): 0, (secret, 0): 9})
    broker.allow("eve", ResourceType.GROUP, group, [AclOperation.DESCRIBE])
    broker.allow("eve", ResourceType.TOPIC, seen, [AclOperation.DESCRIBE])

    def code(*more: str) -> int:
        return run_kgctl(
            ["describe", "group", group, "--fail-if-lag-over", "5", *more], broker.client_properties("SASL_SSL", user="eve")
        )

    assert [code(), code("--topic", seen), code("--topic", secret), code("--allow-unknown")] == [8, 0, 8, 0]


def run_kgctl(arguments: Sequence[str], properties: Mapping[str, str]) -> int:
    """The exit code of kgctl, called with these properties."""
    settings = [word for name, value in properties.items() for word in ("-X", f"{name}={value}")]
    return subprocess.run([sys.executable, "-m", "kgctl", *arguments, *settings], capture_output=True, check=False).returncode
