"""Consumer groups that live in ZooKeeper: those of Kafka's consumers before 0.9, and of clients that kept to their tree.

`registry` has the whole surface of such a group as a Python API, `admin` puts it behind `kgctl.admin.GroupAdmin`, `consumer` is a
running consumer of that kind, and copies offsets into a group on Kafka. Only `connection` imports kazoo. Here are the tree of a
group and what its nodes hold::

    /consumers/<group>/ids/<instance>                  ephemeral; JSON, a `Registration`
    /consumers/<group>/owners/<topic>/<partition>      ephemeral; the claiming instance's id
    /consumers/<group>/offsets/<topic>/<partition>     the committed offset, in decimal digits
    /brokers/ids/<id>, /brokers/topics/<topic>         what Kafka itself keeps there; JSON
    /cluster/id                                        JSON

Kafka 1.1: kafka.utils.ZKGroupDirs, kafka.consumer.TopicCount, kafka.consumer.ZookeeperConsumerConnector.

Which ZooKeeper is written as ``HOST:PORT[,HOST:PORT][/CHROOT]``, and how to log in there by properties::

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

import json
import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, ClassVar

from kgctl.errors import KgctlError, NotFoundError, RefusedError, UnreachableError, UsageError, did_you_mean
from kgctl.model.groups import Node
from kgctl.model.values import frozen_in_order


class _SaidError(KgctlError):
    """An error of a group; ``says`` is its message, made of what it is about."""

    says: ClassVar[str]

    def __init__(self, group: str, **about: Any) -> None:
        place = {name: about[name] for name in ("topic", "partition") if name in about}
        super().__init__(self.says.format(group=group, **about), group=group, **place)


class GroupNotFoundError(_SaidError, NotFoundError):
    """Raised where ZooKeeper has no group of this name."""

    slug = "GROUP_ID_NOT_FOUND"
    says = "group {group!r} does not exist in ZooKeeper"


class InstanceNotRegisteredError(_SaidError, NotFoundError):
    """The instance is not registered, or its session has ended."""

    slug = "INSTANCE_NOT_REGISTERED"
    says = "instance {instance!r} of group {group!r} is not registered"


class PartitionNotClaimedError(_SaidError, NotFoundError):
    """The partition cannot be released: this instance has not claimed it."""

    slug = "PARTITION_NOT_CLAIMED"
    says = "{topic}-{partition} of group {group!r} is not claimed by instance {instance!r}"


class RunningInstancesError(RefusedError):
    """Instances of the group are running, so it must be left alone."""

    slug = "NON_EMPTY_GROUP"

    def __init__(self, group: str, count: int | None = None) -> None:
        running = "instances are" if count is None else f"{count} instance{' is' if count == 1 else 's are'}"
        super().__init__(f"group {group!r} is active: {running} running; stop its consumers first", group=group)


class InstanceRegisteredError(_SaidError, RefusedError):
    """The instance is registered already, by this session or another."""

    slug = "INSTANCE_ALREADY_REGISTERED"
    says = "instance {instance!r} of group {group!r} is registered already"


class PartitionClaimedError(_SaidError, RefusedError):
    """Another instance (``owner``) has the partition: wait for its release and try again."""

    slug = "PARTITION_CLAIMED_BY_OTHER"
    says = "{topic}-{partition} of group {group!r} is claimed by instance {owner!r}"

    def __init__(self, group: str, *, topic: str, partition: int, owner: str) -> None:
        super().__init__(group, topic=topic, partition=partition, owner=owner)
        self.owner = owner


class ChangedMeanwhileError(_SaidError, RefusedError):
    """Others changed the group at each attempt to write; nothing was written by the last one."""

    slug = "CHANGED_MEANWHILE"
    says = "group {group!r} was changed by others at each of {attempts} attempts to write"


class SessionLostError(UnreachableError):
    """ZooKeeper ended the session, and with it this client's registrations and claims."""

    slug = "SESSION_LOST"


class MalformedNodeError(KgctlError):
    """A node holds something that no consumer writes there; ``path`` is the node's."""

    slug = "MALFORMED_NODE"

    def __init__(self, path: str, problem: str, *, group: str | None = None) -> None:
        super().__init__(f"{path}: {problem}", group=group)
        self.path = path


GROUPS = "/consumers"
BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
MAX_OFFSET = 2**63 - 1
_SECONDS_BELOW = 10**11
"""Timestamps below are seconds (kazoo-go writes them), others milliseconds (Kafka)."""


def group_path(group: str, *below: str | int) -> str:
    """The node of a group, or one below.

    Raises:
        UsageError: a name that no node can have.
    """
    for name in (group, *below):
        check_name(str(name))
    return "/".join((GROUPS, group, *map(str, below)))


def ids_path(group: str, *instance: str) -> str:
    """Where a group's instances are registered, or one of them."""
    return group_path(group, "ids", *instance)


def owners_path(group: str, *below: str | int) -> str:
    """Where a group's claims are: all, those of a topic, or one partition's."""
    return group_path(group, "owners", *below)


def offsets_path(group: str, *below: str | int) -> str:
    """Where a group's offsets are: all, those of a topic, or one partition's."""
    return group_path(group, "offsets", *below)


def check_name(name: str) -> None:
    """Whether a node can be called that.

    Raises:
        UsageError: it cannot.
    """
    if not is_name(name):
        raise UsageError(f"{name!r} cannot be a name in ZooKeeper: it is empty, or has a slash, a control character or only dots")


def is_name(name: str) -> bool:
    """ZooKeeper: org.apache.zookeeper.common.PathUtils#validatePath."""
    return name not in ("", ".", "..") and re.search("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]", name) is None


class Pattern(StrEnum):
    """How an instance says which topics it reads: by name, or by a regular expression that topics match or do not match."""

    STATIC = "static"
    WHITE_LIST = "white_list"
    BLACK_LIST = "black_list"


@frozen_in_order
class Registration:
    """What an instance registers: topic (or, for a list, regular expression) -> number of streams.

    ``timestamp`` as written: seconds or milliseconds since the epoch, None where there is none.
    """

    subscription: Mapping[str, int] = field(default_factory=dict)
    pattern: Pattern = Pattern.STATIC
    timestamp: int | None = None
    version: int = 1

    @property
    def timestamp_ms(self) -> int | None:
        """The timestamp in milliseconds, whichever unit was written."""
        if self.timestamp is None:
            return None
        return self.timestamp * 1000 if self.timestamp < _SECONDS_BELOW else self.timestamp

    def reads(self, topic: str) -> bool:
        """Whether the instance reads a topic.

        Kafka: kafka.consumer.Whitelist and Blacklist (a comma stands for "or"; the whole name must match; a blacklist never
        means Kafka's own topics).
        """
        if self.pattern is Pattern.STATIC:
            return topic in self.subscription
        matches = any(re.fullmatch(_python_regex(regex), topic) for regex in self.subscription)
        return matches if self.pattern is Pattern.WHITE_LIST else not matches and not topic.startswith("__")


def _python_regex(regex: str) -> str:
    plain = regex.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        re.compile(plain)
    except re.error:
        return r"(?!)"
    return plain


def encode_registration(registration: Registration) -> bytes:
    """Return the JSON of a registration."""
    document = {
        "version": registration.version,
        "subscription": dict(registration.subscription),
        "pattern": registration.pattern.value,
        "timestamp": registration.timestamp,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode_registration(path: str, data: bytes) -> Registration:
    """What an instance registered.

    Raises:
        MalformedNodeError: it is not a registration of version 1.
    """
    document = _json(path, data)
    version, subscription = document.get("version", 1), document.get("subscription")
    if version != 1:
        raise MalformedNodeError(path, f"a registration of version {version!r}; only 1 is known")
    if not isinstance(subscription, dict) or not all(type(count) is int and count > 0 for count in subscription.values()):
        raise MalformedNodeError(path, "the registration's subscription does not map topics to numbers of streams")
    pattern = document.get("pattern", Pattern.STATIC.value)
    if pattern not in {known.value for known in Pattern}:
        raise MalformedNodeError(path, f"the registration's pattern {pattern!r} is unknown")
    timestamp = str(document.get("timestamp") or "")
    return Registration(subscription, Pattern(pattern), int(timestamp) if timestamp.isdecimal() else None)


def check_offset(offset: int) -> None:
    """Whether a number can be an offset.

    Raises:
        UsageError: it cannot.
    """
    if not 0 <= offset <= MAX_OFFSET:
        raise UsageError(f"{offset} is no offset: they go from 0 to {MAX_OFFSET}")


def encode_offset(offset: int) -> bytes:
    """Return the text of an offset."""
    return str(offset).encode()


def decode_offset(path: str, data: bytes) -> int:
    """A committed offset.

    Raises:
        MalformedNodeError: it is no number of 0 to 2^63-1.
    """
    text = data.decode("ascii", "replace").strip()
    if re.fullmatch(r"[0-9]{1,19}", text) is None or int(text) > MAX_OFFSET:
        raise MalformedNodeError(path, f"{_shown(data)} is not an offset")
    return int(text)


def decode_partition(path: str, name: str) -> int:
    """The number of a partition, which is a node's name.

    Raises:
        MalformedNodeError: it is none.
    """
    if re.fullmatch(r"[0-9]{1,10}", name) is None or int(name) >= 2**31:
        raise MalformedNodeError(f"{path}/{name}", f"{name!r} is not a partition")
    return int(name)


def decode_broker(path: str, data: bytes) -> Node:
    """A broker with its first address; one that only has listeners of its own is known by those.

    Raises:
        MalformedNodeError: it has no address.
    """
    document = _json(path, data)
    number = int(path.rpartition("/")[2])
    host, port = document.get("host"), document.get("port")
    if isinstance(host, str) and type(port) is int and port > 0:
        return Node(number, host, port)
    for endpoint in document.get("endpoints") or ():
        if match := re.fullmatch(r"[^:/]+://(.*):(\d+)", str(endpoint)):
            return Node(number, match[1], int(match[2]))
    raise MalformedNodeError(path, "the broker has no address")


def decode_partition_count(path: str, data: bytes) -> int:
    """How many partitions a topic has.

    Raises:
        MalformedNodeError: there is no assignment of partitions to brokers.
    """
    partitions = _json(path, data).get("partitions")
    if not isinstance(partitions, dict):
        raise MalformedNodeError(path, "the topic has no partitions")
    return len(partitions)


def decode_cluster_id(path: str, data: bytes) -> str:
    """Kafka's id of its cluster.

    Raises:
        MalformedNodeError: there is none in the node.
    """
    found = _json(path, data).get("id")
    if not isinstance(found, str) or not found:
        raise MalformedNodeError(path, "no cluster id")
    return found


def _json(path: str, data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise MalformedNodeError(path, f"{_shown(data)} is not JSON") from None
    if not isinstance(document, dict):
        raise MalformedNodeError(path, f"{_shown(data)} is not a JSON object")
    return document


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


PREFIX = "zookeeper."
PROPERTIES = tuple(
    PREFIX + name
    for name in (
        *("ssl.enabled", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password"),
        *("ssl.verify", "ssl.check.hostname", "digest", "sasl.mechanism", "sasl.username", "sasl.password"),
        *("sasl.service.name", "sasl.principal"),
    )
)
MECHANISMS = ("DIGEST-MD5", "GSSAPI")
DEFAULT_PORT = 2181
_BOOLEANS = {"true": True, "false": False}


@frozen_in_order
class ZooKeeperSettings:
    """A ZooKeeper and a place in it. ``chroot`` is "" or begins with a slash. ``tls`` has kazoo's names, ``sasl`` pure-sasl's."""

    hosts: tuple[str, ...]
    chroot: str = ""
    tls: Mapping[str, Any] | None = field(default=None, repr=False)
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


def _tls(own: Mapping[str, str]) -> Mapping[str, Any] | None:
    given = {name.removeprefix("ssl."): value for name, value in own.items() if name.startswith("ssl.")}
    if not given or not _BOOLEANS[given.get("enabled", "true").lower()]:
        return None
    if ("certificate.location" in given) != ("key.location" in given):
        raise UsageError(f"{PREFIX}ssl.certificate.location and {PREFIX}ssl.key.location belong together: give both")
    verify = _BOOLEANS[given.get("verify", "true").lower()]
    check_hostname = verify and _BOOLEANS[given.get("check.hostname", "true").lower()]
    files = {name: given.get(ours) for name, ours in _KAZOOS_FILES.items()}
    return {"use_ssl": True, **files, "verify_certs": verify, "check_hostname": check_hostname}


_KAZOOS_FILES = {
    "ca": "ca.location",
    "certfile": "certificate.location",
    "keyfile": "key.location",
    "keyfile_password": "key.password",
}


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
