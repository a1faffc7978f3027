"""Logins, encryption and rights of a test's cluster: what its brokers are told, and what a client needs to get in."""

from __future__ import annotations

import re
import secrets  # noqa: TID251  # nobody is to guess who the cluster itself is
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kgctl.errors import UsageError, did_you_mean
from kgctl.extras import require
from kgctl.server.access import Denial
from kgctl.server.acls import parse_acl
from kgctl.server.listeners import PROTOCOLS, BrokerListener, listener_named, parse_host_and_port
from kgctl.server.security import MECHANISMS, PLAIN_USERS, split_security

OWN_USER = "kgctl-testing"
"""Who the cluster's own `admin` is: it may do everything, whatever is denied."""


def listeners_of(protocol: str, more: Mapping[str, str], advertised: Mapping[str, str]) -> list[BrokerListener]:
    """The first one, of this protocol, and more by their names, with what clients are told. Raises `UsageError`."""
    named = [BrokerListener(protocol, protocol), *(BrokerListener(name.upper(), each) for name, each in more.items())]
    told = {
        listener_named(name, named).name: parse_host_and_port(address, f"advertised {name!r}")
        for name, address in advertised.items()
    }
    return [replace(listener, advertised=told.get(listener.name)) for listener in named]


class Security:
    """How a cluster is protected, and the files that this takes, until `close`."""

    def __init__(self, listeners: Sequence[BrokerListener], users: Mapping[str, str] | None, config: Mapping[str, str]) -> None:
        """``listeners``, the first one being the cluster's own. Raises `UsageError` for what does not go together."""
        for protocol in (listener.protocol for listener in listeners):
            if protocol not in PROTOCOLS:
                raise UsageError(f"protocol {protocol!r} is none{did_you_mean(protocol, PROTOCOLS)}")
        self._listeners = listeners
        protocols = [listener.protocol for listener in listeners]
        self.has_logins, self.has_tls = any(map(_has_logins, protocols)), any(map(_has_tls, protocols))
        if users and not self.has_logins:
            raise UsageError(f"users log in with SASL_PLAINTEXT or SASL_SSL, not with {' and '.join(protocols)}")
        self._users = dict(users or {})
        self._own_password = secrets.token_hex()
        self._given = config
        self.own_client_id = f"{OWN_USER}-{secrets.token_hex()}"
        """Requests with it are the cluster's own."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def config(self) -> dict[str, str]:
        """What the brokers are told. Makes a certificate, if none is given: raises `UsageError` without what makes it."""
        config = {}
        if self.has_logins:
            own = {OWN_USER: self._own_password}
            config["sasl.jaas.config"] = f"{self._given.get('sasl.jaas.config', '')} {_login({**self._users, **own})}"
            of_listeners = [name for name in self._given if name.endswith(PLAIN_USERS)]
            config |= {name: f"{self._given[name]} {_login(own)}" for name in of_listeners}
        if self.has_tls and not any(name.startswith("ssl.keystore.") for name in self._given):
            self._folder = tempfile.TemporaryDirectory(prefix="kgctl-")
            config |= _certificate(Path(self._folder.name))
        self._given = {**self._given, **config}
        return config

    def properties(self, bootstrap: str, user: str | None, mechanism: str, listener: str | None = None) -> dict[str, str]:
        """librdkafka's properties for a user, by this listener or the first."""
        way_in = listener_named(listener, self._listeners) if listener else self._listeners[0]
        protocol = way_in.protocol
        found = {"bootstrap.servers": bootstrap, "security.protocol": protocol}
        if _has_tls(protocol) and "ssl.truststore.location" in self._given:
            found["ssl.ca.location"] = self._given["ssl.truststore.location"]
        if not _has_logins(protocol):
            if user is not None:
                raise UsageError(f"nobody logs in to a cluster of {protocol}: it takes protocol='SASL_SSL' and users={{...}}")
            return found
        if mechanism not in MECHANISMS:
            raise UsageError(f"mechanism {mechanism!r} is none{did_you_mean(mechanism, MECHANISMS)}")
        users = self._who_may_log_in(way_in, mechanism)
        name = next(iter(users)) if user is None else user
        password = users.get(name)
        if password is None:
            raise UsageError(f"user {name!r} is none of the cluster's, or of this listener{did_you_mean(name, users)}")
        return found | {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password}

    def _who_may_log_in(self, listener: BrokerListener, mechanism: str) -> dict[str, str]:
        """Users with passwords, the cluster itself last."""
        found, _ = split_security(self._listeners, self._given)
        own = found[listener.name].plain_users() if mechanism == MECHANISMS[0] else None
        users = found[listener.name].users() if own is None else own
        return {**{name: word for name, word in users.items() if name != OWN_USER}, OWN_USER: self._own_password}

    def own_properties(self, bootstrap: str) -> dict[str, str]:
        """Those of the cluster's own `admin`."""
        found = self.properties(bootstrap, OWN_USER if _has_logins(self._listeners[0].protocol) else None, MECHANISMS[0])
        del found["bootstrap.servers"]
        return {**found, "client.id": self.own_client_id}

    def close(self) -> None:
        """The files go."""
        if self._folder is not None:
            self._folder.cleanup()


def _has_logins(protocol: str) -> bool:
    return protocol.startswith("SASL_")


def _has_tls(protocol: str) -> bool:
    return protocol.endswith("SSL")


def _login(users: Mapping[str, str]) -> str:
    """As a line for JAAS has them."""
    return " ".join(f'user_{name}="{_escaped(password)}"' for name, password in users.items())


def _escaped(password: str) -> str:
    return re.sub(r'([\\"])', r"\\\1", password)


def _certificate(folder: Path) -> dict[str, str]:
    """One for this machine, and the authority that a client is to trust."""
    require("a certificate for tests", "trustme")
    import trustme

    authority = trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1", "::1")
    server.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    names = {"ssl.keystore.location": "server.pem", "ssl.truststore.location": "ca.pem"}
    return {name: str(folder / file) for name, file in names.items()}


def denial_of(rules: tuple[str, ...]) -> Denial:
    """Rules of the form ``[PRINCIPAL[@HOST]] OPERATION[,OPERATION...] RESOURCE:NAME``. Raises `UsageError`."""
    if not rules:
        raise UsageError("deny what? Such as deny('write topic:orders') or deny('alice read group:billing')")
    texts = [f"deny {rule}" if len(rule.split()) > len(("operations", "resource")) else f"deny User:* {rule}" for rule in rules]
    return Denial(tuple(acl for text in texts for acl in parse_acl(text)))
