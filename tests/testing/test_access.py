"""Rights, logins and encryption of a test's cluster, met by clients that nobody here wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from cryptography import x509

import kgctl
from kgctl.errors import CommitError, UsageError
from kgctl.testing import EmbeddedServer
from tests.support.kafka.security import make_certificates
from tests.support.patience import PATIENCE_S


def sent(properties: dict[str, str], topic: str) -> str | None:
    """The name of the error with which a producer's record fails; None: it is written."""
    failures: list[KafkaError | None] = []
    producer = Producer(properties)
    producer.produce(topic, b"v", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(PATIENCE_S) == 0
    (failure,) = failures
    return None if failure is None else failure.name()


def read(properties: dict[str, str], topic: str, group: str = "billing") -> str | bytes | None:
    """The first record's value, or the name of the error that comes in its place."""
    consumer = Consumer({**properties, "group.id": group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        error = message.error()
        return message.value() if error is None else error.name()
    finally:
        consumer.close()


def test_what_is_denied_is_refused_inside_the_block_alone() -> None:
    with EmbeddedServer({"orders": 1}) as cluster:
        with cluster.deny("write topic:orders") as denial:
            assert sent(cluster.properties(), "orders") == "TOPIC_AUTHORIZATION_FAILED"
        assert denial.hits > 0
        assert sent(cluster.properties(), "orders") is None
        with cluster.deny("read group:billing"):
            assert read(cluster.properties(), "orders") == "GROUP_AUTHORIZATION_FAILED"
            assert cluster.committed("billing") == {}  # the test itself sees everything
        assert read(cluster.properties(), "orders") == b"v"


def test_a_group_that_lost_its_rights_says_so() -> None:
    with EmbeddedServer({"orders": 1}, quick=True) as cluster, cluster.consumer_group("billing", "orders") as group:
        generation = group.next()
        with cluster.deny("read group:billing"), pytest.raises(CommitError, match="GROUP_AUTHORIZATION_FAILED"):
            generation.commit({("orders", 0): 1})


def test_with_rules_nobody_may_do_what_none_allows() -> None:
    acls = ["allow User:* write topic:orders*", "allow User:* read topic:orders", "allow User:* read group:bill*"]
    with EmbeddedServer({"orders": 1, "invoices": 1}, acls=acls) as cluster:
        assert sent(cluster.properties(), "orders") is None
        assert sent(cluster.properties(), "invoices") == "TOPIC_AUTHORIZATION_FAILED"
        assert read(cluster.properties(), "orders") == b"v"
        assert set(AdminClient({**cluster.properties()}).list_topics(timeout=PATIENCE_S).topics) == {"orders"}
        cluster.wait_for_group("billing", state=None)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_users_log_in_and_have_rights_of_their_own(protocol: str) -> None:
    users = {"alice": 'al"ice\\secret', "bob": "b"}
    acls = ["allow alice all topic:*", "allow bob read topic:*", "allow bob read group:*"]
    with EmbeddedServer({"orders": 1}, protocol=protocol, users=users, acls=acls) as cluster:
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert sent(cluster.properties("alice", mechanism=mechanism), "orders") is None
        assert sent(cluster.properties("bob"), "orders") == "TOPIC_AUTHORIZATION_FAILED"
        assert read(cluster.properties("bob"), "orders") == b"v"
        wrong: dict[str, Any] = {**cluster.properties("alice"), "sasl.password": "wrong", "log_level": "0"}
        with pytest.raises(KafkaException):
            AdminClient(wrong).list_topics(timeout=1)
        with cluster.consumer_group("reports", "orders", properties=cluster.properties("bob")) as group:
            assert set(group.next().assignments) == {("orders", 0)}


def test_encryption_alone() -> None:
    with EmbeddedServer({"orders": 1}, protocol="SSL") as cluster:
        assert sent(cluster.properties(), "orders") is None
        assert Path(cluster.properties()["ssl.ca.location"]).exists()
        strangers = kgctl.connect(
            cluster.bootstrap, properties={"security.protocol": "ssl"}, timeout_ms=2_000
        )  # without the authority
        with strangers as admin, pytest.raises(kgctl.errors.KgctlError):
            admin.list_groups()
        where = Path(cluster.properties()["ssl.ca.location"])
    assert not where.exists()


def test_a_certificate_of_ones_own_and_the_name_in_it(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    config = {
        "ssl.keystore.location": str(made.server),
        "ssl.truststore.location": str(made.ca),
        "ssl.client.auth": "required",
    }
    subject = x509.load_pem_x509_certificate(made.client_certificate.read_bytes()).subject.rfc4514_string()
    acls = [f"allow User:{subject} write topic:orders"]
    with EmbeddedServer({"orders": 1, "x": 1}, protocol="SSL", config=config, acls=acls) as cluster:
        shown = {"ssl.certificate.location": str(made.client_certificate), "ssl.key.location": str(made.client_key)}
        assert sent({**cluster.properties(), **shown}, "orders") is None
        assert sent({**cluster.properties(), **shown}, "x") == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"protocol": "TLS"}, "protocol 'TLS' is none"),
        ({"users": {"alice": "a"}}, "users log in with SASL_PLAINTEXT or SASL_SSL, not with PLAINTEXT"),
        ({"acls": ["allow alice"]}, "is no access rule"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught, EmbeddedServer(**settings):  # type: ignore[arg-type]
        pass
    assert words in caught.value.message


def test_users_and_rules_that_are_none() -> None:
    with EmbeddedServer(protocol="SASL_PLAINTEXT", users={"alice": "a"}) as cluster:
        with pytest.raises(UsageError, match="user 'alcie' is none"):
            cluster.properties("alcie")
        with pytest.raises(UsageError, match="mechanism 'GSSAPI' is none"):
            cluster.properties(mechanism="GSSAPI")
        for rules, words in (((), "deny what"), (("write",), "is no access rule")):
            with pytest.raises(UsageError, match=words), cluster.deny(*rules):
                pass
    with EmbeddedServer() as cluster, pytest.raises(UsageError, match="nobody logs in"):
        cluster.properties("alice")


def test_listeners_beside_the_first_one() -> None:
    """Each has its protocol; a client stays with the one that it came in by."""
    users = {"alice": "secret"}
    with EmbeddedServer({"orders": 1}, listeners={"SSL": "SSL", "outside": "SASL_PLAINTEXT"}, users=users) as cluster:
        cluster.produce("orders", "a")
        clients: tuple[dict[str, Any], ...] = (
            cluster.properties(),
            cluster.properties(listener="SSL"),
            cluster.properties("alice", listener="outside", mechanism="SCRAM-SHA-256"),
        )
        for properties in clients:
            assert read(properties, "orders", group=properties["bootstrap.servers"]) == b"a"
            (broker,) = AdminClient(properties).list_topics(timeout=PATIENCE_S).brokers.values()
            assert f"{broker.host}:{broker.port}" == properties["bootstrap.servers"]
        with cluster.consumer_group("other", "orders", properties=cluster.properties(listener="SSL")) as group:
            assert group.next().topics == {"orders": (0,)}
        with pytest.raises(UsageError, match="nobody logs in to a cluster of SSL"):
            cluster.properties("alice", listener="SSL")
        with pytest.raises(UsageError, match="there is no listener 'SLS'; did you mean SSL"):
            cluster.properties(listener="SLS")


def test_where_clients_are_told_to_go() -> None:
    told = {"PROXY": "localhost:29092"}  # nothing listens there
    with EmbeddedServer(listeners={"PROXY": "PLAINTEXT"}, advertised=told, brokers=2) as cluster:
        found = AdminClient({"bootstrap.servers": cluster.bootstrap_of("PROXY")}).list_topics(timeout=PATIENCE_S).brokers
        assert [each.port for each in found.values()] == [29092, 29093]
    with pytest.raises(UsageError, match="advertised 'PROXY': 'nowhere' is not HOST:PORT"):
        EmbeddedServer(listeners={"PROXY": "PLAINTEXT"}, advertised={"PROXY": "nowhere"})
    with pytest.raises(UsageError, match="protocol 'TLS' is none"):
        EmbeddedServer(listeners={"PROXY": "TLS"})


def test_users_of_one_listener() -> None:
    """PLAIN's, as Kafka names them; everybody else logs in by the others."""
    config = {"listener.name.outside.plain.sasl.jaas.config": 'PlainLoginModule required user_carol="out";'}
    settings: dict[str, Any] = {
        "protocol": "SASL_PLAINTEXT",
        "users": {"alice": "in"},
        "listeners": {"outside": "SASL_PLAINTEXT"},
    }
    with EmbeddedServer({"orders": 1}, config=config, **settings) as cluster:
        assert sent(cluster.properties("alice"), "orders") is None
        outside = cluster.properties(listener="outside")
        assert outside["sasl.username"] == "carol"
        assert sent(outside, "orders") is None
        assert sent(cluster.properties("alice", listener="outside", mechanism="SCRAM-SHA-256"), "orders") is None
        with pytest.raises(UsageError, match="user 'alice' is none"):
            cluster.properties("alice", listener="outside")
        stranger: dict[str, Any] = {**outside, "sasl.username": "alice", "sasl.password": "in", "log_level": "0"}
        with pytest.raises(KafkaException):
            AdminClient(stranger).list_topics(timeout=1)


@pytest.mark.parametrize("listener", ["sasl_plaintext", "outside"])
def test_the_cluster_itself_gets_in_whoever_else_does(listener: str) -> None:
    config = {f"listener.name.{listener}.plain.sasl.jaas.config": 'PlainLoginModule required user_carol="out";'}
    with EmbeddedServer({"orders": 1}, config=config, protocol="SASL_PLAINTEXT", listeners={"outside": "SASL_SSL"}) as cluster:
        cluster.commit("billing", {("orders", 0): 1})
        assert cluster.committed("billing") == {("orders", 0): 1}
