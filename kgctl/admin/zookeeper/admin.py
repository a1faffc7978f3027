"""`kgctl.admin.GroupAdmin` of the groups in ZooKeeper, so that every command works on them as on Kafka's own.

ZooKeeper knows groups, instances, claims and offsets, and how many partitions topics have. How long the logs are only the
brokers know: ``brokers`` is their `GroupAdmin`, where one is given; without it logs are unknown, never guessed.

A group's offsets are changed, and a group is removed, in one transaction, and never beside a running instance: the transaction
takes the group's ``ids`` node away and puts it back as it was. ZooKeeper refuses that as soon as an instance is registered below,
and with it the whole transaction: there is no moment between the look and the deed in which one could begin. Offsets are written
by the version that was read; what others changed in between is read again, `ATTEMPTS` times. After an answer that never came, the
next attempt reads back what is there: what has been written is not written twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kgctl.admin import (
    Closing,
    Committed,
    GroupAdmin,
    GroupResults,
    ItemError,
    LimitsTime,
    PartitionResults,
    Place,
    Results,
    Sight,
    item_error,
    zookeeper,
)
from kgctl.admin.zookeeper import Registration, ZooKeeperSettings, registry
from kgctl.admin.zookeeper.connection import NodeData, Operation, RefusedOperation, Unanswered, ZooKeeperSession, denied
from kgctl.errors import AuthError, KgctlError, TimedOutError, UnreachableError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    MemberDescription,
    OffsetAndMetadata,
    TopicPartition,
)
from kgctl.model.values import frozen_in_order
from kgctl.wire import Deadline

ATTEMPTS = 10
PARTITIONS_A_TRANSACTION = 1_000
NODES_A_TRANSACTION = 4_000
_RETRY_S = 0.02

Failures = dict[TopicPartition, KgctlError]


def write_offsets(
    connection: ZooKeeperSession, group: str, offsets: Mapping[TopicPartition, int], *, guarded: bool = True
) -> Failures:
    """Commit these offsets; makes the group where there is none. ``guarded``: only while no instance runs.

    Returns what failed, by partition; up to `PARTITIONS_A_TRANSACTION` are written together or not at all.
    """
    return _in_parts(connection, group, sorted(offsets), lambda part: _write(connection, group, part, offsets, guarded=guarded))


def remove_offsets(
    connection: ZooKeeperSession, group: str, partitions: Sequence[TopicPartition], *, guarded: bool = True
) -> Failures:
    """Take commits away, and topics that have none left. ``guarded``: only while no instance runs. Returns what failed."""
    return _in_parts(connection, group, sorted(set(partitions)), lambda part: _remove(connection, group, part, guarded=guarded))


def remove_group(connection: ZooKeeperSession, group: str) -> None:
    """Delete a group with all that is below it.

    Raises:
        GroupNotFoundError: there is none.
        RunningInstancesError: instances are running; nothing was deleted, or not all of a group of more than
            `NODES_A_TRANSACTION` nodes.
        ChangedMeanwhileError: others kept changing it.
        AuthError: a node may not be deleted.
    """
    if connection.children(zookeeper.group_path(group)) is None:
        raise zookeeper.GroupNotFoundError(group)
    _attempt(connection, group, lambda: _remove_tree(connection, group))


def _in_parts(
    connection: ZooKeeperSession,
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
    connection: ZooKeeperSession,
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


def _attempt(connection: ZooKeeperSession, group: str, once: Callable[[], bool]) -> None:
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
                if refusal.operation.path == zookeeper.ids_path(group) and refusal.reason == "not_empty":
                    raise zookeeper.RunningInstancesError(group) from None
                changed += 1
            except Unanswered:
                if deadline.is_over:
                    raise
                deadline.wait(_RETRY_S)
        raise zookeeper.ChangedMeanwhileError(group, attempts=ATTEMPTS)


@frozen_in_order
class _Guard:
    """The operations at the beginning of a transaction that ZooKeeper refuses while an instance is registered."""

    operations: tuple[Operation, ...]

    @classmethod
    def read(cls, connection: ZooKeeperSession, group: str) -> _Guard:
        """For the group as it is now.

        Raises:
            RunningInstancesError: there are instances already.
        """
        path = zookeeper.ids_path(group)
        instances, node = connection.children(path), connection.get(path)
        if instances:
            raise zookeeper.RunningInstancesError(group, len(instances))
        if instances is None or node is None:
            return cls((Operation("create", path), Operation("delete", path)))
        return cls((Operation("delete", path), Operation("create", path, node.data, acl=connection.acl(path))))


def _write(
    connection: ZooKeeperSession,
    group: str,
    partitions: Sequence[TopicPartition],
    offsets: Mapping[TopicPartition, int],
    *,
    guarded: bool,
) -> tuple[list[Operation], Failures]:
    """What is to be written, as ZooKeeper is now; nothing for offsets that are there already."""
    paths = {partition: zookeeper.offsets_path(group, *partition) for partition in partitions}
    above = [zookeeper.GROUPS, zookeeper.group_path(group), zookeeper.offsets_path(group)]
    above += [zookeeper.offsets_path(group, topic) for topic in dict.fromkeys(partition.topic for partition in partitions)]
    found = connection.get_many([*above, *paths.values()])
    failed: Failures = {partition: denied(path) for partition, path in paths.items() if path in found.denied}
    missing = [path for path in above if path not in found.values and path not in found.denied]
    changes = [
        _set(path, found.values.get(path), zookeeper.encode_offset(offsets[partition]))
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
    connection: ZooKeeperSession, group: str, partitions: Sequence[TopicPartition], *, guarded: bool
) -> tuple[list[Operation], Failures]:
    topics = sorted({partition.topic for partition in partitions})
    listed = connection.children_many([zookeeper.offsets_path(group, topic) for topic in topics])
    operations = []
    for topic in topics:
        path = zookeeper.offsets_path(group, topic)
        there = set(listed.values.get(path, ()))
        gone = {str(partition.partition) for partition in partitions if partition.topic == topic} & there
        operations += [Operation("delete", f"{path}/{name}") for name in sorted(gone, key=int)]
        if gone and gone == there:
            operations.append(Operation("delete", path))
    if not operations:
        return [], {}
    guard = _Guard.read(connection, group).operations if guarded else ()
    return [*guard, *operations], {}


def _remove_tree(connection: ZooKeeperSession, group: str) -> bool:
    """Whether nothing is left, after one transaction."""
    root, ids = zookeeper.group_path(group), zookeeper.ids_path(group)
    paths, level = [], [root]
    while level:
        listed = connection.children_many(level)
        paths += [path for path in level if path in listed.values]
        level = [f"{path}/{name}" for path in level for name in listed.values.get(path, ())]
    if not paths:
        return True
    if instances := [path for path in paths if path.startswith(f"{ids}/")]:
        raise zookeeper.RunningInstancesError(group, len(instances))
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
    topic, slash, number = operation.path.removeprefix(zookeeper.offsets_path(group) + "/").partition("/")
    return TopicPartition(topic, int(number)) if slash and number.isdecimal() else None


MOST_GROUPS = 100
"""Of more groups nothing is watched: each watch is a request, and is kept by the server."""


class GroupWatches:
    """The watches of one connection; each holds for one change. Those that still hold are not asked for again."""

    def __init__(self, connection: ZooKeeperSession) -> None:
        self._connection = connection
        self._names: dict[str, list[str]] = {}
        self._held: set[str] = set()
        self._changed: Callable[[], None] = lambda: None

    def hold(self, groups: Sequence[str], changed: Callable[[], None]) -> None:
        """Have ``changed`` called, from another thread, at the next change of the groups' instances or claims.

        Raises:
            KgctlError: ZooKeeper cannot be asked.
        """
        self._changed = changed
        if len(groups) > MOST_GROUPS:
            return
        owners = [zookeeper.owners_path(group) for group in groups]
        with self._connection.within():
            self._hold([*(zookeeper.ids_path(group) for group in groups), *owners])
            self._hold([f"{path}/{topic}" for path in owners for topic in self._names.get(path, ())])

    def _hold(self, paths: Sequence[str]) -> None:
        wanted = [path for path in paths if path not in self._held]
        self._held.update(wanted)  # before they are asked for: the change may be told before the answer is looked at
        try:
            answers = self._connection.children_watched(wanted, self._tell)
        except BaseException:
            self._held.difference_update(wanted)
            raise
        self._held.difference_update(answers.denied)
        for path in wanted:
            self._names[path] = answers.values.get(path, [])

    def _tell(self, path: str) -> None:
        self._held.discard(path)
        self._changed()


PROTOCOL_TYPE = "consumer"
NO_LOGS = "ZooKeeper does not know the log of {partition}: give --bootstrap-server too"

_CODES: Mapping[type[KgctlError], ErrorCode] = {
    zookeeper.GroupNotFoundError: ErrorCode.GROUP_ID_NOT_FOUND,
    zookeeper.RunningInstancesError: ErrorCode.NON_EMPTY_GROUP,
    zookeeper.ChangedMeanwhileError: ErrorCode.OPERATION_NOT_ATTEMPTED,
    AuthError: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Unanswered: ErrorCode.REQUEST_TIMED_OUT,
    TimedOutError: ErrorCode.REQUEST_TIMED_OUT,
    UnreachableError: ErrorCode.NETWORK_EXCEPTION,
}


def open_zookeeper(
    address: str, properties: Mapping[str, str], timeout_ms: int, brokers: GroupAdmin | None = None
) -> ZooKeeperGroupAdmin:
    """The groups at ``HOST:PORT[,HOST:PORT][/CHROOT]``; the caller closes it, and ``brokers`` with it.

    Raises:
        UsageError: an address or property that cannot be.
    """
    settings = ZooKeeperSettings.of(address, properties)
    return ZooKeeperGroupAdmin(ZooKeeperSession(settings, timeout_ms=timeout_ms), brokers)


class ZooKeeperGroupAdmin(Closing):
    """Groups in ZooKeeper. A group is Stable while an instance runs, else Empty; its type is ZOOKEEPER."""

    def __init__(self, connection: ZooKeeperSession, brokers: GroupAdmin | None = None) -> None:
        self._connection = connection
        self._brokers = brokers
        self._watches = GroupWatches(connection)

    @property
    def timeout_ms(self) -> int:
        """Of each call, or of all that `limit` is for."""
        return self._connection.timeout_ms

    @property
    def limit(self) -> Deadline | None:
        """As `kgctl.admin.LimitsTime`; that of the brokers too."""
        return self._connection.limit

    @limit.setter
    def limit(self, limit: Deadline | None) -> None:
        self._connection.limit = limit
        if isinstance(self._brokers, LimitsTime):
            self._brokers.limit = limit

    def cluster_id(self) -> str | None:
        """``zookeeper:`` and Kafka's own id, or else the hosts, sorted, and the chroot: never the id that brokers tell."""
        return registry.read_cluster_id(self._connection)

    def sight(self) -> Sight:
        """What may not be read in ZooKeeper is an error of its own; brokers may hide the logs of topics."""
        return Sight() if self._brokers is None else replace(self._brokers.sight(), all_groups=True)

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """All groups; Stable where instances run."""
        with self._connection.within():
            names = registry.list_names(self._connection)
            running, refused = registry.running_instances(self._connection, names)
        if types and GroupType.ZOOKEEPER not in types:
            return Results()
        found = {name: GroupListing(name, PROTOCOL_TYPE, _state(count), GroupType.ZOOKEEPER) for name, count in running.items()}
        wanted = {name: listing for name, listing in found.items() if not states or listing.state in states}
        return Results(wanted, {name: _item(error) for name, error in refused.items()})

    def describe_groups(self, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        """Instances as members, claims as their assignment. A node that cannot be understood is a flaw of its group."""
        with self._connection.within():
            groups, errors = self._read(group_ids, offsets=False)
            is_list = any(_is_list(registration) for group in groups.values() for registration in group.instances.values())
            topics = tuple(registry.read_topics(self._connection)) if is_list else ()
        values = {name: _description(group, topics) for name, group in groups.items()}
        return Results(values, errors, flaws=_flaws(groups))

    def list_committed_offsets(self, group_ids: Sequence[str], *, require_stable: bool = False) -> GroupResults[Committed]:
        """A group that does not exist has none; a node that holds no offset is a flaw of its group."""
        del require_stable  # there are no transactions
        groups, errors = self._read(group_ids, members=False)
        values: dict[str, Committed] = {}
        for name in dict.fromkeys(group_ids):
            if name in groups:
                values[name] = {partition: OffsetAndMetadata(offset) for partition, offset in groups[name].offsets.items()}
            elif errors[name].code is ErrorCode.GROUP_ID_NOT_FOUND:
                values[name] = {}
        failed = {name: error for name, error in errors.items() if name not in values}
        return Results(values, failed, flaws=_flaws(groups))

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """As the brokers tell them; unknown without brokers."""
        if self._brokers is not None:
            return self._brokers.list_log_offsets(partitions, read_committed=read_committed)
        return Results(dict.fromkeys(partitions, LogOffsets()))

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """As the brokers tell them; an error without brokers."""
        if self._brokers is not None:
            return self._brokers.list_offsets_at(partitions, timestamp_ms)
        unknown = ErrorCode.UNSUPPORTED_VERSION
        return Results({}, {each: ItemError(unknown, NO_LOGS.format(partition=each)) for each in dict.fromkeys(partitions)})

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        """As the brokers tell them; an error without brokers."""
        if self._brokers is not None:
            return self._brokers.list_record_times(places)
        unknown = ErrorCode.UNSUPPORTED_VERSION
        return Results({}, {place: ItemError(unknown, NO_LOGS.format(partition=place[0])) for place in places})

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions, by the brokers where there are any, else by what Kafka keeps in ZooKeeper."""
        if self._brokers is not None:
            return self._brokers.list_topics(topics)
        return registry.read_topics(self._connection, topics)

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """By the brokers, where there are any."""
        return self._brokers.topic_ids(topics) if self._brokers is not None else {}

    def alter_offsets(self, group_id: str, offsets: Committed) -> PartitionResults[None]:
        """In one transaction for up to 1,000 partitions; NON_EMPTY_GROUP while instances run. Metadata has no place there."""
        if not zookeeper.is_name(group_id):
            return Results({}, dict.fromkeys(offsets, item_error(ErrorCode.INVALID_GROUP_ID, group=group_id)))
        failed = write_offsets(self._connection, group_id, {each: commit.offset for each, commit in offsets.items()})
        return _partition_results(offsets, failed)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """GROUP_SUBSCRIBED_TO_TOPIC for topics that a running instance reads; all others, also while instances run."""
        wanted = list(dict.fromkeys(partitions))
        with self._connection.within():
            described = self.describe_groups([group_id])
            if error := described.errors.get(group_id):
                return Results({}, dict.fromkeys(wanted, error))
            members = described.values[group_id].members
            read = {topic for member in members for topic in (*(member.subscribed_topics or ()), *(member.assignment or ()))}
            unclear = any(member.subscribed_topics is None for member in members)
            in_use = {each for each in wanted if unclear or each.topic in read}
            failed = remove_offsets(
                self._connection, group_id, [each for each in wanted if each not in in_use], guarded=not members
            )
        results = _partition_results([each for each in wanted if each not in in_use], failed)
        subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        refused = {each: item_error(subscribed, group=group_id, partition=each) for each in wanted if each in in_use}
        return Results(results.values, {**results.errors, **refused})

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""
        errors: dict[str, ItemError] = {}
        wanted = list(dict.fromkeys(group_ids))
        for group_id in wanted:
            if not zookeeper.is_name(group_id):
                errors[group_id] = item_error(ErrorCode.INVALID_GROUP_ID, group=group_id)
                continue
            try:
                remove_group(self._connection, group_id)
            except KgctlError as error:
                errors[group_id] = _item(error)
        return Results({group_id: None for group_id in wanted if group_id not in errors}, errors)

    def remove_members(
        self, group_id: str, *, member_ids: Sequence[str] = (), group_instance_ids: Sequence[str] = (), reason: str | None = None
    ) -> GroupResults[None]:
        """Not possible: an instance is registered as long as its session lasts, and would not learn of its removal."""
        del member_ids, group_instance_ids, reason
        raise UnsupportedError(
            "an instance of a group in ZooKeeper leaves when its consumer is stopped, not before", group=group_id
        )

    def watch_groups(self, group_ids: Sequence[str], changed: Callable[[], None]) -> None:
        """Instances and claims are watched, offsets are not."""
        self._watches.hold([group_id for group_id in dict.fromkeys(group_ids) if zookeeper.is_name(group_id)], changed)

    def close(self) -> None:
        """Safe to call twice."""
        self._connection.close()
        if self._brokers is not None:
            self._brokers.close()

    def _read(
        self, group_ids: Sequence[str], *, members: bool = True, offsets: bool = True
    ) -> tuple[Mapping[str, registry.GroupSnapshot], dict[str, ItemError]]:
        """The groups that can be read, and an error for each of the others."""
        named = [group_id for group_id in dict.fromkeys(group_ids) if zookeeper.is_name(group_id)]
        groups = registry.read_groups(self._connection, named, members=members, offsets=offsets)
        errors: dict[str, ItemError] = {}
        for group_id in dict.fromkeys(group_ids):
            if error := groups.denied.get(group_id):
                errors[group_id] = _item(error)
            elif group_id not in groups.found:
                code = ErrorCode.GROUP_ID_NOT_FOUND if zookeeper.is_name(group_id) else ErrorCode.INVALID_GROUP_ID
                errors[group_id] = item_error(code, group=group_id)
        return groups.found, errors


def _state(instances: int) -> GroupState:
    return GroupState.STABLE if instances else GroupState.EMPTY


def _is_list(registration: Registration | None) -> bool:
    return registration is not None and registration.pattern is not zookeeper.Pattern.STATIC


def _flaws(groups: Mapping[str, registry.GroupSnapshot]) -> Mapping[str, tuple[KgctlError, ...]]:
    return {name: tuple(group.flaws) for name, group in groups.items() if group.flaws}


def _item(error: KgctlError) -> ItemError:
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), ErrorCode.UNKNOWN_SERVER_ERROR)
    return ItemError(code, error.message)


def _partition_results(wanted: Iterable[TopicPartition], failed: Mapping[TopicPartition, KgctlError]) -> PartitionResults[None]:
    """Raises what kept everything from being answered."""
    done = [each for each in wanted if each not in failed]
    reasons = {id(error): error for error in failed.values()}
    if not done and len(reasons) == 1:
        (reason,) = reasons.values()
        if isinstance(reason, UnreachableError):
            raise reason
    return Results(dict.fromkeys(done), {each: _item(error) for each, error in failed.items()})


def _description(group: registry.GroupSnapshot, topics: Sequence[str]) -> GroupDescription:
    claims: dict[str, dict[str, list[int]]] = {name: {} for name in group.instances}
    for partition, claimed_by in group.owners.items():
        owner = _instance_of(claimed_by, group.instances)
        claims.setdefault(owner, {}).setdefault(partition.topic, []).append(partition.partition)
    members = [
        _subscribed(
            MemberDescription(
                member_id=name,
                host=_host(group.name, name),
                assignment={topic: tuple(sorted(numbers)) for topic, numbers in sorted(claimed.items())},
            ),
            group.instances.get(name),
            topics,
        )
        for name, claimed in sorted(claims.items())
    ]
    state = _state(len(group.instances))
    return GroupDescription(group.name, state, GroupType.ZOOKEEPER, PROTOCOL_TYPE, members=tuple(members))


def _instance_of(claimed_by: str, instances: Iterable[str]) -> str:
    """The instance that a claim belongs to: Kafka's consumers claim as ``<instance>-<number of the stream>``."""
    if claimed_by in instances:
        return claimed_by
    instance, dash, stream = claimed_by.rpartition("-")
    return instance if dash and stream.isdecimal() and instance in instances else claimed_by


def _subscribed(member: MemberDescription, registration: Registration | None, topics: Sequence[str]) -> MemberDescription:
    """With the topics that it reads: of a list, those there are."""
    if registration is None:
        return member
    if registration.pattern is zookeeper.Pattern.STATIC:
        return replace(member, subscribed_topics=tuple(sorted(registration.subscription)))
    regex = f"{registration.pattern}: {','.join(registration.subscription)}"
    read = tuple(topic for topic in topics if registration.reads(topic))
    return replace(member, subscribed_topics=read, subscribed_topic_regex=regex)


def _host(group: str, instance: str) -> str:
    """The host in an instance's id: ``<host>:<uuid>`` (kazoo-go), ``<group>_<host>-<milliseconds>-<8 hex>`` (Kafka)."""
    if match := re.fullmatch(r"(.+):[0-9a-fA-F-]{36}", instance):
        return match[1]
    match = re.fullmatch(r"(.+)-\d{13}-[0-9a-f]{1,8}", instance.removeprefix(f"{group}_"))
    return match[1] if match else ""
