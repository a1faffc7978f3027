"""Which ZooKeeper, and how to log in there: ``HOST:PORT[,HOST:PORT][/CHROOT]`` and the properties that begin with ``zookeeper.``.

::

    zookeeper.ssl.enabled             true: TLS; any other property of zookeeper.ssl means the same
    zookeeper.ssl.ca.location         PEM file of the authorities to trust; the system's without it
    zookeeper.ssl.certificate.location, zookeeper.ssl.key.location, zookeeper.ssl.key.password    the client's own, PEM
    zookeeper.ssl.verify              false: take any certificate
    zookeeper.ssl.check.hostname      false: the certificate may name another host
    zookeeper.digest                  USER:PASSWORD of the scheme digest
    zookeeper.sasl.mechanism          DIGEST-MD5 or GSSAPI
    zookeeper.sasl.username, zookeeper.sasl.password             for DIGEST-MD5
    zookeeper.sasl.service.name, zookeeper.sasl.principal        for GSSAPI; the service is "zookeeper" unless given
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgctl.errors import UsageError, did_you_mean

PREFIX = "zookeeper."
PROPERTIES = tuple(
    PREFIX + name
    for name in (
        "ssl.enabled",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.verify",
        "ssl.check.hostname",
        "digest",
        "sasl.mechanism",
        "sasl.username",
        "sasl.password",
        "sasl.service.name",
        "sasl.principal",
    )
)
MECHANISMS = ("DIGEST-MD5", "GSSAPI")
DEFAULT_PORT = 2181
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS; files are PEM."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify: bool = True
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """A ZooKeeper and a place in it. ``chroot`` is "" or begins with a slash; ``sasl`` has pure-sasl's own names."""

    hosts: tuple[str, ...]
    chroot: str = ""
    tls: Tls | None = None
    digest: str | None = field(default=None, repr=False)
    sasl: Mapping[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return ",".join(self.hosts) + self.chroot

    @classmethod
    def of(cls, text: str, properties: Mapping[str, str] | None = None) -> ZooKeeperSettings:
        """Read an address and properties; those that do not begin with ``zookeeper.`` are left to others.

        Raises:
            UsageError: no address, or one that cannot be; an unknown property, a bad value, or one that lacks its partner.
        """
        hosts, chroot = _read_address(text)
        own = {key.removeprefix(PREFIX): value for key, value in (properties or {}).items() if key.startswith(PREFIX)}
        for name, value in own.items():
            check_property(PREFIX + name, value)
        return cls(hosts, chroot, _tls(own), own.get("digest"), _sasl(own))


def check_property(name: str, value: str) -> None:
    """Whether a property can be: its name is known, and its value one that it may have.

    Raises:
        UsageError: it cannot; says why.
    """
    if name not in PROPERTIES:
        raise UsageError(f"{name}: no such property{did_you_mean(name, PROPERTIES)}")
    if name.endswith((".enabled", ".verify", ".hostname")) and value.lower() not in _BOOLEANS:
        raise UsageError(f"{name}: {value!r} is neither true nor false")
    if name.endswith(".digest") and ":" not in value:
        raise UsageError(f"{name}: expected USER:PASSWORD")
    if name.endswith(".mechanism") and value.upper() not in MECHANISMS:
        raise UsageError(f"{name}: {value!r} is none of {', '.join(MECHANISMS)}")


def _read_address(text: str) -> tuple[tuple[str, ...], str]:
    addresses, slash, rest = text.strip().partition("/")
    if "," in rest:
        raise UsageError(
            f"--zookeeper {text!r}: the chroot stands once, behind the last host: H1:2181,H2:2181/{rest.split(',')[0]}"
        )
    chroot = slash + rest.rstrip("/") if rest else ""
    if "//" in chroot or any(part in (".", "..") for part in chroot.split("/")):
        raise UsageError(f"--zookeeper {text!r}: {chroot!r} is no path in ZooKeeper")
    return tuple(_host(part.strip(), text) for part in addresses.split(",")), chroot


def _host(part: str, text: str) -> str:
    match = re.fullmatch(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s]+)(?::(?P<port>\d{1,5}))?", part)
    if match is None or not 0 < int(match["port"] or DEFAULT_PORT) < 65_536:
        raise UsageError(f"--zookeeper {text!r}: {part!r} is not HOST:PORT")
    return f"{match['host']}:{match['port'] or DEFAULT_PORT}"


def _tls(own: Mapping[str, str]) -> Tls | None:
    given = {name.removeprefix("ssl."): value for name, value in own.items() if name.startswith("ssl.")}
    if not given or not _BOOLEANS[given.get("enabled", "true").lower()]:
        return None
    if ("certificate.location" in given) != ("key.location" in given):
        raise UsageError(f"{PREFIX}ssl.certificate.location and {PREFIX}ssl.key.location belong together: give both")
    verify = _BOOLEANS[given.get("verify", "true").lower()]
    return Tls(
        ca=given.get("ca.location"),
        certificate=given.get("certificate.location"),
        key=given.get("key.location"),
        key_password=given.get("key.password"),
        verify=verify,
        check_hostname=verify and _BOOLEANS[given.get("check.hostname", "true").lower()],
    )


def _sasl(own: Mapping[str, str]) -> Mapping[str, str] | None:
    given = {name.removeprefix("sasl."): value for name, value in own.items() if name.startswith("sasl.")}
    if not given:
        return None
    if "mechanism" not in given:
        raise UsageError(f"{PREFIX}sasl.mechanism is missing: {' or '.join(MECHANISMS)}")
    mechanism = given.pop("mechanism").upper()
    needed = ("username", "password") if mechanism == "DIGEST-MD5" else ()
    for name in needed:
        if name not in given:
            raise UsageError(f"{PREFIX}sasl.{name} is missing: {mechanism} needs it")
    if "service.name" in given:
        given["service"] = given.pop("service.name")
    return {"mechanism": mechanism, **given}
