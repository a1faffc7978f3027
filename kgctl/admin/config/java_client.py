"""A Java client's properties in librdkafka's terms.

Most names are the same in both. What differs: the login (``sasl.jaas.config``), certificates (Java key stores, which librdkafka
cannot read, against PEM files), and settings of Java classes. A property of Java's consumers, producers or serialisers that has
no bearing on administration is dropped, as Java's own tools do; one that would change the connection if it were dropped is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kgctl.errors import UsageError

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
_PASSWORD_MODULES = ("PlainLoginModule", "ScramLoginModule")

Fail = Callable[[str, str], UsageError]
"""Makes the error for one key: (key, why)."""


def translate(properties: Mapping[str, str], fail: Fail) -> dict[str, str]:
    """The properties by librdkafka's names; names that are the same in both pass unchanged.

    Raises what ``fail`` makes, for a property that cannot be honoured.
    """
    out: dict[str, str] = {}
    for key, value in properties.items():
        if key in REFUSED:
            raise fail(key, REFUSED[key])
        if key in RENAMED:
            out[RENAMED[key]] = value
        elif not (key in DROPPED or key in _SPECIAL or key.startswith(DROPPED_PREFIXES)):
            out[key] = value
    for key, special in _SPECIAL.items():
        if key in properties:
            out.update(special(properties, fail))
    return out


def _login(properties: Mapping[str, str], fail: Fail) -> dict[str, str]:
    """``sasl.jaas.config`` of the two login modules that hold a name and a password."""
    found = _LOGIN_MODULE.fullmatch(properties["sasl.jaas.config"])
    if not found:
        raise fail("sasl.jaas.config", "expected 'LoginModule required option=\"value\" ...;'")
    name = found["name"].rpartition(".")[2]
    if name not in _PASSWORD_MODULES:
        raise fail("sasl.jaas.config", f"{name} cannot be used; set librdkafka's sasl.* properties in its place")
    options = {key: _unquote(a or b) or c for key, a, b, c in _LOGIN_OPTION.findall(found["options"])}
    if "username" not in options or "password" not in options:
        raise fail("sasl.jaas.config", "it has no username or no password")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


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
    "ssl.truststore.location": _trust_store,
    "ssl.keystore.location": _key_store,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
    "ssl.cipher.suites": _cipher_suites,
}
