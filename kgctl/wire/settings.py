"""librdkafka's connection properties: names, values, and what this package's own connection needs; and tokens for OAUTHBEARER.

OAUTHBEARER (RFC 7628, KIP-255, KIP-768): a token is fetched of an endpoint with client credentials
(``sasl.oauthbearer.method=oidc``, RFC 6749 section 4.4), or is an unsecured one of our own making
(``enable.sasl.oauthbearer.unsecure.jwt=true``), which brokers take in tests alone, or is signed with credentials of AWS
(``aws.msk.iam=true``), as Amazon MSK takes it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from kgctl.errors import AuthError, UnreachableError, UsageError, did_you_mean
from kgctl.extras import require
from kgctl.model.values import frozen_in_order
from kgctl.wire import Deadline
from kgctl.wire.tokens import BEARER, SOH, MadeToken, MakesTokens, token_of

if TYPE_CHECKING:
    import ssl


_PREFIX = "sasl.oauthbearer."
_LIFE_S = 3600
_MAX_TOKEN_BYTES = 1 << 20


@frozen_in_order
class TokenSource:
    """Where tokens come from: of ``endpoint``, signed for ``msk``, given as ``token``, or else unsecured with these claims."""

    endpoint: str | None = None
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    ca_location: str | None = None
    msk: MskLogin | None = None
    token: str = field(default="", repr=False)

    @property
    def user(self) -> str:
        """Who logs in, as far as that is known before a token is there."""
        known = self.client_id or self.claims.get("principal", "") or (self.msk.user if self.msk else "")
        return known or ("the bearer of the token" if self.token else "")


@frozen_in_order
class MskLogin:
    """An IAM login of Amazon MSK: by a role, by a profile, or else by the default credentials of AWS."""

    region: str
    profile: str = ""
    role_arn: str = ""
    session_name: str = ""

    @property
    def user(self) -> str:
        """Return the role or the profile, as a message names it."""
        return self.role_arn or self.profile or "the default credentials of AWS"


MSK_PROPERTIES = ("aws.msk.iam", "aws.msk.region", "aws.msk.profile", "aws.msk.role.arn", "aws.msk.role.session.name")
_MSK_ADDRESS = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")


MSK_MECHANISM = "AWS_MSK_IAM"
OWN_PROPERTIES = frozenset((*MSK_PROPERTIES, BEARER))
"""Properties that are kgctl's and that librdkafka does not know."""


def with_msk_mechanism(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with Amazon's own mechanism as its twin among Kafka's: the same signature, as a token of OAUTHBEARER."""
    found = dict(properties)
    for name in ("sasl.mechanism", "sasl.mechanisms"):
        if found.get(name, "").upper() == MSK_MECHANISM:
            found |= {name: "OAUTHBEARER", "aws.msk.iam": "true"}
    return found


def msk_login(properties: Mapping[str, str], variables: Mapping[str, str]) -> MskLogin | None:
    """Return the IAM login that the properties ask for, None where they ask for none.

    The region is the one that is set, or that of the brokers' addresses, or ``AWS_REGION``, ``AWS_DEFAULT_REGION``.

    Raises:
        UsageError: nothing tells the region.
    """
    if properties.get("aws.msk.iam", "false").lower() != "true":
        return None
    address = _MSK_ADDRESS.search(properties.get("bootstrap.servers", ""))
    region = properties.get("aws.msk.region") or (address[1] if address else None)
    region = region or variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    if not region:
        raise UsageError("an IAM login of Amazon MSK needs aws.msk.region, as the brokers' addresses name none")
    profile, role_arn = properties.get("aws.msk.profile", ""), properties.get("aws.msk.role.arn", "")
    return MskLogin(region, profile, role_arn, properties.get("aws.msk.role.session.name", ""))


def librdkafka_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties as a client of librdkafka takes them: a token that is given, and an IAM login of Amazon MSK, are what it
    calls for one. One is signed at once, so that who cannot is told.

    Raises:
        UsageError: an IAM login that cannot be.
        AuthError: AWS has no credentials for it.
    """
    found = with_msk_mechanism(properties)
    own: dict[str, Any] = {name: value for name, value in found.items() if name not in OWN_PROPERTIES}
    if isinstance(given := found.get(BEARER), MadeToken):
        made, context = [token_of(given)], copy_context()  # librdkafka calls in a thread of its own

        def again() -> str:
            return made.pop() if made else context.run(token_of, given)

        return {**own, "oauth_cb": lambda _: (again(), time.time() + _MADE_AGAIN_S)}  # noqa: TID251 - librdkafka's is the wall clock
    if given:
        return {**own, "oauth_cb": lambda _: (given, _NO_END_S)}
    login = msk_login(found, os.environ)
    if login is None:
        return own
    first = [msk_token(login)]
    return {**own, "oauth_cb": lambda _: first.pop() if first else msk_token(login)}


_NO_END_S = 4_102_444_800.0
"""In the year 2100: when a token that is given ends, the broker knows."""
_MADE_AGAIN_S = 300.0
"""How long a token that a function makes is taken to last: librdkafka asks again after four fifths of it."""


def msk_token(login: MskLogin) -> tuple[str, float]:
    """Return a signed token and when it ends, in seconds since the epoch.

    Raises:
        UsageError: the extra ``msk`` is not installed.
        AuthError: AWS has no credentials for the login.
    """
    require("an IAM login of Amazon MSK", "aws_msk_iam_sasl_signer")
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as signer  # noqa: N813 - a module

    try:
        if login.role_arn:
            session = (login.session_name,) if login.session_name else ()
            token, expires_ms = signer.generate_auth_token_from_role_arn(login.region, login.role_arn, *session)
        elif login.profile:
            token, expires_ms = signer.generate_auth_token_from_profile(login.region, login.profile)
        else:
            token, expires_ms = signer.generate_auth_token(login.region)
    except Exception as error:  # noqa: BLE001 - whatever the signer and botocore raise
        raise AuthError(f"AWS signs no token for {login.user}: {error}") from None
    return token, expires_ms / 1000


def _token_not_covered(properties: Mapping[str, str]) -> str | None:
    """The property for which librdkafka alone can get a token; None where this module can."""
    grant = properties.get(f"{_PREFIX}grant.type", "client_credentials")
    if grant != "client_credentials":
        return f"{_PREFIX}grant.type {grant}"
    kind = properties.get(f"{_PREFIX}metadata.authentication.type", "none")
    return None if kind == "none" else f"{_PREFIX}metadata.authentication.type {kind}"


def token_source(properties: Mapping[str, str]) -> TokenSource:
    """What the properties say.

    Raises:
        UsageError: what is needed for a token is not set.
    """
    extensions = _pairs(properties.get(f"{_PREFIX}extensions", ""), ",")
    if properties.get("enable.sasl.oauthbearer.unsecure.jwt", "false").lower() == "true":
        claims = _pairs(properties.get(f"{_PREFIX}config", ""), " ")
        if not claims.get("principal"):
            raise UsageError(f"unsecured tokens need {_PREFIX}config with principal=NAME")
        return TokenSource(extensions=extensions, claims=claims)
    if login := msk_login(properties, os.environ):
        return TokenSource(extensions=extensions, msk=login)
    if token := properties.get(BEARER):
        return TokenSource(extensions=extensions, token=token)
    if properties.get(f"{_PREFIX}method", "default").lower() != "oidc":
        raise UsageError(f"SASL OAUTHBEARER needs {_PREFIX}method=oidc with {_PREFIX}token.endpoint.url")
    client_id = properties.get(f"{_PREFIX}client.id") or properties.get(f"{_PREFIX}client.credentials.client.id", "")
    secret = properties.get(f"{_PREFIX}client.secret") or properties.get(f"{_PREFIX}client.credentials.client.secret", "")
    endpoint = properties.get(f"{_PREFIX}token.endpoint.url", "")
    needed = {"token.endpoint.url": endpoint, "client.id": client_id, "client.secret": secret}
    if missing := [name for name, value in needed.items() if not value]:
        raise UsageError(f"SASL OAUTHBEARER by {_PREFIX}method=oidc needs {_PREFIX}{missing[0]}")
    if not endpoint.startswith(("http://", "https://")):
        raise UsageError(f"{_PREFIX}token.endpoint.url: '{endpoint}' is no http or https address")
    scope, authority = properties.get(f"{_PREFIX}scope", ""), properties.get("https.ca.location") or None
    return TokenSource(endpoint, client_id, secret, scope, extensions, ca_location=authority)


def _pairs(text: str, separator: str) -> dict[str, str]:
    words = (word.strip().partition("=") for word in text.split(separator) if word.strip())
    return {name: value for name, _, value in words}


def first_message(source: TokenSource, context: ssl.SSLContext | None, deadline: Deadline) -> bytes:
    """The client's one message: the token, and the extensions. ``context`` is the endpoint's TLS, None for the system's.

    Raises:
        AuthError: the endpoint does not give a token.
        UnreachableError: it does not answer.
        UserCodeError: the function that makes tokens does not.
    """
    if source.msk:
        token, _ = msk_token(source.msk)
    elif source.token:
        token = token_of(source.token)
    else:
        token = _fetched(source, context, deadline) if source.endpoint else _unsecured(source.claims)
    pairs = {"auth": f"Bearer {token}", **source.extensions}
    return f"n,,{SOH}{SOH.join(f'{name}={value}' for name, value in pairs.items())}{SOH}{SOH}".encode()


def _unsecured(claims: Mapping[str, str]) -> str:
    """A token without a signature (RFC 7515, appendix A.5)."""
    now_s = int(time.time())  # noqa: TID251 - a login is a matter of the wall clock
    life_s = int(claims.get("lifeSeconds", _LIFE_S))
    name = claims.get("principalClaimName", "sub")
    payload: dict[str, object] = {name: claims["principal"], "iat": now_s, "exp": now_s + life_s}
    if claims.get("scope"):
        payload[claims.get("scopeClaimName", "scope")] = claims["scope"].split(",")
    return f"{_encoded({'alg': 'none'})}.{_encoded(payload)}."


def _encoded(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _fetched(source: TokenSource, context: ssl.SSLContext | None, deadline: Deadline) -> str:
    import urllib.error
    import urllib.parse
    import urllib.request

    assert source.endpoint is not None
    fields = {"grant_type": "client_credentials", **({"scope": source.scope} if source.scope else {})}
    who = f"{urllib.parse.quote(source.client_id, safe='')}:{urllib.parse.quote(source.client_secret, safe='')}"
    request = urllib.request.Request(  # noqa: S310 - the scheme has been looked at
        source.endpoint,
        data=urllib.parse.urlencode(fields).encode(),
        headers={"Authorization": f"Basic {base64.b64encode(who.encode()).decode()}", "Accept": "application/json"},
    )
    try:
        timeout_s = deadline.seconds_left(source.endpoint)
        with urllib.request.urlopen(request, timeout=timeout_s, context=context) as answer:  # noqa: S310 - as above
            return _token(json.loads(answer.read(_MAX_TOKEN_BYTES)), source)
    except urllib.error.HTTPError as error:
        error.close()
        raise AuthError(f"{source.endpoint} gives '{source.client_id}' no token: {error.code} {error.reason}") from None
    except TimeoutError:
        raise deadline.timed_out(source.endpoint) from None
    except OSError as error:
        if isinstance(getattr(error, "reason", None), TimeoutError):
            raise deadline.timed_out(source.endpoint) from None
        raise UnreachableError(f"cannot fetch a token of {source.endpoint}: {getattr(error, 'reason', None) or error}") from None
    except (ValueError, RecursionError):
        raise AuthError(f"{source.endpoint} does not answer as a token endpoint") from None


def _token(answer: object, source: TokenSource) -> str:
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token or SOH in token:
        raise AuthError(f"{source.endpoint} answers '{source.client_id}' without an access_token")
    return token


DEFAULT_PORT = 9092
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_NOT_COVERED = (
    "ssl.keystore.location", "ssl.engine.location", "ssl.providers", "ssl.curves.list", "ssl.sigalgs.list",
    "plugin.library.paths",
)  # fmt: skip
"""Properties that change how a connection is made secure and that only librdkafka implements."""


@frozen_in_order
class Address:
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen_in_order
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


@frozen_in_order
class SaslSettings:
    """Who logs in. The password is kept out of every message. ``token`` says where OAUTHBEARER has its tokens from."""

    mechanism: str
    username: str
    password: str = field(default="", repr=False)
    token: TokenSource | None = None


class Pause(NamedTuple):
    """How long is waited before something is tried again: ``first_ms``, doubled each time up to ``longest_ms``."""

    first_ms: int
    longest_ms: int = 1000

    def given(self, properties: Mapping[str, str], name: str) -> Pause:
        """As ``NAME.ms`` and ``NAME.max.ms`` say, where they are there. Raises `UsageError`."""
        first_ms = _whole_number(properties, f"{name}.ms", self.first_ms)
        return Pause(first_ms, _whole_number(properties, f"{name}.max.ms", self.longest_ms))

    def waits_s(self) -> Iterator[float]:
        """The waits one after the other; up to 20 percent apart in different processes, so that these do not come all at once.

        Kafka: ExponentialBackoff#backoff.
        """
        milliseconds, spread = min(self.first_ms, self.longest_ms), 0.8 + 0.4 * (os.getpid() % 101) / 100
        while True:
            yield milliseconds * spread / 1000
            milliseconds = min(2 * milliseconds, self.longest_ms)


RECONNECT, RETRY = Pause(50), Pause(100)
"""As Kafka's own clients pause: ``reconnect.backoff.ms`` and ``retry.backoff.ms``."""


@frozen_in_order
class WireSettings:
    """All that a connection needs to know. ``tls`` and ``sasl`` are None where the protocol has none.

    ``reconnect`` is the pause after a connection that was lost, ``retry`` that after an answer that was "not yet".
    """

    bootstrap: tuple[Address, ...]
    client_id: str = "kgctl"
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None
    address_family: str = "any"
    max_frame_bytes: int = 100_000_000
    reconnect: Pause = RECONNECT
    retry: Pause = RETRY

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
            reconnect=RECONNECT.given(properties, "reconnect.backoff"),
            retry=RETRY.given(properties, "retry.backoff"),
        )


def not_covered(properties: Mapping[str, str]) -> str | None:
    """Why this package cannot connect with these properties though librdkafka may, or None where it can."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol.startswith("SASL") and _mechanism(properties) not in MECHANISMS:
        return f"the SASL mechanism {_mechanism(properties)}"
    if protocol.startswith("SASL") and _mechanism(properties) == "OAUTHBEARER" and (why := _token_not_covered(properties)):
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
    protocol, _, rest = text.rpartition("://")
    if protocol.lower() in ("http", "https"):
        raise UsageError(
            f"bootstrap server '{text}': that is the address of a web service; brokers are named without {protocol}://, as in "
            f"{rest.partition(':')[0].rstrip('/') or 'broker'}:{DEFAULT_PORT}"
        )
    if protocol and protocol.upper() not in SECURITY_PROTOCOLS:
        raise UsageError(f"bootstrap server '{text}': expected host:port")
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


_CLIENT = """
    allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms bootstrap.servers
    broker.address.family broker.address.ttl broker.version.fallback client.dns.lookup client.id client.rack
    connections.max.idle.ms debug enable.metrics.push enable.random.seed enable.sasl.oauthbearer.unsecure.jwt
    enable.ssl.certificate.verification https.ca.location https.ca.pem log.connection.close log.thread.name log_level
    max.in.flight max.in.flight.requests.per.connection message.copy.max.bytes message.max.bytes metadata.broker.list
    metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy plugin.library.paths
    receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms
    retry.backoff.ms sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.principal sasl.kerberos.service.name sasl.mechanism sasl.mechanisms sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method sasl.oauthbearer.scope
    sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol
    socket.blocking.max.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
    socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores ssl.ca.location
    ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.curves.list
    ssl.endpoint.identification.algorithm ssl.engine.id ssl.engine.location ssl.key.location ssl.key.password ssl.key.pem
    ssl.keystore.location ssl.keystore.password ssl.providers ssl.sigalgs.list statistics.interval.ms
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
"""
CLIENT_PROPERTIES = frozenset(_CLIENT.split())
"""Properties that concern any client: these shape the connection of the admin client."""

_OTHER = """
    acks auto.commit.enable auto.commit.interval.ms auto.offset.reset batch.num.messages batch.size check.crcs
    compression.codec compression.level compression.type consume.callback.max.messages coordinator.query.interval.ms
    delivery.report.only.error delivery.timeout.ms enable.auto.commit enable.auto.offset.store enable.gapless.guarantee
    enable.idempotence enable.partition.eof fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes
    fetch.queue.backoff.ms fetch.wait.max.ms group.id group.instance.id group.protocol group.protocol.type
    group.remote.assignor heartbeat.interval.ms isolation.level linger.ms max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records message.send.max.retries message.timeout.ms offset.store.method offset.store.path
    offset.store.sync.interval.ms partition.assignment.strategy partitioner produce.offset.report
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms
    queued.max.messages.kbytes queued.min.messages queuing.strategy request.required.acks request.timeout.ms retries
    session.timeout.ms share.acknowledgement.mode sticky.partitioning.linger.ms transaction.timeout.ms transactional.id
"""
OTHER_PROPERTIES = frozenset(_OTHER.split())
"""Properties of consumers and producers: accepted, without effect on administration."""

KNOWN_PROPERTIES = CLIENT_PROPERTIES | OTHER_PROPERTIES | OWN_PROPERTIES

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_BOOLEANS = {"true": "true", "t": "true", "1": "true", "yes": "true", "false": "false", "f": "false", "0": "false", "no": "false"}


def checked_property(name: str, value: str | MakesTokens) -> str:
    """Return the value in the spelling that librdkafka and this package read; a function that makes tokens as `MadeToken`.

    Raises:
        UsageError: there is no such property, or it cannot have this value.
    """
    if name not in KNOWN_PROPERTIES:
        raise UsageError(f"{name}: no such property{did_you_mean(name, KNOWN_PROPERTIES)}")
    if not isinstance(value, str):
        if name != BEARER:
            raise UsageError(f"{name}: must be a text, not {value!r}; only {BEARER} can be a function")
        return MadeToken(value)
    if name == "security.protocol":
        if value.upper() not in SECURITY_PROTOCOLS:
            raise UsageError(f"{name}: '{value}' is none of {', '.join(SECURITY_PROTOCOLS)}")
        return value.upper()
    if name in ("sasl.mechanism", "sasl.mechanisms"):
        return value.upper()
    if name.endswith((".ms", ".bytes")) and not re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?\s*", value):
        raise UsageError(f"{name}: '{value}' is not a number")
    if name == "enable.ssl.certificate.verification":
        if value.lower() not in _BOOLEANS:
            raise UsageError(f"{name}: '{value}' is neither true nor false")
        return _BOOLEANS[value.lower()]
    return value
