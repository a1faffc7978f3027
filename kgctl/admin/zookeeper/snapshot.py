"""What ZooKeeper has of groups at one moment, read level by level: few round trips, however many groups, topics and partitions.

Nodes come and go while they are read. An instance or a claim that is listed and then gone is no error: it is left out. A node
that holds what it should not is an error of its own (`GroupSnapshot.flaws`), and the rest is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgctl.admin.zookeeper import nodes
from kgctl.admin.zookeeper.connection import Answers, Connection, NodeData, denied
from kgctl.admin.zookeeper.nodes import Registration
from kgctl.errors import KgctlError
from kgctl.model.groups import Node, TopicPartition


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


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups that are there, in the order asked for, and the errors of those that may not be read."""

    found: Mapping[str, GroupSnapshot]
    denied: Mapping[str, KgctlError]


def list_names(connection: Connection) -> list[str]:
    """Return the group names of ZooKeeper, sorted."""
    return connection.children(nodes.GROUPS) or []


def running_instances(connection: Connection, names: Sequence[str]) -> tuple[dict[str, int], dict[str, KgctlError]]:
    """How many instances each group has running, and the groups whose instances may not be listed."""
    answers = connection.children_many([nodes.ids_path(name) for name in names])
    refused: dict[str, KgctlError] = {
        name: denied(nodes.ids_path(name)) for name in names if nodes.ids_path(name) in answers.denied
    }
    return {name: len(answers.values.get(nodes.ids_path(name), ())) for name in names if name not in refused}, refused


def read_groups(connection: Connection, names: Sequence[str], *, members: bool = True, offsets: bool = True) -> Groups:
    """The groups of these names; ``members`` and ``offsets`` say which part of each is wanted."""
    with connection.within():
        names = list(dict.fromkeys(names))
        parts = (*(("ids", "owners") if members else ()), *(("offsets",) if offsets else ()))
        top = [nodes.group_path(name, *part) for name in names for part in ((), *((each,) for each in parts))]
        listed = connection.children_many(top)
        refused = {name: path for name in names for path in _own(name, parts) if path in listed.denied}
        found = {name: GroupSnapshot(name) for name in names if nodes.group_path(name) in listed.values and name not in refused}
        if members:
            _read_instances(connection, found, listed)
            for partition, group, path, node in _read_partitions(connection, found, "owners", listed):
                _take_owner(group, partition, path, node)
        if offsets:
            for partition, group, path, node in _read_partitions(connection, found, "offsets", listed):
                _take_offset(group, partition, path, node)
    return Groups(found, {name: denied(path) for name, path in refused.items()})


def _own(name: str, parts: Iterable[str]) -> list[str]:
    return [nodes.group_path(name), *(nodes.group_path(name, part) for part in parts)]


def _read_instances(connection: Connection, groups: Mapping[str, GroupSnapshot], listed: Answers[list[str]]) -> None:
    wanted = [
        (group, instance, nodes.ids_path(group.name, instance))
        for group in groups.values()
        for instance in listed.values.get(nodes.ids_path(group.name), ())
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
        return nodes.decode_registration(path, node.data)
    except KgctlError as error:
        group.flaw(error)
        return None


def _read_partitions(
    connection: Connection, groups: Mapping[str, GroupSnapshot], part: str, listed: Answers[list[str]]
) -> list[tuple[TopicPartition, GroupSnapshot, str, NodeData | None]]:
    """The nodes of all partitions below ``owners`` or ``offsets``; None for one that may not be read."""
    topics = [
        (group, topic, nodes.group_path(group.name, part, topic))
        for group in groups.values()
        for topic in listed.values.get(nodes.group_path(group.name, part), ())
    ]
    names = connection.children_many([path for _, _, path in topics])
    wanted = []
    for group, topic, path in topics:
        if path in names.denied:
            group.flaw(denied(path))
        for name in names.values.get(path, ()):
            try:
                number = nodes.decode_partition(path, name)
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
        group.offsets[partition] = nodes.decode_offset(path, node.data)
    except KgctlError as error:
        group.flaw(error, partition)


def read_topics(connection: Connection, names: Sequence[str] | None = None) -> dict[str, int]:
    """Topic -> number of partitions, as Kafka keeps it in ZooKeeper; topics that are not there, or not readable, are left out."""
    with connection.within():
        wanted = (connection.children(nodes.TOPICS) or []) if names is None else [name for name in names if nodes.is_name(name)]
        answers = connection.get_many([f"{nodes.TOPICS}/{name}" for name in wanted])
    counts: dict[str, int] = {}
    for name in sorted(wanted):
        node = answers.values.get(f"{nodes.TOPICS}/{name}")
        if node is not None:
            counts[name] = nodes.decode_partition_count(f"{nodes.TOPICS}/{name}", node.data)
    return counts


def read_brokers(connection: Connection) -> dict[int, Node]:
    """The brokers that are alive, by id.

    Raises:
        MalformedNodeError: one has no address.
    """
    with connection.within():
        numbers = sorted(int(name) for name in connection.children(nodes.BROKERS) or [] if name.isdecimal())
        answers = connection.get_many([f"{nodes.BROKERS}/{number}" for number in numbers])
    found = {number: answers.values.get(f"{nodes.BROKERS}/{number}") for number in numbers}
    return {
        number: nodes.decode_broker(f"{nodes.BROKERS}/{number}", node.data) for number, node in found.items() if node is not None
    }


def read_cluster_id(connection: Connection) -> str:
    """``zookeeper:`` and Kafka's id of the cluster; where Kafka keeps none there, ZooKeeper's hosts, sorted, and the chroot.

    It is never the id that the cluster's brokers tell: the groups there are others.
    """
    node = connection.get(nodes.CLUSTER_ID)
    if node is not None:
        return f"zookeeper:{nodes.decode_cluster_id(nodes.CLUSTER_ID, node.data)}"
    settings = connection.settings
    return f"zookeeper:{','.join(sorted(host.lower() for host in settings.hosts))}{settings.chroot}"
