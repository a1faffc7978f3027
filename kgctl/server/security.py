"""Who may talk to the server, and who may listen in: TLS and SASL by the settings that an Apache Kafka broker has for them.

Passwords are never kept: a user's credentials are the salted keys of SCRAM, from which no password comes back, in a file of the
data folder that only its owner reads. PLAIN is checked against the same keys.
"""

from __future__ import annotations

import hmac
import re
import ssl
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any

from kgctl.errors import KgctlError, UsageError
from kgctl.model.values import frozen_in_order
from kgctl.scram import ANOTHER_ID, HASHES, ScramError, ScramKeys, keys_of, server
from kgctl.server.listeners import BrokerListener
from kgctl.storage.files import CREDENTIALS_FILE, Documents

MECHANISMS = ("PLAIN", *HASHES)
MECHANISM_NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""By those of the protocol."""
SETTINGS = (
    *("ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
    *("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.certificates", "ssl.client.auth"),
    *("ssl.enabled.protocols", "sasl.enabled.mechanisms", "sasl.jaas.config"),
)
PLAIN_USERS = "plain.sasl.jaas.config"
"""Where Kafka has the users of PLAIN; ``sasl.jaas.config`` without a mechanism, which it ignores, has the cluster's here."""
_STRONGEST = "SCRAM-SHA-512"
_PREFIXES = re.compile(r"(?:listener\.name\.([\w-]+)\.)?(?:(plain|scram-sha-256|scram-sha-512)\.(?=sasl\.))?")
_USER = re.compile(r'user_([^=\s]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))')
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@frozen_in_order
class SecurityConfig:
    """A listener's protocol and what belongs to it. ``settings`` have Kafka's names, without a listener's prefix."""

    protocol: str = "PLAINTEXT"
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the SASL mechanisms that are offered (``sasl.enabled.mechanisms``). Raises `UsageError`."""
        names = [name.strip() for name in self.settings.get("sasl.enabled.mechanisms", ",".join(MECHANISMS)).split(",")]
        if unknown := [name for name in names if name not in MECHANISMS]:
            raise UsageError(f"setting 'sasl.enabled.mechanisms': {unknown[0]!r} is none of {', '.join(MECHANISMS)}")
        return tuple(names)

    @property
    def keeps_strangers_out(self) -> bool:
        """Whether nobody without credentials gets in, and nobody on the way reads them: fit for a network."""
        return self.protocol == "SASL_SSL" or (self.protocol == "SSL" and self.settings.get("ssl.client.auth") == "required")

    def users(self) -> dict[str, str]:
        """Names and passwords of the cluster's users, for every listener and mechanism."""
        return users_of(self.settings.get("sasl.jaas.config", ""))

    def plain_users(self) -> dict[str, str] | None:
        """Those who alone may log in by PLAIN here; None where the cluster's users may."""
        return users_of(self.settings[PLAIN_USERS]) if PLAIN_USERS in self.settings else None


def users_of(login: str) -> dict[str, str]:
    """Names and passwords of a line for JAAS: ``user_alice="..."``, as PlainLoginModule has them."""
    return {name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare for name, quoted, bare in _USER.findall(login)}


def split_security(
    listeners: Sequence[BrokerListener], config: Mapping[str, str]
) -> tuple[dict[str, SecurityConfig], dict[str, str]]:
    """The settings of security by the name of the listener, and all others. Raises `UsageError` for values that cannot be.

    ``listener.name.NAME.`` before a setting is for that listener alone; the users of any ``sasl.jaas.config`` without a mechanism
    before it are the cluster's. Nobody is named for SCRAM alone: what a broker is told there is its own login.
    """
    common: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {listener.name: {} for listener in listeners}
    rest: dict[str, str] = {}
    for name, value in config.items():
        prefixes = _PREFIXES.match(name)
        plain = name[prefixes.end() :] if prefixes else name
        if plain not in SETTINGS:
            rest[name] = value
            continue
        whose = prefixes[1] if prefixes else None
        if whose is not None and whose.upper() not in own:
            raise UsageError(f"setting {name!r}: there is no listener {whose.upper()!r}, only {', '.join(own)}")
        settings = common if whose is None else own[whose.upper()]
        if plain == "sasl.jaas.config" and prefixes is not None and prefixes[2]:
            settings |= {PLAIN_USERS: value} if prefixes[2] == "plain" else {}
        else:
            settings[plain] = value
    found = {each.name: SecurityConfig(each.protocol, {**common, **own[each.name]}) for each in listeners}
    for security in found.values():
        _check(security)
    return found, rest


def _check(security: SecurityConfig) -> None:
    if security.has_sasl:
        security.mechanisms  # noqa: B018 - raises where one is unknown
    if security.has_tls and not {"ssl.keystore.location", "ssl.keystore.certificate.chain"} & security.settings.keys():
        raise UsageError(f"{security.protocol} needs a certificate: set ssl.keystore.location to a PEM file with key and chain")


def tls_context(config: SecurityConfig) -> ssl.SSLContext | None:
    """For a listener with TLS. Raises `UsageError` naming the setting whose file or value cannot be used."""
    if not config.has_tls:
        return None
    settings = config.settings
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wanted = [name.strip() for name in settings.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").split(",")]
    if not all(name in _VERSIONS for name in wanted):
        raise UsageError(f"setting 'ssl.enabled.protocols' must be of {', '.join(_VERSIONS)}, not {','.join(wanted)!r}")
    context.minimum_version = min(_VERSIONS[name] for name in wanted)
    context.maximum_version = max(_VERSIONS[name] for name in wanted)
    for name in ("ssl.keystore.type", "ssl.truststore.type"):
        if settings.get(name, "PEM").upper() != "PEM":
            raise UsageError(f"setting {name!r}: only PEM is supported, not {settings[name]!r}")
    _load_certificate(context, settings)
    _load_authorities(context, settings)
    return context


def _load_certificate(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    password = settings.get("ssl.key.password")
    inline = "\n".join(settings.get(name, "") for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain")).strip()
    name = "ssl.keystore.location" if "ssl.keystore.location" in settings else "ssl.keystore.certificate.chain"
    try:
        if "ssl.keystore.location" in settings:
            context.load_cert_chain(settings[name], password=password or "")
            return
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # for its owner's eyes only, gone at once
            file.write(inline)
            file.flush()
            context.load_cert_chain(file.name, password=password or "")
    except (OSError, ValueError) as error:
        raise UsageError(f"setting {name!r}: no PEM key and certificate can be read from it: {_reason(error)}") from None


def _load_authorities(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    mode = settings.get("ssl.client.auth", "none")
    if mode not in _CLIENT_AUTH:
        raise UsageError(f"setting 'ssl.client.auth' must be none, requested or required, not {mode!r}")
    if mode == "none":
        return
    name = "ssl.truststore.location" if "ssl.truststore.location" in settings else "ssl.truststore.certificates"
    if name not in settings:
        raise UsageError("setting 'ssl.client.auth' needs ssl.truststore.location: whose certificates are to be believed")
    try:
        if name == "ssl.truststore.location":
            context.load_verify_locations(cafile=settings[name])
        else:
            context.load_verify_locations(cadata=settings[name])
    except (OSError, ValueError) as error:
        raise UsageError(f"setting {name!r}: no PEM certificates can be read from it: {_reason(error)}") from None
    context.verify_mode = _CLIENT_AUTH[mode]


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL = re.compile(r'([,+"\\<>;])')


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """Whose certificate it is, the last part first, as Kafka names a user (RFC 2253)."""
    parts = [[(_SHORT.get(kind, kind), _SPECIAL.sub(r"\\\1", value)) for kind, value in part] for part in certificate["subject"]]
    return ",".join("+".join(map("=".join, part)) for part in reversed(parts))


class AuthenticationFailed(KgctlError):  # noqa: N818 - says what happened
    """A login is wrong; the message is what the client is told, Kafka's own."""


IsRight = Callable[[str, str], bool]
"""Whether this is the password of the user of this name."""


class Credentials:
    """Users and the salted keys of their passwords, in ``credentials.json`` of a data folder, or in memory.

    Who has keys for SCRAM alone, as clients give them, is not let in by PLAIN.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._users: dict[str, dict[str, Any]] = dict(documents.read(CREDENTIALS_FILE) or {})

    @cached_property
    def _stranger(self) -> dict[str, Any]:
        """Made when somebody logs in: it takes milliseconds."""
        return _all_keys("no password of anybody")

    def __len__(self) -> int:
        return len(self._users)

    def set_passwords(self, passwords: Mapping[str, str]) -> None:
        """Replace users' credentials by those of these passwords; users with the same password keep theirs."""
        changed = {name: word for name, word in passwords.items() if not (name in self._users and self.is_right(name, word))}
        for name, password in changed.items():
            self._users[name] = _all_keys(password)
        if changed:
            self._documents.write(CREDENTIALS_FILE, self._users)

    def is_right(self, name: str, password: str) -> bool:
        """Whether this is the user's password; takes as long for a user whom nobody knows."""
        return _is_password(password, self.scram(_PLAIN, name)) and _PLAIN in self._users.get(name, {})

    def scram(self, mechanism: str, name: str) -> ScramKeys:
        """A user's keys; somebody's that nobody can use for one whom nobody knows, or not with this mechanism."""
        keys = self._users.get(name, {}).get(mechanism) or self._stranger[mechanism]
        return ScramKeys(
            b64decode(keys["salt"]), b64decode(keys["stored_key"]), b64decode(keys["server_key"]), keys["iterations"]
        )

    def names(self) -> list[str]:
        """Return who has keys for SCRAM."""
        return [name for name in self._users if self.iterations(name)]

    def iterations(self, name: str) -> dict[str, int]:
        """Return the mechanisms of SCRAM that a user has keys for, with their iterations."""
        return {each: keys["iterations"] for each, keys in self._users.get(name, {}).items() if each != _PLAIN}

    def alter(self, changes: Mapping[str, tuple[str, ScramKeys | None]]) -> None:
        """Give users keys for a mechanism, or take them away (None). Raises `StorageError`: all as before."""
        users = {name: dict(keys) for name, keys in self._users.items()}
        for name, (mechanism, keys) in changes.items():
            kept = {each: known for each, known in users.pop(name, {}).items() if each != mechanism}
            kept |= {} if keys is None else {mechanism: _row(keys)}
            users |= {name: kept} if kept else {}
        if changes:
            self._documents.write(CREDENTIALS_FILE, users)
            self._users = users


def passwords_of(users: Mapping[str, str]) -> IsRight:
    """Check the passwords of these users, of whom only salted keys are kept; it takes as long for others."""
    kept = {name: keys_of(_STRONGEST, password) for name, password in users.items()}
    stranger = keys_of(_STRONGEST, "no password of anybody")
    return lambda name, password: _is_password(password, kept.get(name, stranger)) and name in kept


def _is_password(password: str, kept: ScramKeys) -> bool:
    return hmac.compare_digest(keys_of(_STRONGEST, password, kept.salt, kept.iterations).stored_key, kept.stored_key)


_PLAIN = MECHANISMS[0]


def _all_keys(password: str) -> dict[str, Any]:
    return {_PLAIN: _row(keys_of(_STRONGEST, password))} | {each: _row(keys_of(each, password)) for each in HASHES}


def _row(keys: ScramKeys) -> dict[str, Any]:
    texts = {"salt": keys.salt, "stored_key": keys.stored_key, "server_key": keys.server_key}
    return {name: b64encode(value).decode() for name, value in texts.items()} | {"iterations": keys.iterations}


Conversation = Generator[tuple[bytes, str], bytes, None]
"""Is sent what the client says, yields what to answer and, with the last answer, the user's name."""


def conversation(mechanism: str, credentials: Credentials, is_right: IsRight) -> Conversation:
    """The server's side of a login, to be started with ``next``; ``is_right`` is for PLAIN. Raises `AuthenticationFailed`."""
    return _plain(is_right) if mechanism == _PLAIN else _scram(mechanism, credentials)


def _plain(is_right: IsRight) -> Conversation:
    """Kafka: PlainSaslServer#evaluateResponse."""
    token = yield b"", ""
    parts = token.split(b"\0")
    if len(parts) != len(("authorization id", "user", "password")):
        raise AuthenticationFailed("Invalid SASL/PLAIN response: expected 3 tokens, got " + str(len(parts)))
    authorization_id, name, password = (part.decode("utf-8", "replace") for part in parts)
    if not name or not password:
        what = "username" if not name else "password"
        raise AuthenticationFailed(f"Authentication failed: {what} not specified")
    if not is_right(name, password):
        raise AuthenticationFailed("Authentication failed: Invalid username or password")
    if authorization_id not in ("", name):
        raise AuthenticationFailed("Authentication failed: Client requested an authorization id that is different from username")
    yield b"", name


def _scram(mechanism: str, credentials: Credentials) -> Conversation:
    try:
        yield from server(mechanism, partial(credentials.scram, mechanism))
    except ScramError as error:
        reason = f" during authentication due to invalid credentials with SASL mechanism {mechanism}"
        if str(error) == ANOTHER_ID:
            reason = f": {error}"
        raise AuthenticationFailed(f"Authentication failed{reason}") from None
