"""The tree of a consumer group in ZooKeeper, and what its nodes hold.

::

    /consumers/<group>/ids/<instance>                  ephemeral; JSON, a `Registration`
    /consumers/<group>/owners/<topic>/<partition>      ephemeral; the claiming instance's id
    /consumers/<group>/offsets/<topic>/<partition>     the committed offset, in decimal digits
    /brokers/ids/<id>, /brokers/topics/<topic>         what Kafka itself keeps there; JSON
    /cluster/id                                        JSON

Kafka 1.1: kafka.utils.ZKGroupDirs, kafka.consumer.TopicCount, kafka.consumer.ZookeeperConsumerConnector.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kgctl.errors import KgctlError, NotFoundError, RefusedError, UnreachableError, UsageError
from kgctl.model.groups import Node


class GroupNotFoundError(NotFoundError):
    """Raised where ZooKeeper has no group of this name."""

    slug = "GROUP_ID_NOT_FOUND"

    def __init__(self, group: str) -> None:
        super().__init__(f"group {group!r} does not exist in ZooKeeper", group=group)


class InstanceNotRegisteredError(NotFoundError):
    """The instance is not registered, or its session has ended."""

    slug = "INSTANCE_NOT_REGISTERED"

    def __init__(self, group: str, instance: str) -> None:
        super().__init__(f"instance {instance!r} of group {group!r} is not registered", group=group)


class PartitionNotClaimedError(NotFoundError):
    """The partition cannot be released: this instance has not claimed it."""

    slug = "PARTITION_NOT_CLAIMED"

    def __init__(self, group: str, topic: str, partition: int, instance: str) -> None:
        message = f"{topic}-{partition} of group {group!r} is not claimed by instance {instance!r}"
        super().__init__(message, group=group, topic=topic, partition=partition)


class RunningInstancesError(RefusedError):
    """Instances of the group are running, so it must be left alone."""

    slug = "NON_EMPTY_GROUP"

    def __init__(self, group: str, count: int | None = None) -> None:
        running = "instances are" if count is None else f"{count} instance{' is' if count == 1 else 's are'}"
        super().__init__(f"group {group!r} is active: {running} running; stop its consumers first", group=group)


class InstanceRegisteredError(RefusedError):
    """The instance is registered already, by this session or another."""

    slug = "INSTANCE_ALREADY_REGISTERED"

    def __init__(self, group: str, instance: str) -> None:
        super().__init__(f"instance {instance!r} of group {group!r} is registered already", group=group)


class PartitionClaimedError(RefusedError):
    """Another instance (``owner``) has the partition: wait for its release and try again."""

    slug = "PARTITION_CLAIMED_BY_OTHER"

    def __init__(self, group: str, topic: str, partition: int, owner: str) -> None:
        message = f"{topic}-{partition} of group {group!r} is claimed by instance {owner!r}"
        super().__init__(message, group=group, topic=topic, partition=partition)
        self.owner = owner


class ChangedMeanwhileError(RefusedError):
    """Others changed the group at each attempt to write; nothing was written by the last one."""

    slug = "CHANGED_MEANWHILE"

    def __init__(self, group: str, attempts: int) -> None:
        super().__init__(f"group {group!r} was changed by others at each of {attempts} attempts to write", group=group)


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


@dataclass(frozen=True, slots=True)
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
