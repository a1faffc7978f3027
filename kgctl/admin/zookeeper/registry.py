"""The consumer groups of a ZooKeeper as a Python API: groups, their instances, claims and offsets.

::

    with Registry.connect("zk1:2181,zk2:2181/kafka") as registry:
        group = registry.group("payments")
        instance = group.new_instance()
        instance.register(["orders"])
        instance.claim("orders", 0)
        group.commit("orders", 0, 42)

Every call answers or raises within the registry's time limit. Errors are classes of `kgctl.admin.zookeeper.nodes` and
`kgctl.errors`: `UnreachableError` and `AuthError` can come from every method and are not repeated there. What is ephemeral
(registrations, claims) ends with the session that made it, at the latest when the registry is closed.
"""

from __future__ import annotations

import queue
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from kgctl.admin.zookeeper import nodes, snapshot
from kgctl.admin.zookeeper.changes import ATTEMPTS, remove_group, remove_offsets, write_offsets
from kgctl.admin.zookeeper.connection import Connection, Operation, RefusedOperation, denied
from kgctl.admin.zookeeper.nodes import (
    ChangedMeanwhileError,
    InstanceNotRegisteredError,
    InstanceRegisteredError,
    PartitionClaimedError,
    PartitionNotClaimedError,
    Registration,
)
from kgctl.admin.zookeeper.settings import ZooKeeperSettings
from kgctl.model.groups import Node, TopicPartition


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


class Registry:
    """The groups of one ZooKeeper, and what Kafka keeps there. The caller closes it, or uses ``with``."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @classmethod
    def connect(
        cls, address: str, properties: Mapping[str, str] | None = None, *, timeout_ms: int = 10_000, session_ms: int = 10_000
    ) -> Registry:
        """``HOST:PORT[,HOST:PORT][/CHROOT]``, contacted at the first call; ``properties`` as in `kgctl.admin.zookeeper.settings`.

        Raises:
            UsageError: an address or property that cannot be.
        """
        settings = ZooKeeperSettings.of(address, properties)
        return cls(Connection(settings, timeout_ms=timeout_ms, session_ms=session_ms))

    def groups(self) -> Found[Group]:
        """Return all groups."""
        return Found.of(self.group(name) for name in snapshot.list_names(self.connection))

    def group(self, name: str) -> Group:
        """The group of this name; nothing is read, and it need not exist.

        Raises:
            UsageError: no node of ZooKeeper can be called that.
        """
        return Group(self.connection, name)

    def brokers(self) -> Mapping[int, Node]:
        """Return the brokers that are alive, by id."""
        return snapshot.read_brokers(self.connection)

    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions of each topic."""
        return snapshot.read_topics(self.connection)

    def cluster_id(self) -> str:
        """``zookeeper:`` and Kafka's own id of the cluster, or else the hosts and the chroot."""
        return snapshot.read_cluster_id(self.connection)

    def close(self) -> None:
        """End the session. Safe to call twice."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class Group:
    """One consumer group."""

    def __init__(self, connection: Connection, name: str) -> None:
        nodes.check_name(name)
        self._connection = connection
        self.name = name

    def __repr__(self) -> str:
        return f"Group({self.name!r})"

    def exists(self) -> bool:
        """Return whether ZooKeeper has the group."""
        return self._connection.children(nodes.group_path(self.name)) is not None

    def create(self) -> None:
        """Make its nodes; one that exists already is left as it is."""
        with self._connection.within():
            for path in (nodes.ids_path(self.name), nodes.owners_path(self.name), nodes.offsets_path(self.name)):
                self._connection.ensure(path)

    def delete(self) -> None:
        """Delete it with all its offsets.

        Raises:
            GroupNotFoundError: it does not exist.
            RunningInstancesError: instances are running.
        """
        remove_group(self._connection, self.name)

    def instances(self) -> Found[Instance]:
        """The instances that are running; none for a group that does not exist."""
        return Found.of(map(self.instance, self._connection.children(nodes.ids_path(self.name)) or ()))

    def instance(self, name: str) -> Instance:
        """The instance of this id; nothing is read, and it need not be registered."""
        return Instance(self._connection, self, name)

    def new_instance(self, name: str | None = None) -> Instance:
        """An instance that is not registered yet, called ``<hostname>:<uuid4>`` unless a name is given."""
        return self.instance(name or f"{socket.gethostname()}:{uuid.uuid4()}")  # noqa: TID251 - a driver's source of ids

    def watch_instances(self, changed: Callable[[Found[Instance]], bool | None]) -> None:
        """Call ``changed`` with the running instances, now and at each change, until it answers False.

        It is called from a thread of the connection: it must not block, and must not call this API. Makes the group's ``ids``
        node where it is not there.
        """
        self._connection.ensure(nodes.ids_path(self.name))
        self._connection.watch_children(
            nodes.ids_path(self.name), lambda names: changed(Found.of(map(self.instance, names))) is not False
        )

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
        node = self._connection.get(nodes.owners_path(self.name, topic, partition))
        return None if node is None else self.instance(node.data.decode("utf-8", "backslashreplace"))

    def owners(self) -> Mapping[TopicPartition, Instance]:
        """Return all claims of the group's instances."""
        found = self._read(offsets=False).owners
        return {partition: self.instance(name) for partition, name in found.items()}

    def watch_owner(self, topic: str, partition: int, changed: Callable[[Instance | None], bool | None]) -> None:
        """Call ``changed`` with a partition's owner, now and at each change, until it answers False; as `watch_instances`."""

        def told(data: bytes | None) -> bool:
            owner = None if data is None else self.instance(data.decode("utf-8", "backslashreplace"))
            return changed(owner) is not False

        self._connection.watch_data(nodes.owners_path(self.name, topic, partition), told)

    def topics(self) -> tuple[str, ...]:
        """The topics of which a partition was ever claimed."""
        return tuple(self._connection.children(nodes.owners_path(self.name)) or ())

    def commit(self, topic: str, partition: int, offset: int) -> None:
        """Commit an offset, as a running consumer does: nobody is asked whether instances run.

        Raises:
            UsageError: a negative offset.
            ChangedMeanwhileError: others commit the same partition all the time.
        """
        nodes.check_offset(offset)
        path, data = nodes.offsets_path(self.name, topic, partition), nodes.encode_offset(offset)
        with self._connection.within():
            for _ in range(ATTEMPTS):
                if self._commit_once(path, data):
                    return
        raise ChangedMeanwhileError(self.name, ATTEMPTS)

    def fetch(self, topic: str, partition: int) -> int | None:
        """The committed offset; None where nothing is committed, which is not offset 0.

        Raises:
            MalformedNodeError: the node holds no offset.
        """
        path = nodes.offsets_path(self.name, topic, partition)
        node = self._connection.get(path)
        return None if node is None else nodes.decode_offset(path, node.data)

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
            failed = remove_offsets(self._connection, self.name, list(self._read(members=False).offsets))
        else:
            failed = write_offsets(self._connection, self.name, offsets)
        for error in failed.values():
            raise error

    def _read(self, *, members: bool = True, offsets: bool = True) -> snapshot.GroupSnapshot:
        groups = snapshot.read_groups(self._connection, [self.name], members=members, offsets=offsets)
        for error in groups.denied.values():
            raise error
        return groups.found.get(self.name) or snapshot.GroupSnapshot(self.name)

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

    def __init__(self, connection: Connection, group: Group, name: str) -> None:
        nodes.check_name(name)
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
        return nodes.ids_path(self.group.name, self.name)

    def registered(self) -> bool:
        """Return whether the instance is running."""
        return self._connection.owner(self._path) is not None

    def registration(self) -> Registration:
        """What it registered.

        Raises:
            InstanceNotRegisteredError: it is not running.
            MalformedNodeError: it is no registration.
        """
        node = self._connection.get(self._path)
        if node is None:
            raise InstanceNotRegisteredError(self.group.name, self.name)
        return nodes.decode_registration(self._path, node.data)

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
                self._connection.create(self._path, nodes.encode_registration(topics), ephemeral=True)
            except RefusedOperation as refusal:
                raise self._explained(refusal, InstanceRegisteredError(self.group.name, self.name)) from None

    def deregister(self) -> None:
        """Take the registration back, by the version that is there; claims are released by `release`, or with the session.

        Raises:
            InstanceNotRegisteredError: it is not running.
        """
        missing = InstanceNotRegisteredError(self.group.name, self.name)
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
        path = nodes.owners_path(self.group.name, topic, partition)
        with self._connection.within():
            for _ in range(ATTEMPTS):
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
                    raise PartitionClaimedError(self.group.name, topic, partition, owner.name)
        raise ChangedMeanwhileError(self.group.name, ATTEMPTS)

    def release(self, topic: str, partition: int) -> None:
        """Give a partition back.

        Raises:
            PartitionNotClaimedError: this instance has not claimed it; whoever has keeps it.
        """
        not_claimed = PartitionNotClaimedError(self.group.name, topic, partition, self.name)
        path = nodes.owners_path(self.group.name, topic, partition)
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
