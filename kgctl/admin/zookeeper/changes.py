"""Changes of a group's offsets, and its removal: all of it in one transaction, and never beside a running instance.

A transaction takes the group's ``ids`` node away and puts it back as it was. ZooKeeper refuses that as soon as an instance is
registered below, and with it the whole transaction: there is no moment between the look and the deed in which one could begin.
Offsets are written by the version that was read; what others changed in between is read again, `ATTEMPTS` times. After an answer
that never came, the next attempt reads back what is there: what has been written is not written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kgctl.admin.zookeeper import nodes
from kgctl.admin.zookeeper.connection import Connection, NodeData, Operation, RefusedOperation, Unanswered, denied
from kgctl.admin.zookeeper.nodes import ChangedMeanwhileError, GroupNotFoundError, RunningInstancesError
from kgctl.errors import KgctlError
from kgctl.model.groups import TopicPartition

ATTEMPTS = 10
PARTITIONS_A_TRANSACTION = 1_000
NODES_A_TRANSACTION = 4_000
_RETRY_S = 0.02

Failures = dict[TopicPartition, KgctlError]


def write_offsets(connection: Connection, group: str, offsets: Mapping[TopicPartition, int], *, guarded: bool = True) -> Failures:
    """Commit these offsets; makes the group where there is none. ``guarded``: only while no instance runs.

    Returns what failed, by partition; up to `PARTITIONS_A_TRANSACTION` are written together or not at all.
    """
    return _in_parts(connection, group, sorted(offsets), lambda part: _write(connection, group, part, offsets, guarded=guarded))


def remove_offsets(connection: Connection, group: str, partitions: Sequence[TopicPartition], *, guarded: bool = True) -> Failures:
    """Take commits away, and topics that have none left. ``guarded``: only while no instance runs. Returns what failed."""
    return _in_parts(connection, group, sorted(set(partitions)), lambda part: _remove(connection, group, part, guarded=guarded))


def remove_group(connection: Connection, group: str) -> None:
    """Delete a group with all that is below it.

    Raises:
        GroupNotFoundError: there is none.
        RunningInstancesError: instances are running; nothing was deleted, or not all of a group of more than
            `NODES_A_TRANSACTION` nodes.
        ChangedMeanwhileError: others kept changing it.
        AuthError: a node may not be deleted.
    """
    if connection.children(nodes.group_path(group)) is None:
        raise GroupNotFoundError(group)
    _attempt(connection, group, lambda: _remove_tree(connection, group))


def _in_parts(
    connection: Connection,
    group: str,
    partitions: Sequence[TopicPartition],
    change: Callable[[Sequence[TopicPartition]], tuple[list[Operation], Failures]],
) -> Failures:
    failed: Failures = {}
    with connection.within():
        for start in range(0, len(partitions), PARTITIONS_A_TRANSACTION):
            part = list(partitions[start : start + PARTITIONS_A_TRANSACTION])
            failed |= _change_part(connection, group, part, change)
    return failed


def _change_part(
    connection: Connection,
    group: str,
    part: list[TopicPartition],
    change: Callable[[Sequence[TopicPartition]], tuple[list[Operation], Failures]],
) -> Failures:
    failed: Failures = {}

    def once() -> bool:
        operations, refused = change([each for each in part if each not in failed])
        failed.update(refused)
        try:
            if operations:
                connection.transact(operations)
        except RefusedOperation as refusal:
            at = _partition_of(refusal.operation, group)
            if refusal.reason != "no_auth" or at is None:
                raise
            failed[at] = denied(refusal.operation.path)
            return False
        return True

    try:
        _attempt(connection, group, once)
    except KgctlError as error:
        return {**dict.fromkeys(part, error), **failed}
    return failed


def _attempt(connection: Connection, group: str, once: Callable[[], bool]) -> None:
    """Call ``once`` until it answers that all is done, reading anew after each change by others.

    Raises:
        KgctlError: it cannot be done; nothing of the last attempt was. `Unanswered`: that is not known.
    """
    with connection.within() as deadline:
        changed = 0
        while changed < ATTEMPTS:
            try:
                if once():
                    return
            except RefusedOperation as refusal:
                if refusal.reason == "no_auth":
                    raise denied(refusal.operation.path) from None
                if refusal.operation.path == nodes.ids_path(group) and refusal.reason == "not_empty":
                    raise RunningInstancesError(group) from None
                changed += 1
            except Unanswered:
                if deadline.is_over:
                    raise
                deadline.wait(_RETRY_S)
        raise ChangedMeanwhileError(group, ATTEMPTS)


@dataclass(frozen=True, slots=True)
class _Guard:
    """The operations at the beginning of a transaction that ZooKeeper refuses while an instance is registered."""

    operations: tuple[Operation, ...]

    @classmethod
    def read(cls, connection: Connection, group: str) -> _Guard:
        """For the group as it is now.

        Raises:
            RunningInstancesError: there are instances already.
        """
        path = nodes.ids_path(group)
        instances, node = connection.children(path), connection.get(path)
        if instances:
            raise RunningInstancesError(group, len(instances))
        if instances is None or node is None:
            return cls((Operation("create", path), Operation("delete", path)))
        return cls((Operation("delete", path), Operation("create", path, node.data, acl=connection.acl(path))))


def _write(
    connection: Connection,
    group: str,
    partitions: Sequence[TopicPartition],
    offsets: Mapping[TopicPartition, int],
    *,
    guarded: bool,
) -> tuple[list[Operation], Failures]:
    """What is to be written, as ZooKeeper is now; nothing for offsets that are there already."""
    paths = {partition: nodes.offsets_path(group, *partition) for partition in partitions}
    above = [nodes.GROUPS, nodes.group_path(group), nodes.offsets_path(group)]
    above += [nodes.offsets_path(group, topic) for topic in dict.fromkeys(partition.topic for partition in partitions)]
    found = connection.get_many([*above, *paths.values()])
    failed: Failures = {partition: denied(path) for partition, path in paths.items() if path in found.denied}
    missing = [path for path in above if path not in found.values and path not in found.denied]
    changes = [
        _set(path, found.values.get(path), nodes.encode_offset(offsets[partition]))
        for partition, path in paths.items()
        if partition not in failed
    ]
    wanted = [operation for operation in changes if operation is not None]
    if not wanted:
        return [], failed
    guard = _Guard.read(connection, group).operations if guarded else ()
    at_the_top = [Operation("create", path) for path in missing if path in above[:2]]
    below = [Operation("create", path) for path in missing if path not in above[:2]]
    return [*at_the_top, *guard, *below, *wanted], failed


def _set(path: str, node: NodeData | None, data: bytes) -> Operation | None:
    if node is None:
        return Operation("create", path, data)
    return None if node.data == data else Operation("set", path, data, node.version)


def _remove(
    connection: Connection, group: str, partitions: Sequence[TopicPartition], *, guarded: bool
) -> tuple[list[Operation], Failures]:
    topics = sorted({partition.topic for partition in partitions})
    listed = connection.children_many([nodes.offsets_path(group, topic) for topic in topics])
    operations = []
    for topic in topics:
        path = nodes.offsets_path(group, topic)
        there = set(listed.values.get(path, ()))
        gone = {str(partition.partition) for partition in partitions if partition.topic == topic} & there
        operations += [Operation("delete", f"{path}/{name}") for name in sorted(gone, key=int)]
        if gone and gone == there:
            operations.append(Operation("delete", path))
    if not operations:
        return [], {}
    guard = _Guard.read(connection, group).operations if guarded else ()
    return [*guard, *operations], {}


def _remove_tree(connection: Connection, group: str) -> bool:
    """Whether nothing is left, after one transaction."""
    root, ids = nodes.group_path(group), nodes.ids_path(group)
    paths, level = [], [root]
    while level:
        listed = connection.children_many(level)
        paths += [path for path in level if path in listed.values]
        level = [f"{path}/{name}" for path in level for name in listed.values.get(path, ())]
    if not paths:
        return True
    if instances := [path for path in paths if path.startswith(f"{ids}/")]:
        raise RunningInstancesError(group, len(instances))
    deletes = [Operation("delete", path) for path in reversed(paths)]
    if len(deletes) <= NODES_A_TRANSACTION:
        connection.transact(deletes)
        return True
    guard = _Guard.read(connection, group).operations
    leaves = [each for each in deletes if each.path not in (root, ids)]
    connection.transact([*guard, *leaves[:NODES_A_TRANSACTION]])
    return False


def _partition_of(operation: Operation, group: str) -> TopicPartition | None:
    """The partition whose offset an operation is about."""
    topic, slash, number = operation.path.removeprefix(nodes.offsets_path(group) + "/").partition("/")
    return TopicPartition(topic, int(number)) if slash and number.isdecimal() else None
