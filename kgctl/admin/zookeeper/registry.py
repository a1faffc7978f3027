"""The consumer groups of a ZooKeeper as a Python API: groups, their instances, claims and offsets.

::

    with Registry.connect("zk1:2181,zk2:2181/kafka") as registry:
        group = registry.group("payments")
        instance = group.new_instance()
        instance.register(["orders"])
        instance.claim("orders", 0)
        group.commit("orders", 0, 42)

Every call answers or raises within the registry's time limit. Errors are classes of `kgctl.admin.zookeeper` and
`kgctl.errors`: `UnreachableError` and `AuthError` can come from every method and are not repeated there. What is ephemeral
(registrations, claims) ends with the session that made it, at the latest when the registry is closed.

What ZooKeeper has at one moment is read level by level: few round trips, however many groups, topics and partitions. Nodes come
and go while they are read. An instance or a claim that is listed and then gone is no error: it is left out. A node holding what
it should not is an error of its own (`GroupSnapshot.flaws`), and the rest is there.
"""

from __future__ import annotations

import logging
import queue
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from kgctl.admin import Closing, zookeeper
from kgctl.admin.zookeeper import Registration, ZooKeeperSettings, admin
from kgctl.admin.zookeeper.connection import Answers, NodeData, Operation, RefusedOperation, ZooKeeperSession, denied
from kgctl.errors import KgctlError, users_code
from kgctl.model.groups import Node, TopicPartition
from kgctl.model.values import frozen_in_order

log = logging.getLogger(__name__)


@dataclass
class GroupSnapshot:
    """One group. ``instances`` has None where the registration cannot be read; ``owners`` are the ids as claimed.

    ``flaws`` name each node that could not be read or understood.
    """

    name: str
    instances: dict[str, Registration | None] = field(default_factory=dict)
    owners: dict[TopicPartition, str] = field(default_factory=dict)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    flaws: list[KgctlError] = field(default_factory=list)

    def flaw(self, error: KgctlError, partition: TopicPartition | None = None) -> None:
        """Note an error of this group, or of one partition of it."""
        error.group = self.name
        if partition is not None:
            error.topic, error.partition = partition
        self.flaws.append(error)


@frozen_in_order
class Groups:
    """The groups that are there, in the order asked for, and the errors of those that may not be read."""

    found: Mapping[str, GroupSnapshot]
    denied: Mapping[str, KgctlError]


def list_names(connection: ZooKeeperSession) -> list[str]:
    """Return the group names of ZooKeeper, sorted."""
    return connection.children(zookeeper.GROUPS) or []


def running_instances(connection: ZooKeeperSession, names: Sequence[str]) -> tuple[dict[str, int], dict[str, KgctlError]]:
    """How many instances each group has running, and the groups whose instances may not be listed."""
    answers = connection.children_many([zookeeper.ids_path(name) for name in names])
    refused: dict[str, KgctlError] = {
        name: denied(zookeeper.ids_path(name)) for name in names if zookeeper.ids_path(name) in answers.denied
    }
    return {name: len(answers.values.get(zookeeper.ids_path(name), ())) for name in names if name not in refused}, refused


def read_groups(connection: ZooKeeperSession, names: Sequence[str], *, members: bool = True, offsets: bool = True) -> Groups:
    """The groups of these names; ``members`` and ``offsets`` say which part of each is wanted."""
    with connection.within():
        names = list(dict.fromkeys(names))
        parts = (*(("ids", "owners") if members else ()), *(("offsets",) if offsets else ()))
        top = [zookeeper.group_path(name, *part) for name in names for part in ((), *((each,) for each in parts))]
        listed = connection.children_many(top)
        refused = {name: path for name in names for path in _own(name, parts) if path in listed.denied}
        found = {
            name: GroupSnapshot(name) for name in names if zookeeper.group_path(name) in listed.values and name not in refused
        }
        if members:
            _read_instances(connection, found, listed)
            for partition, group, path, node in _read_partitions(connection, found, "owners", listed):
                _take_owner(group, partition, path, node)
        if offsets:
            for partition, group, path, node in _read_partitions(connection, found, "offsets", listed):
                _take_offset(group, partition, path, node)
    return Groups(found, {name: denied(path) for name, path in refused.items()})


def _own(name: str, parts: Iterable[str]) -> list[str]:
    return [zookeeper.group_path(name), *(zookeeper.group_path(name, part) for part in parts)]


def _read_instances(connection: ZooKeeperSession, groups: Mapping[str, GroupSnapshot], listed: Answers[list[str]]) -> None:
    wanted = [
        (group, instance, zookeeper.ids_path(group.name, instance))
        for group in groups.values()
        for instance in listed.values.get(zookeeper.ids_path(group.name), ())
    ]
    answers = connection.get_many([path for _, _, path in wanted])
    for group, instance, path in wanted:
        node = answers.values.get(path)
        if path in answers.denied:
            group.instances[instance] = None
            group.flaw(denied(path))
        elif node is not None:
            group.instances[instance] = _registration(group, path, node)


def _registration(group: GroupSnapshot, path: str, node: NodeData) -> Registration | None:
    try:
        return zookeeper.decode_registration(path, node.data)
    except KgctlError as error:
        group.flaw(error)
        return None


def _read_partitions(
    connection: ZooKeeperSession, groups: Mapping[str, GroupSnapshot], part: str, listed: Answers[list[str]]
) -> list[tuple[TopicPartition, GroupSnapshot, str, NodeData | None]]:
    """The nodes of all partitions below ``owners`` or ``offsets``; None for one that may not be read."""
    topics = [
        (group, topic, zookeeper.group_path(group.name, part, topic))
        for group in groups.values()
        for topic in listed.values.get(zookeeper.group_path(group.name, part), ())
    ]
    names = connection.children_many([path for _, _, path in topics])
    wanted = []
    for group, topic, path in topics:
        if path in names.denied:
            group.flaw(denied(path))
        for name in names.values.get(path, ()):
            try:
                number = zookeeper.decode_partition(path, name)
            except KgctlError as error:
                group.flaw(error)
            else:
                wanted.append((TopicPartition(topic, number), group, f"{path}/{name}"))
    answers = connection.get_many([path for _, _, path in wanted])
    return [
        (partition, group, path, answers.values.get(path))
        for partition, group, path in sorted(wanted, key=lambda each: each[0])
        if path in answers.values or path in answers.denied
    ]


def _take_owner(group: GroupSnapshot, partition: TopicPartition, path: str, node: NodeData | None) -> None:
    if node is None:
        group.flaw(denied(path), partition)
    else:
        group.owners[partition] = node.data.decode("utf-8", "backslashreplace")


def _take_offset(group: GroupSnapshot, partition: TopicPartition, path: str, node: NodeData | None) -> None:
    try:
        if node is None:
            raise denied(path)
        group.offsets[partition] = zookeeper.decode_offset(path, node.data)
    except KgctlError as error:
        group.flaw(error, partition)


def read_topics(connection: ZooKeeperSession, names: Sequence[str] | None = None) -> dict[str, int]:
    """Topic -> number of partitions, as Kafka keeps it in ZooKeeper; topics that are not there, or not readable, are left out."""
    with connection.within():
        wanted = (
            (connection.children(zookeeper.TOPICS) or [])
            if names is None
            else [name for name in names if zookeeper.is_name(name)]
        )
        answers = connection.get_many([f"{zookeeper.TOPICS}/{name}" for name in wanted])
    counts: dict[str, int] = {}
    for name in sorted(wanted):
        node = answers.values.get(f"{zookeeper.TOPICS}/{name}")
        if node is not None:
            counts[name] = zookeeper.decode_partition_count(f"{zookeeper.TOPICS}/{name}", node.data)
    return counts


def read_brokers(connection: ZooKeeperSession) -> dict[int, Node]:
    """The brokers that are alive, by id.

    Raises:
        MalformedNodeError: one has no address.
    """
    with connection.within():
        numbers = sorted(int(name) for name in connection.children(zookeeper.BROKERS) or [] if name.isdecimal())
        answers = connection.get_many([f"{zookeeper.BROKERS}/{number}" for number in numbers])
    found = {number: answers.values.get(f"{zookeeper.BROKERS}/{number}") for number in numbers}
    return {
        number: zookeeper.decode_broker(f"{zookeeper.BROKERS}/{number}", node.data)
        for number, node in found.items()
        if node is not None
    }


def read_cluster_id(connection: ZooKeeperSession) -> str:
    """``zookeeper:`` and Kafka's id of the cluster; where Kafka keeps none there, ZooKeeper's hosts, sorted, and the chroot.

    It is never the id that the cluster's brokers tell: the groups there are others.
    """
    node = connection.get(zookeeper.CLUSTER_ID)
    if node is not None:
        return f"zookeeper:{zookeeper.decode_cluster_id(zookeeper.CLUSTER_ID, node.data)}"
    settings = connection.settings
    return f"zookeeper:{','.join(sorted(host.lower() for host in settings.hosts))}{settings.chroot}"


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


class Found(tuple[N, ...], Generic[N]):
    """Groups or instances, sorted by name."""

    __slots__ = ()

    @classmethod
    def of(cls, things: Iterable[N]) -> Found[N]:
        """Return these, sorted."""
        return cls(sorted(things, key=lambda each: each.name))

    def find(self, name: str) -> N | None:
        """The one of this name; None where there is none."""
        return next((each for each in self if each.name == name), None)


class Registry(Closing):
    """The groups of one ZooKeeper, and what Kafka keeps there. The caller closes it, or uses ``with``."""

    def __init__(self, connection: ZooKeeperSession) -> None:
        self.connection = connection

    @classmethod
    def connect(
        cls, address: str, properties: Mapping[str, str] | None = None, *, timeout_ms: int = 10_000, session_ms: int = 10_000
    ) -> Registry:
        """``HOST:PORT[,HOST:PORT][/CHROOT]``, contacted at the first call; ``properties`` as in `kgctl.admin.zookeeper`.

        Raises:
            UsageError: an address or property that cannot be.
        """
        settings = ZooKeeperSettings.of(address, properties)
        return cls(ZooKeeperSession(settings, timeout_ms=timeout_ms, session_ms=session_ms))

    def groups(self) -> Found[Group]:
        """Return all groups."""
        return Found.of(self.group(name) for name in list_names(self.connection))

    def group(self, name: str) -> Group:
        """The group of this name; nothing is read, and it need not exist.

        Raises:
            UsageError: no node of ZooKeeper can be called that.
        """
        return Group(self.connection, name)

    def brokers(self) -> Mapping[int, Node]:
        """Return the brokers that are alive, by id."""
        return read_brokers(self.connection)

    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions of each topic."""
        return read_topics(self.connection)

    def cluster_id(self) -> str:
        """``zookeeper:`` and Kafka's own id of the cluster, or else the hosts and the chroot."""
        return read_cluster_id(self.connection)

    def close(self) -> None:
        """End the session. Safe to call twice."""
        self.connection.close()


def _told(what: str, changed: Callable[[Any], bool | None]) -> Callable[[Any], bool]:
    """A watch's function of the user's behind the border; whether the watch goes on. See `Group.watch_instances`."""
    is_first, is_over = True, False

    def told(value: Any) -> bool:
        nonlocal is_first, is_over
        try:
            with users_code(f"the function of {what}"):
                is_over = is_over or changed(value) is False
        except KgctlError as error:
            if is_over := is_first:
                raise
            log.error("%s", error, exc_info=error.__cause__)
        finally:
            is_first = False
        return not is_over

    return told


class Group:
    """One consumer group."""

    def __init__(self, connection: ZooKeeperSession, name: str) -> None:
        zookeeper.check_name(name)
        self._connection = connection
        self.name = name

    def __repr__(self) -> str:
        return f"Group({self.name!r})"

    def exists(self) -> bool:
        """Return whether ZooKeeper has the group."""
        return self._connection.children(zookeeper.group_path(self.name)) is not None

    def create(self) -> None:
        """Make its nodes; one that exists already is left as it is."""
        with self._connection.within():
            for path in (zookeeper.ids_path(self.name), zookeeper.owners_path(self.name), zookeeper.offsets_path(self.name)):
                self._connection.ensure(path)

    def delete(self) -> None:
        """Delete it with all its offsets.

        Raises:
            GroupNotFoundError: it does not exist.
            RunningInstancesError: instances are running.
        """
        admin.remove_group(self._connection, self.name)

    def instances(self) -> Found[Instance]:
        """The instances that are running; none for a group that does not exist."""
        return Found.of(map(self.instance, self._connection.children(zookeeper.ids_path(self.name)) or ()))

    def instance(self, name: str) -> Instance:
        """The instance of this id; nothing is read, and it need not be registered."""
        return Instance(self._connection, self, name)

    def new_instance(self, name: str | None = None) -> Instance:
        """An instance that is not registered yet, called ``<hostname>:<uuid4>`` unless a name is given."""
        return self.instance(name or f"{socket.gethostname()}:{uuid.uuid4()}")  # noqa: TID251 - a driver's source of ids

    def watch_instances(self, changed: Callable[[Found[Instance]], bool | None]) -> None:
        """Call ``changed`` with the running instances, now and at each change, until it answers False.

        It is called here, then from a thread of the connection: it must not block, nor call this API. What it raises comes out of
        this call as `UserCodeError`; later it is told in the log, and the watch goes on. Makes the group's ``ids`` node.
        """
        told, path = _told("watch_instances", changed), zookeeper.ids_path(self.name)
        self._connection.ensure(path)
        self._connection.watch_children(path, lambda names: told(Found.of(map(self.instance, names))))

    def instance_changes(self, timeout_s: float | None = None) -> Generator[Found[Instance], None, None]:
        """The running instances, now and at each change; ends when nothing changed for ``timeout_s``, or when it is closed."""
        told: queue.SimpleQueue[Found[Instance]] = queue.SimpleQueue()
        is_over = False

        def changed(instances: Found[Instance]) -> bool:
            told.put(instances)
            return not is_over

        self.watch_instances(changed)
        try:
            while True:
                try:
                    yield told.get(timeout=timeout_s)
                except queue.Empty:
                    return
        finally:
            is_over = True

    def owner(self, topic: str, partition: int) -> Instance | None:
        """The instance that has claimed a partition; None where nobody has."""
        node = self._connection.get(zookeeper.owners_path(self.name, topic, partition))
        return None if node is None else self._named(node.data)

    def _named(self, data: bytes) -> Instance:
        return self.instance(data.decode("utf-8", "backslashreplace"))

    def owners(self) -> Mapping[TopicPartition, Instance]:
        """Return all claims of the group's instances."""
        found = self._read(offsets=False).owners
        return {partition: self.instance(name) for partition, name in found.items()}

    def watch_owner(self, topic: str, partition: int, changed: Callable[[Instance | None], bool | None]) -> None:
        """Call ``changed`` with a partition's owner, now and at each change, until it answers False; as `watch_instances`."""
        told, path = _told("watch_owner", changed), zookeeper.owners_path(self.name, topic, partition)
        self._connection.watch_data(path, lambda data: told(None if data is None else self._named(data)))

    def topics(self) -> tuple[str, ...]:
        """The topics of which a partition was ever claimed."""
        return tuple(self._connection.children(zookeeper.owners_path(self.name)) or ())

    def commit(self, topic: str, partition: int, offset: int) -> None:
        """Commit an offset, as a running consumer does: nobody is asked whether instances run.

        Raises:
            UsageError: a negative offset.
            ChangedMeanwhileError: others commit the same partition all the time.
        """
        zookeeper.check_offset(offset)
        path, data = zookeeper.offsets_path(self.name, topic, partition), zookeeper.encode_offset(offset)
        with self._connection.within():
            for _ in range(admin.ATTEMPTS):
                if self._commit_once(path, data):
                    return
        raise zookeeper.ChangedMeanwhileError(self.name, attempts=admin.ATTEMPTS)

    def fetch(self, topic: str, partition: int) -> int | None:
        """The committed offset; None where nothing is committed, which is not offset 0.

        Raises:
            MalformedNodeError: the node holds no offset.
        """
        path = zookeeper.offsets_path(self.name, topic, partition)
        node = self._connection.get(path)
        return None if node is None else zookeeper.decode_offset(path, node.data)

    def offsets(self) -> Mapping[TopicPartition, int]:
        """All committed offsets.

        Raises:
            MalformedNodeError: a node holds no offset.
        """
        group = self._read(members=False)
        for flaw in group.flaws:
            raise flaw
        return group.offsets

    def reset(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Set these offsets, in one transaction for up to 1,000; None takes every commit away.

        Raises:
            RunningInstancesError: instances are running.
            ChangedMeanwhileError: others kept changing the offsets.
        """
        if offsets is None:
            failed = admin.remove_offsets(self._connection, self.name, list(self._read(members=False).offsets))
        else:
            failed = admin.write_offsets(self._connection, self.name, offsets)
        for error in failed.values():
            raise error

    def _read(self, *, members: bool = True, offsets: bool = True) -> GroupSnapshot:
        groups = read_groups(self._connection, [self.name], members=members, offsets=offsets)
        for error in groups.denied.values():
            raise error
        return groups.found.get(self.name) or GroupSnapshot(self.name)

    def _commit_once(self, path: str, data: bytes) -> bool:
        """Return whether the offset was written before anybody else's."""
        node = self._connection.get(path)
        try:
            if node is None:
                self._connection.create(path, data)
            elif node.data != data:
                self._connection.transact([Operation("set", path, data, node.version)])
        except RefusedOperation as refusal:
            if refusal.reason == "no_auth":
                raise denied(path) from None
            return False
        return True


class Instance:
    """One consumer of a group. Registration and claims belong to the session of the registry that made them."""

    def __init__(self, connection: ZooKeeperSession, group: Group, name: str) -> None:
        zookeeper.check_name(name)
        self._connection = connection
        self.group = group
        self.name = name

    def __repr__(self) -> str:
        return f"Instance({self.group.name!r}, {self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and (other.group.name, other.name) == (self.group.name, self.name)

    def __hash__(self) -> int:
        return hash((self.group.name, self.name))

    @property
    def _path(self) -> str:
        return zookeeper.ids_path(self.group.name, self.name)

    def registered(self) -> bool:
        """Return whether the instance is running."""
        return self._connection.owner(self._path) is not None

    def registration(self) -> Registration:
        """Read what this instance registered.

        Raises:
            InstanceNotRegisteredError: it is not running.
            MalformedNodeError: it is no registration.
        """
        node = self._connection.get(self._path)
        if node is None:
            raise zookeeper.InstanceNotRegisteredError(self.group.name, instance=self.name)
        return zookeeper.decode_registration(self._path, node.data)

    def register(self, topics: Sequence[str] | Registration, *, timestamp: int | None = None) -> None:
        """Register, with one stream of each of these topics, or with a registration of one's own.

        ``timestamp``: seconds since the epoch, now unless given.

        Raises:
            InstanceRegisteredError: it is registered already.
        """
        if not isinstance(topics, Registration):
            moment = int(time.time()) if timestamp is None else timestamp  # noqa: TID251 - a driver's clock
            topics = Registration(dict.fromkeys(topics, 1), timestamp=moment)
        with self._connection.within():
            self.group.create()
            try:
                self._connection.create(self._path, zookeeper.encode_registration(topics), ephemeral=True)
            except RefusedOperation as refusal:
                raise self._explained(refusal, zookeeper.InstanceRegisteredError(self.group.name, instance=self.name)) from None

    def deregister(self) -> None:
        """Take the registration back, by the version that is there; claims are released by `release`, or with the session.

        Raises:
            InstanceNotRegisteredError: it is not running.
        """
        missing = zookeeper.InstanceNotRegisteredError(self.group.name, instance=self.name)
        with self._connection.within():
            node = self._connection.get(self._path)
            if node is None:
                raise missing
            try:
                self._connection.transact([Operation("delete", self._path, version=node.version)])
            except RefusedOperation as refusal:
                raise self._explained(refusal, missing) from None

    def claim(self, topic: str, partition: int) -> None:
        """Claim a partition; claiming it again is fine.

        Raises:
            PartitionClaimedError: another instance has it: wait for its release (`Group.watch_owner`) and try again.
        """
        path = zookeeper.owners_path(self.group.name, topic, partition)
        with self._connection.within():
            for _ in range(admin.ATTEMPTS):
                try:
                    self._connection.create(path, self.name.encode(), ephemeral=True)
                except RefusedOperation as refusal:
                    if refusal.reason == "no_auth":
                        raise denied(path) from None
                else:
                    return
                owner = self.group.owner(topic, partition)
                if owner == self:
                    return
                if owner is not None:
                    raise zookeeper.PartitionClaimedError(self.group.name, topic=topic, partition=partition, owner=owner.name)
        raise zookeeper.ChangedMeanwhileError(self.group.name, attempts=admin.ATTEMPTS)

    def release(self, topic: str, partition: int) -> None:
        """Give a partition back.

        Raises:
            PartitionNotClaimedError: this instance has not claimed it; whoever has keeps it.
        """
        not_claimed = zookeeper.PartitionNotClaimedError(self.group.name, topic=topic, partition=partition, instance=self.name)
        path = zookeeper.owners_path(self.group.name, topic, partition)
        with self._connection.within():
            node = self._connection.get(path)
            if node is None or node.data != self.name.encode():
                raise not_claimed
            try:
                self._connection.transact([Operation("delete", path, version=node.version)])
            except RefusedOperation as refusal:
                raise self._explained(refusal, not_claimed) from None

    def _explained(self, refusal: RefusedOperation, otherwise: Exception) -> Exception:
        return denied(refusal.operation.path) if refusal.reason == "no_auth" else otherwise
