"""A node of Apache Kafka with all security protocols at once: TLS, SASL PLAIN, SCRAM, OAUTHBEARER, and access control lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from cryptography.hazmat.primitives import serialization

from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import TIMEOUT_S, admin_client
from tests.support.members import wait_until

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS: Mapping[str, str] = {name: f"{name}-secret" for name in ("admin", "alice", "bob", "carol", "eve")}

_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_TOKEN_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"  # takes unsecured tokens
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files: what the server shows, what a client trusts, what a client shows, and an authority that nobody here trusts."""

    ca: Path
    server: Path
    client_certificate: Path
    client_key: Path
    other_ca: Path


def make_certificates(folder: Path) -> Certificates:
    """Makes new ones for localhost, 127.0.0.1 and a client named ``kgctl``."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1", common_name="localhost")
    client = authority.issue_cert("kgctl@localhost", common_name="kgctl")
    made = Certificates(*(folder / name for name in ("ca.pem", "server.pem", "client.pem", "client-key.pem", "other-ca.pem")))
    authority.cert_pem.write_to_path(made.ca)
    made.server.write_bytes(pkcs8(server) + b"".join(pem.bytes() for pem in server.cert_chain_pems))
    made.client_certificate.write_bytes(b"".join(pem.bytes() for pem in client.cert_chain_pems))
    made.client_key.write_bytes(pkcs8(client))
    trustme.CA().cert_pem.write_to_path(made.other_ca)
    return made


def pkcs8(certificate: trustme.LeafCert) -> bytes:
    """The private key in the one form that Java reads."""
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def secure_properties(certificates: Certificates) -> dict[str, str]:
    """The broker's side; the PLAINTEXT port is the tests' root, ``admin`` a super user; the others may nothing at first."""
    return {
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        **_logins("sasl_plaintext"),
        **_logins("sasl_ssl"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin;User:CN=kgctl",
    }


def _logins(listener: str) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    prefix = f"listener.name.{listener}"
    return {
        f"{prefix}.plain.sasl.jaas.config": f"{_PLAIN_LOGIN} {users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": _SCRAM_LOGIN,
        f"{prefix}.scram-sha-512.sasl.jaas.config": _SCRAM_LOGIN,
        f"{prefix}.oauthbearer.sasl.jaas.config": f'{_TOKEN_LOGIN} unsecuredLoginStringClaim_sub="admin";',
    }


def scram_users() -> list[str]:
    """The users as StorageTool takes them."""
    return [f"{mechanism}=[name={name},password={password}]" for mechanism in MECHANISMS[1:] for name, password in USERS.items()]


class SecureKafkaBroker(KafkaBroker):
    """One node with the listeners PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL (`address` gives each one's ``host:port``)."""

    cluster_id = "kgctl-tests-cluster-02"  # another cluster than that of the plain node

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        self.certificates = make_certificates(folder / "certificates")
        properties = {**secure_properties(self.certificates), **(overrides or {})}
        super().__init__(folder, overrides=properties, listeners=LISTENERS, scram=scram_users())

    def client_properties(self, protocol: str, mechanism: str = "PLAIN", user: str = "admin") -> dict[str, str]:
        """librdkafka's properties for one listener, ``bootstrap.servers`` among them."""
        properties = {"bootstrap.servers": self.address(protocol), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            properties["ssl.ca.location"] = str(self.certificates.ca)
        if protocol.startswith("SASL"):
            properties |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": USERS[user]}
        return properties

    def java_properties(self, protocol: str, mechanism: str = "PLAIN", user: str = "admin") -> dict[str, str]:
        """The same for a Java client, as in a file for ``--command-config``."""
        properties = {"bootstrap.servers": self.address(protocol), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.certificates.ca)}
        if protocol.startswith("SASL"):
            module = _PLAIN_LOGIN if mechanism == "PLAIN" else _SCRAM_LOGIN.removesuffix(";")
            login = f'{module} username="{user}" password="{USERS[user]}";'
            properties |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
        return properties

    def allow(self, user: str, resource: ResourceType, name: str | Sequence[str], operations: Sequence[AclOperation]) -> None:
        """Lets ``user`` do ``operations`` on one resource by its exact name, or on several; the broker knows then."""
        names = [name] if isinstance(name, str) else name
        rules = [_rule(user, resource, each, operation) for each in names for operation in operations]
        admin = admin_client(self.bootstrap)
        for future in admin.create_acls(rules, request_timeout=TIMEOUT_S).values():
            future.result(TIMEOUT_S)
        wanted = {(each, operation) for each in names for operation in operations}
        wait_until(lambda: wanted <= _rights(admin, user, resource), f"the broker knows what {user} may do")

    def revoke(self, user: str, resource: ResourceType, names: Sequence[str]) -> None:
        """Takes away all that ``user`` may do with these resources; the broker knows then."""
        who = f"User:{user}"
        rules = [
            AclBindingFilter(resource, name, ResourcePatternType.LITERAL, who, "*", AclOperation.ANY, AclPermissionType.ANY)
            for name in names
        ]
        admin = admin_client(self.bootstrap)
        for future in admin.delete_acls(rules, request_timeout=TIMEOUT_S).values():
            future.result(TIMEOUT_S)
        taken = set(names)
        wait_until(
            lambda: taken.isdisjoint(name for name, _ in _rights(admin, user, resource)),
            f"the broker knows what {user} may not do",
        )


def _rights(admin: AdminClient, user: str, resource: ResourceType) -> set[tuple[str, AclOperation]]:
    """The names and operations that the broker's authorizer has for a user: a rule is taken by the controller and comes later."""
    every = AclBindingFilter(
        resource,
        None,  # type: ignore[arg-type]  # the stub does not know that it stands for any
        ResourcePatternType.LITERAL,
        f"User:{user}",
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ALLOW,
    )
    found = admin.describe_acls(every, request_timeout=TIMEOUT_S).result(TIMEOUT_S)
    return {(rule.name, rule.operation) for rule in found}


def _rule(user: str, resource: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    who = f"User:{user}"
    return AclBinding(resource, name, ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW)
