"""Addresses and properties of a ZooKeeper."""

from __future__ import annotations

import pytest

from kgctl.admin.zookeeper import ZooKeeperSettings
from kgctl.errors import UsageError


def tls(**own: object) -> dict[str, object]:
    """As kazoo takes it."""
    files = dict.fromkeys(("ca", "certfile", "keyfile", "keyfile_password"))
    return {"use_ssl": True, **files, "verify_certs": True, "check_hostname": True, **own}


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("h", ("h:2181",), ""),
        ("h:1,i:2/kafka/eu", ("h:1", "i:2"), "/kafka/eu"),
        ("h, i:2/", ("h:2181", "i:2"), ""),
        ("[::1]:2181/k/", ("[::1]:2181",), "/k"),
    ],
)
def test_addresses(text: str, hosts: tuple[str, ...], chroot: str) -> None:
    found = ZooKeeperSettings.of(text)
    assert (found.hosts, found.chroot) == (hosts, chroot)


def test_any_property_of_tls_means_tls_that_verifies() -> None:
    assert ZooKeeperSettings.of("h").tls is None
    assert ZooKeeperSettings.of("h", {"zookeeper.ssl.enabled": "true"}).tls == tls()
    assert ZooKeeperSettings.of("h", {"zookeeper.ssl.enabled": "false", "zookeeper.ssl.ca.location": "ca"}).tls is None
    assert ZooKeeperSettings.of("h", {"zookeeper.ssl.verify": "false"}).tls == tls(verify_certs=False, check_hostname=False)
    own = {"zookeeper.ssl.certificate.location": "c", "zookeeper.ssl.key.location": "k", "client.id": "of kafka"}
    assert ZooKeeperSettings.of("h", own).tls == tls(certfile="c", keyfile="k")


def test_logins() -> None:
    assert ZooKeeperSettings.of("h", {"zookeeper.digest": "u:p"}).digest == "u:p"
    login = {"zookeeper.sasl.mechanism": "digest-md5", "zookeeper.sasl.username": "u", "zookeeper.sasl.password": "p"}
    assert ZooKeeperSettings.of("h", login).sasl == {"mechanism": "DIGEST-MD5", "username": "u", "password": "p"}
    kerberos = {"zookeeper.sasl.mechanism": "GSSAPI", "zookeeper.sasl.service.name": "zk"}
    assert ZooKeeperSettings.of("h", kerberos).sasl == {"mechanism": "GSSAPI", "service": "zk"}


def test_secrets_are_not_shown() -> None:
    secrets = {"zookeeper.digest": "u:hunter2", "zookeeper.ssl.key.password": "hunter2"}
    assert "hunter2" not in repr(ZooKeeperSettings.of("h", secrets))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"zookeeper.ssl.ca.locatoin": "x"},
            "zookeeper.ssl.ca.locatoin: no such property; did you mean zookeeper.ssl.ca.location?",
        ),
        ({"zookeeper.ssl.verify": "no"}, "zookeeper.ssl.verify: 'no' is neither true nor false"),
        ({"zookeeper.digest": "u"}, "zookeeper.digest: expected USER:PASSWORD"),
        ({"zookeeper.sasl.mechanism": "PLAIN"}, "zookeeper.sasl.mechanism: 'PLAIN' is none of DIGEST-MD5, GSSAPI"),
        ({"zookeeper.sasl.username": "u"}, "zookeeper.sasl.mechanism is missing: DIGEST-MD5 or GSSAPI"),
        ({"zookeeper.sasl.mechanism": "DIGEST-MD5"}, "zookeeper.sasl.username is missing: DIGEST-MD5 needs it"),
        (
            {"zookeeper.ssl.key.location": "k"},
            "zookeeper.ssl.certificate.location and zookeeper.ssl.key.location belong together: give both",
        ),
    ],
)
def test_properties_that_cannot_be(properties: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        ZooKeeperSettings.of("h", properties)
    assert error.value.message == message
