"""`kgctl.admin.client.GroupAdmin` of the groups in ZooKeeper, so that every command works on them as on Kafka's own.

ZooKeeper knows groups, instances, claims and offsets, and how many partitions topics have. How long the logs are only the
brokers know: ``brokers`` is their `GroupAdmin`, where one is given; without it logs are unknown, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from kgctl.admin.client import GroupAdmin, Place
from kgctl.admin.results import GroupResults, ItemError, PartitionResults, Results, Sight, item_error
from kgctl.admin.zookeeper import changes, nodes, snapshot
from kgctl.admin.zookeeper.connection import Connection, Unanswered
from kgctl.admin.zookeeper.nodes import (
    ChangedMeanwhileError,
    GroupNotFoundError,
    Pattern,
    Registration,
    RunningInstancesError,
    is_name,
)
from kgctl.admin.zookeeper.settings import ZooKeeperSettings
from kgctl.admin.zookeeper.snapshot import GroupSnapshot
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

MOST_GROUPS = 100
"""Of more groups nothing is watched: each watch is a request, and is kept by the server."""


class GroupWatches:
    """The watches of one connection; each holds for one change. Those that still hold are not asked for again."""

    def __init__(self, connection: Connection) -> None:
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
        owners = [nodes.owners_path(group) for group in groups]
        with self._connection.within():
            self._hold([*(nodes.ids_path(group) for group in groups), *owners])
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
    GroupNotFoundError: ErrorCode.GROUP_ID_NOT_FOUND,
    RunningInstancesError: ErrorCode.NON_EMPTY_GROUP,
    ChangedMeanwhileError: ErrorCode.OPERATION_NOT_ATTEMPTED,
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
    return ZooKeeperGroupAdmin(Connection(settings, timeout_ms=timeout_ms), brokers)


class ZooKeeperGroupAdmin:
    """Groups in ZooKeeper. A group is Stable while an instance runs, else Empty; its type is ZOOKEEPER."""

    def __init__(self, connection: Connection, brokers: GroupAdmin | None = None) -> None:
        self._connection = connection
        self._brokers = brokers
        self._watches = GroupWatches(connection)

    def cluster_id(self) -> str | None:
        """``zookeeper:`` and Kafka's own id, or else the hosts, sorted, and the chroot: never the id that brokers tell."""
        return snapshot.read_cluster_id(self._connection)

    def sight(self) -> Sight:
        """What may not be read in ZooKeeper is an error of its own; brokers may hide the logs of topics."""
        return Sight() if self._brokers is None else replace(self._brokers.sight(), all_groups=True)

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """All groups; Stable where instances run."""
        with self._connection.within():
            names = snapshot.list_names(self._connection)
            running, refused = snapshot.running_instances(self._connection, names)
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
            topics = tuple(snapshot.read_topics(self._connection)) if is_list else ()
        values = {name: _description(group, topics) for name, group in groups.items()}
        return Results(values, errors, flaws=_flaws(groups))

    def list_committed_offsets(
        self, group_ids: Sequence[str], *, require_stable: bool = False
    ) -> GroupResults[Mapping[TopicPartition, OffsetAndMetadata]]:
        """A group that does not exist has none; a node that holds no offset is a flaw of its group."""
        del require_stable  # there are no transactions
        groups, errors = self._read(group_ids, members=False)
        values: dict[str, Mapping[TopicPartition, OffsetAndMetadata]] = {}
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
        return snapshot.read_topics(self._connection, topics)

    def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PartitionResults[None]:
        """In one transaction for up to 1,000 partitions; NON_EMPTY_GROUP while instances run. Metadata has no place there."""
        if not is_name(group_id):
            return Results({}, dict.fromkeys(offsets, item_error(ErrorCode.INVALID_GROUP_ID, group=group_id)))
        failed = changes.write_offsets(self._connection, group_id, {each: commit.offset for each, commit in offsets.items()})
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
            failed = changes.remove_offsets(
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
            if not is_name(group_id):
                errors[group_id] = item_error(ErrorCode.INVALID_GROUP_ID, group=group_id)
                continue
            try:
                changes.remove_group(self._connection, group_id)
            except KgctlError as error:
                errors[group_id] = _item(error)
        return Results({group_id: None for group_id in wanted if group_id not in errors}, errors)

    def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Sequence[str] = (),
        group_instance_ids: Sequence[str] = (),
        reason: str | None = None,
    ) -> GroupResults[None]:
        """Not possible: an instance is registered as long as its session lasts, and would not learn of its removal."""
        del member_ids, group_instance_ids, reason
        raise UnsupportedError(
            "an instance of a group in ZooKeeper leaves when its consumer is stopped, not before", group=group_id
        )

    def watch_groups(self, group_ids: Sequence[str], changed: Callable[[], None]) -> None:
        """Instances and claims are watched, offsets are not."""
        self._watches.hold([group_id for group_id in dict.fromkeys(group_ids) if is_name(group_id)], changed)

    def close(self) -> None:
        """Safe to call twice."""
        self._connection.close()
        if self._brokers is not None:
            self._brokers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _read(
        self, group_ids: Sequence[str], *, members: bool = True, offsets: bool = True
    ) -> tuple[Mapping[str, GroupSnapshot], dict[str, ItemError]]:
        """The groups that can be read, and an error for each of the others."""
        named = [group_id for group_id in dict.fromkeys(group_ids) if is_name(group_id)]
        groups = snapshot.read_groups(self._connection, named, members=members, offsets=offsets)
        errors: dict[str, ItemError] = {}
        for group_id in dict.fromkeys(group_ids):
            if error := groups.denied.get(group_id):
                errors[group_id] = _item(error)
            elif group_id not in groups.found:
                code = ErrorCode.GROUP_ID_NOT_FOUND if is_name(group_id) else ErrorCode.INVALID_GROUP_ID
                errors[group_id] = item_error(code, group=group_id)
        return groups.found, errors


def _state(instances: int) -> GroupState:
    return GroupState.STABLE if instances else GroupState.EMPTY


def _is_list(registration: Registration | None) -> bool:
    return registration is not None and registration.pattern is not Pattern.STATIC


def _flaws(groups: Mapping[str, GroupSnapshot]) -> Mapping[str, tuple[KgctlError, ...]]:
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


def _description(group: GroupSnapshot, topics: Sequence[str]) -> GroupDescription:
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
    if registration.pattern is Pattern.STATIC:
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
