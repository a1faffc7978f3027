"""What the user says about the connection: ``--command-config FILE`` and ``-X key=value``, as librdkafka's properties.

A Java client's file (``java.util.Properties#load``, read as UTF-8) is translated: most names are the same in both. What
differs: the login (``sasl.jaas.config``), certificates (Java key stores, which librdkafka cannot read, against PEM files), and
settings of Java classes. A property of Java's consumers, producers or serialisers that has no bearing on administration is
dropped, as Java's own tools do; one that would change the connection if it were dropped is refused. A name that neither
librdkafka nor a Java client knows is an error that names its nearest neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kgctl.admin import zookeeper
from kgctl.errors import UsageError
from kgctl.files import text_of
from kgctl.wire.settings import checked_property, with_msk_mechanism

RENAMED: Mapping[str, str] = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
"""Java's name -> librdkafka's, the value taken over as it is."""

_DROPPED = """
auto.include.jmx.reporter auto.register.schemas buffer.memory default.api.timeout.ms exclude.internal.topics
fetch.max.wait.ms interceptor.classes internal.leave.group.on.close key.deserializer key.serializer max.block.ms
max.request.size metadata.cluster.check.enable metadata.max.idle.ms metric.reporters metrics.num.samples
metrics.recording.level metrics.sample.window.ms partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
sasl.login.refresh.window.factor sasl.login.refresh.window.jitter socket.connection.setup.timeout.max.ms
ssl.enabled.protocols ssl.keymanager.algorithm ssl.keystore.type ssl.protocol ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.password ssl.truststore.type use.latest.version value.deserializer
value.serializer
"""
DROPPED = frozenset(_DROPPED.split())
"""Java's names that mean nothing for an administrator's connection (times are kgctl's own ``--timeout``)."""

DROPPED_PREFIXES = ("basic.auth.", "confluent.", "schema.registry.", "specific.avro.")
"""What serialisers in the same file are told."""

REFUSED: Mapping[str, str] = {
    "config.providers": "kgctl runs no Java classes; write the values themselves",
    "sasl.client.callback.handler.class": "kgctl runs no Java classes",
    "sasl.login.callback.handler.class": "kgctl runs no Java classes",
    "sasl.login.class": "kgctl runs no Java classes",
    "security.providers": "kgctl runs no Java classes",
    "ssl.engine.factory.class": "kgctl runs no Java classes",
    "ssl.provider": "kgctl uses OpenSSL",
}
"""Java's names that cannot be honoured, and why."""

_LOGIN_MODULE = re.compile(
    r"\s*(?P<name>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*)", re.DOTALL | re.IGNORECASE
)
_LOGIN_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
_BEARER_MODULE = "OAuthBearerLoginModule"
_MSK_MODULE = "IAMLoginModule"
_MSK_HANDLERS = ("IAMClientCallbackHandler", "IAMOAuthBearerLoginCallbackHandler")
_OWN_HANDLERS = ("OAuthBearerLoginCallbackHandler", *_MSK_HANDLERS)
"""Java's classes for client credentials and for Amazon MSK; what they do, both clients do without them."""
_MSK_OPTIONS = {
    "awsProfileName": "aws.msk.profile",
    "awsRoleArn": "aws.msk.role.arn",
    "awsRoleSessionName": "aws.msk.role.session.name",
}
"""Options of Java's login module for Amazon MSK -> kgctl's names."""
_PASSWORD_MODULES = ("PlainLoginModule", "ScramLoginModule")

Fail = Callable[[str, str], UsageError]
"""Makes the error for one key: (key, why)."""


def translate(properties: Mapping[str, str], fail: Fail) -> dict[str, str]:
    """The properties by librdkafka's names; names that are the same in both pass unchanged.

    Raises what ``fail`` makes, for a property that cannot be honoured.
    """
    out: dict[str, str] = {}
    for key, value in properties.items():
        if key in REFUSED and value.rpartition(".")[2] not in _OWN_HANDLERS:
            raise fail(key, REFUSED[key])
        if key in RENAMED:
            out[RENAMED[key]] = value
        elif not (key in DROPPED or key in REFUSED or key in _SPECIAL or key.startswith(DROPPED_PREFIXES)):
            out[key] = value
    for key, special in _SPECIAL.items():
        if key in properties:
            out.update(special(properties, fail))
    return out


def _login(properties: Mapping[str, str], fail: Fail) -> dict[str, str]:
    """``sasl.jaas.config`` of the login modules that hold a name and a password, or what a token is fetched or signed with."""
    found = _LOGIN_MODULE.fullmatch(properties["sasl.jaas.config"])
    if not found:
        raise fail("sasl.jaas.config", "expected 'LoginModule required option=\"value\" ...;'")
    name = found["name"].rpartition(".")[2]
    options = {key: _unquote(a or b) or c for key, a, b, c in _LOGIN_OPTION.findall(found["options"])}
    handlers = {properties.get(f"sasl.{which}.callback.handler.class", "").rpartition(".")[2] for which in ("client", "login")}
    if name == _MSK_MODULE or (name == _BEARER_MODULE and handlers & {*_MSK_HANDLERS}):
        return {"aws.msk.iam": "true", **{ours: options[theirs] for theirs, ours in _MSK_OPTIONS.items() if options.get(theirs)}}
    if name == _BEARER_MODULE:
        return _token_login(options, fail)
    if name not in _PASSWORD_MODULES:
        raise fail("sasl.jaas.config", f"{name} cannot be used; set librdkafka's sasl.* properties in its place")
    if "username" not in options or "password" not in options:
        raise fail("sasl.jaas.config", "it has no username or no password")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _token_login(options: Mapping[str, str], fail: Fail) -> dict[str, str]:
    """OAUTHBEARER: client credentials, or an unsecured token's claims (KIP-255, KIP-768)."""
    if options.get("clientId") and options.get("clientSecret"):
        names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
        given = {f"sasl.oauthbearer.{ours}": options[theirs] for theirs, ours in names.items() if theirs in options}
        return {"sasl.oauthbearer.method": "oidc", **given}
    principal = options.get("unsecuredLoginStringClaim_sub")
    if principal is None:
        raise fail("sasl.jaas.config", "it has neither clientId and clientSecret nor unsecuredLoginStringClaim_sub")
    return {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={principal}"}


def _mechanism(properties: Mapping[str, str], _fail: Fail) -> dict[str, str]:
    return with_msk_mechanism({"sasl.mechanism": properties["sasl.mechanism"]})


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _trust_store(properties: Mapping[str, str], fail: Fail) -> dict[str, str]:
    kind = properties.get("ssl.truststore.type", "JKS").upper()
    if kind != "PEM":
        hint = "export its certificates as PEM (keytool -list -rfc) and set ssl.ca.location to that file"
        raise fail("ssl.truststore.location", f"a trust store of type {kind} cannot be read; {hint}")
    return {"ssl.ca.location": properties["ssl.truststore.location"]}


def _key_store(properties: Mapping[str, str], fail: Fail) -> dict[str, str]:
    kind = properties.get("ssl.keystore.type", "JKS").upper()
    location = properties["ssl.keystore.location"]
    if kind == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if kind == "PKCS12" or location.lower().endswith((".p12", ".pfx")):
        return {"ssl.keystore.location": location}
    hint = "convert it to PKCS12 (keytool -importkeystore -deststoretype pkcs12) or to PEM files"
    raise fail("ssl.keystore.location", f"a key store of type {kind} cannot be read; {hint}")


def _endpoint_identification(properties: Mapping[str, str], _fail: Fail) -> dict[str, str]:
    """Java's way to switch the check of the host name off is the empty text."""
    return {"ssl.endpoint.identification.algorithm": properties["ssl.endpoint.identification.algorithm"].lower() or "none"}


def _cipher_suites(properties: Mapping[str, str], fail: Fail) -> dict[str, str]:
    """OpenSSL separates its names by colons and names suites before TLS 1.3 differently."""
    suites = properties["ssl.cipher.suites"]
    if "_WITH_" in suites:
        raise fail("ssl.cipher.suites", "these are Java's names; librdkafka wants OpenSSL's, separated by colons")
    return {"ssl.cipher.suites": suites.replace(",", ":")} if suites else {}


_SPECIAL: Mapping[str, Callable[[Mapping[str, str], Fail], dict[str, str]]] = {
    "sasl.jaas.config": _login,
    "sasl.mechanism": _mechanism,
    "ssl.truststore.location": _trust_store,
    "ssl.keystore.location": _key_store,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
    "ssl.cipher.suites": _cipher_suites,
}


_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One entry with the line that it begins on, from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str, source: str) -> list[Property]:
    """All entries in file order. Raises `UsageError` naming ``source`` and the line for a malformed escape."""
    return [_parse_line(line, number, source) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank lines, continuation lines joined, each with the number of its first line."""
    pending, first = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = raw.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first or number
        if _is_continued(line):
            pending += line[:-1]
            continue
        yield first, pending + line
        pending, first = "", 0
    if pending:
        yield first, pending


def _is_continued(line: str) -> bool:
    """An odd number of backslashes at the end: the last of them stands for itself, not for an escaped backslash."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _parse_line(line: str, number: int, source: str) -> Property:
    end = _key_end(line)
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return Property(_unescape(line[:end], number, source), _unescape(rest, number, source), number)


def _key_end(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str, number: int, source: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "\\" or position + 1 == len(text):
            out.append(char)
            position += 1
        elif text[position + 1] == "u":
            out.append(_unicode(text[position + 2 : position + 6], number, source))
            position += 6
        else:
            out.append(_ESCAPES.get(text[position + 1], text[position + 1]))
            position += 2
    return "".join(out)


def _unicode(digits: str, number: int, source: str) -> str:
    try:
        if len(digits) != 4:
            raise ValueError
        return chr(int(digits, 16))
    except ValueError:
        raise UsageError(f"{source}:{number}: malformed \\u escape: \\u{digits}") from None


def load_command_config(path: Path) -> Mapping[str, str]:
    """A properties file of a Java client, or one with librdkafka's names (both may be mixed), by librdkafka's names.

    Raises `UsageError` with file and line: unreadable, an unknown name, a value that cannot be honoured (a JKS key store).
    """
    return _from_entries(parse_properties(text_of(path), str(path)), str(path))


def parse_x(arguments: Sequence[str]) -> Mapping[str, str]:
    """The ``-X key=value`` arguments; the last of one name wins. Raises `UsageError` for a malformed or unknown one."""
    found: dict[str, str] = {}
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator or not key.strip():
            raise UsageError(f"-X {argument}: expected key=value")
        found[key.strip()] = value

    def fail(key: str, why: str) -> UsageError:
        return UsageError(f"-X {key}: {why}")

    return {key: _checked(key, value, fail) for key, value in translate(found, fail).items()}


def _from_entries(entries: Sequence[Property], source: str) -> Mapping[str, str]:
    lines = {entry.key: entry.line for entry in entries}

    def fail(key: str, why: str) -> UsageError:
        return UsageError(f"{source}:{lines.get(key, 1)}: {key}: {why}")

    merged = {entry.key: entry.value.strip() for entry in entries}
    return {key: _checked(key, value, fail) for key, value in translate(merged, fail).items()}


def _checked(key: str, value: str, fail: Fail) -> str:
    """The value in the spelling that both clients read; raises for an unknown name or a bad value."""
    try:
        if not key.startswith(zookeeper.PREFIX):
            return checked_property(key, value)
        zookeeper.check_property(key, value)
    except UsageError as error:
        raise fail(key, error.message.removeprefix(f"{key}: ")) from None
    return value
