"""librdkafka's connection properties, as this package's own connection needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgctl.errors import UsageError
from kgctl.wire.oauth import TokenSource, token_source
from kgctl.wire.oauth import not_covered as token_not_covered

DEFAULT_PORT = 9092
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_NOT_COVERED = (
    "ssl.keystore.location", "ssl.engine.location", "ssl.providers", "ssl.curves.list", "ssl.sigalgs.list",
    "plugin.library.paths",
)  # fmt: skip
"""Properties that change how a connection is made secure and that only librdkafka implements."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Paths to PEM files, or PEM text itself; None where not given."""

    ca_location: str | None = None
    ca_pem: str | None = None
    certificate_location: str | None = None
    certificate_pem: str | None = None
    key_location: str | None = None
    key_pem: str | None = None
    key_password: str | None = field(default=None, repr=False)
    crl_location: str | None = None
    ciphers: str | None = None
    verify: bool = True
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """Who logs in. The password is kept out of every message. ``token`` says where OAUTHBEARER has its tokens from."""

    mechanism: str
    username: str
    password: str = field(default="", repr=False)
    token: TokenSource | None = None


@dataclass(frozen=True, slots=True)
class WireSettings:
    """All that a connection needs to know. ``tls`` and ``sasl`` are None where the protocol has none."""

    bootstrap: tuple[Address, ...]
    client_id: str = "kgctl"
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None
    address_family: str = "any"
    max_frame_bytes: int = 100_000_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> WireSettings:
        """Raises `UsageError` for a value that is wrong or missing. What is right but not to be had here: `not_covered`."""
        protocol = properties.get("security.protocol", "PLAINTEXT").upper()
        return cls(
            bootstrap=parse_bootstrap(properties.get("bootstrap.servers", "")),
            client_id=properties.get("client.id") or "kgctl",
            tls=_tls(properties) if protocol.endswith("SSL") else None,
            sasl=_sasl(properties) if protocol.startswith("SASL") else None,
            address_family=properties.get("broker.address.family", "any"),
            max_frame_bytes=_whole_number(properties, "receive.message.max.bytes", 100_000_000),
        )


def not_covered(properties: Mapping[str, str]) -> str | None:
    """Why this package cannot connect with these properties though librdkafka may, or None where it can."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol.startswith("SASL") and _mechanism(properties) not in MECHANISMS:
        return f"the SASL mechanism {_mechanism(properties)}"
    if protocol.startswith("SASL") and _mechanism(properties) == "OAUTHBEARER" and (why := token_not_covered(properties)):
        return why
    if protocol.endswith("SSL"):
        return next((name for name in _NOT_COVERED if properties.get(name)), None)
    return None


def parse_bootstrap(servers: str) -> tuple[Address, ...]:
    """``host:port[,host:port]``; the port may be left out (9092), IPv6 addresses stand in brackets. Raises `UsageError`."""
    addresses = tuple(_address(part.strip()) for part in servers.split(",") if part.strip())
    if not addresses:
        raise UsageError("no bootstrap server given")
    return addresses


def _address(text: str) -> Address:
    rest = text.rpartition("://")[2]
    host, separator, port = rest.rpartition(":")
    if (rest.startswith("[") and rest.endswith("]")) or not separator:
        host, port = rest, str(DEFAULT_PORT)
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_valid = bare and (":" not in bare or bare != host) and not any(char.isspace() or char in "/@" for char in bare)
    if not (is_valid and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise UsageError(f"bootstrap server '{text}': expected host:port")
    return Address(bare, int(port))


def _tls(properties: Mapping[str, str]) -> TlsSettings:
    ca_location = properties.get("ssl.ca.location") or None
    return TlsSettings(
        ca_location=None if ca_location == "probe" else ca_location,
        ca_pem=properties.get("ssl.ca.pem") or None,
        certificate_location=properties.get("ssl.certificate.location") or None,
        certificate_pem=properties.get("ssl.certificate.pem") or None,
        key_location=properties.get("ssl.key.location") or None,
        key_pem=properties.get("ssl.key.pem") or None,
        key_password=properties.get("ssl.key.password") or None,
        crl_location=properties.get("ssl.crl.location") or None,
        ciphers=properties.get("ssl.cipher.suites") or None,
        verify=properties.get("enable.ssl.certificate.verification", "true").lower() != "false",
        check_hostname=properties.get("ssl.endpoint.identification.algorithm", "https").lower() != "none",
    )


def _mechanism(properties: Mapping[str, str]) -> str:
    return (properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "GSSAPI").upper()


def _sasl(properties: Mapping[str, str]) -> SaslSettings:
    username, password = properties.get("sasl.username", ""), properties.get("sasl.password", "")
    mechanism = _mechanism(properties)
    if mechanism == "OAUTHBEARER":
        source = token_source(properties)
        return SaslSettings(mechanism, source.user, token=source)
    if mechanism in MECHANISMS and not (username and password):
        missing = "sasl.username" if not username else "sasl.password"
        raise UsageError(f"security.protocol asks for SASL {mechanism}, but {missing} is not set")
    return SaslSettings(mechanism, username, password)


def _whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{name}: '{text}' is not a whole number")
    return int(text)
