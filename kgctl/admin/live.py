"""A live cluster: kgctl's own connection for groups, confluent-kafka for records, of which it knows every compression.

Why groups do not go through confluent-kafka although they could, in part: it drops share, streams and Connect groups from a
listing, shows the states of the consumer protocol as UNKNOWN and a share group as a missing one, has no epochs, asks one
group a request, can abort the process (`kgctl.admin.librdkafka`), its import alone costs a third of the time that
``describe group`` may take; and of a change whose connection broke it does not tell what was never sent. Where kgctl's own
connection does not cover the login (GSSAPI, PKCS12 key stores), all goes through confluent-kafka, and `connect` says what is
lost.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, TypeVar

from kgctl.admin import (
    NO_LEAVING,
    Closing,
    Committed,
    GroupResults,
    Lacking,
    PartitionResults,
    Place,
    Record,
    Results,
    Sight,
    Span,
    groups,
    rights,
    share_groups,
    unfit,
)
from kgctl.admin.answers import group_results, partition_results
from kgctl.admin.groups import describe_groups, list_groups, remove_members
from kgctl.admin.rights import Needs
from kgctl.admin.writes import commit_offsets, delete_groups, delete_offsets, delete_topics, lacking_on_groups, lacking_on_topics
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    OffsetAndMetadata,
    StartOffset,
    TopicPartition,
    new_partition,
)
from kgctl.serde.codec import read_varint, skip_tags
from kgctl.serde.frames import MalformedMessage
from kgctl.serde.messages import decode_response
from kgctl.wire import Deadline
from kgctl.wire.asking import Failure, ask_coordinators, ask_leaders, failure_in, partitions_in
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import DESCRIBE_SHARE_GROUP_OFFSETS, LEAVE_GROUP, OFFSET_DELETE, OFFSET_FETCH, Connection, Request
from kgctl.wire.logs import EARLIEST, LATEST, list_offsets
from kgctl.wire.settings import WireSettings

if TYPE_CHECKING:
    from kgctl.admin.confluent import ConfluentGroupAdmin


_GROUPS_PER_FETCH = 50
"""In an OffsetFetch: what a group has committed is longer than what a group is."""
_SEVERAL_GROUPS_SINCE = 8  # KIP-709


def list_committed_offsets(
    cluster: ClusterClient, group_ids: Sequence[str], deadline: Deadline, *, require_stable: bool = False
) -> GroupResults[Committed]:
    """All committed offsets of each group, by topic and partition; a group that does not exist has none.

    A share group has start offsets in their place. With ``require_stable`` a group with offsets of an open transaction has the
    error UNSTABLE_OFFSET_COMMIT.
    """

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Committed | Failure]]:
        has_several = connection.version(OFFSET_FETCH) >= _SEVERAL_GROUPS_SINCE
        in_parts = (_in_batches if has_several else _one_by_one)(connection, groups, deadline, require_stable=require_stable)
        if not connection.versions.has(DESCRIBE_SHARE_GROUP_OFFSETS):
            yield from in_parts
            return
        bare: list[str] = []
        for part in in_parts:
            bare += [group for group, commits in part.items() if not commits]
            yield {group: commits for group, commits in part.items() if commits}
        if bare:  # to OffsetFetch a share group is one that does not exist
            yield {group: {} for group in bare} | share_groups.start_offsets(connection, bare, deadline)

    return group_results(ask_coordinators(cluster, group_ids, ask, deadline))


def _in_batches(
    connection: Connection, groups: list[str], deadline: Deadline, *, require_stable: bool
) -> Iterator[Mapping[str, Committed | Failure]]:
    version = connection.version(OFFSET_FETCH)
    requests = []
    for start in range(0, len(groups), _GROUPS_PER_FETCH):
        asked = [{"group_id": group, "topics": None} for group in groups[start : start + _GROUPS_PER_FETCH]]
        requests.append(Request(OFFSET_FETCH, version, {"groups": asked, "require_stable": require_stable}))
    return connection.stream(requests, deadline, _read_commits)


_PLAIN = {1: (Struct(">iqiBhB"), 0x01), 2: (Struct(">iqiHhB"), 0x0200)}
"""By the length of the metadata and one: a partition with its number, offset, leader epoch, this metadata (none, or librdkafka's
NUL), no error and no tagged field."""


def _read_commits(api_key: int, version: int, payload: bytes) -> tuple[int, Mapping[str, Committed | Failure]]:
    """The correlation id, and each group's answer of a response for several groups. As `decode_response`.

    Nearly all commits have no metadata, and then a topic's partitions are all of one size: read at once, they cost a quarter.
    """
    try:
        plain = _plain_commits(payload)
    except (IndexError, struct_error, UnicodeDecodeError, MalformedMessage):
        plain = None  # whatever is wrong with it, the general reader says
    if plain is not None:
        return int.from_bytes(payload[:4], signed=True), plain
    correlation_id, response = decode_response(api_key, version, payload)
    return correlation_id, {group.group_id: _committed(group) for group in response.groups}


def _plain_commits(data: bytes) -> Mapping[str, Committed] | None:
    """None where a partition is not as `_PLAIN`, a group has an error, or anything else is out of the ordinary."""
    found: dict[str, Committed] = {}
    position = skip_tags(data, 4) + 4  # after the correlation id, and before the time of a throttle
    groups, position = read_varint(data, position)
    for _ in range(groups - 1):
        group_id, position = _text(data, position)
        count, position = read_varint(data, position)
        topics: dict[str, list[tuple[int, ...]]] = {}
        for _ in range(count - 1):
            name, position = _text(data, position)
            partitions, position = read_varint(data, position)
            shape, metadata = _PLAIN.get(data[position + 16], _PLAIN[1])
            end = position + shape.size * max(0, partitions - 1)
            rows = sorted(shape.iter_unpack(data[position:end]))
            if data[end] or name in topics or any(row[3] != metadata or row[4] or row[5] for row in rows):
                return None
            topics[name], position = rows, end + 1
        if any(data[position : position + 3]) or group_id in found:  # the group's error, and tagged fields
            return None
        found[group_id], position = _in_order(topics), position + 3
    return found if groups and position == len(data) - 1 and not data[position] else None


def _text(data: bytes, position: int) -> tuple[str, int]:
    length, position = read_varint(data, position)
    if not length:
        raise MalformedMessage("a name is null")
    return data[position : position + length - 1].decode(), position + length - 1


def _in_order(topics: Mapping[str, Sequence[tuple[int, ...]]]) -> Committed:
    return {
        new_partition((name, row[0])): OffsetAndMetadata(row[1], "", row[2])
        for name in sorted(topics)
        for row in topics[name]
        if row[1] >= 0
    }


def _one_by_one(
    connection: Connection, groups: list[str], deadline: Deadline, *, require_stable: bool
) -> Iterator[Mapping[str, Committed | Failure]]:
    version = connection.version(OFFSET_FETCH)
    fields = {"topics": None, "require_stable": require_stable}
    requests = [Request(OFFSET_FETCH, version, {"group_id": group, **fields}) for group in groups]
    for group, response in zip(groups, connection.stream(requests, deadline), strict=True):
        yield {group: _committed(response)}


def _committed(answer: Any) -> Committed | Failure:
    """A partition without a commit is left out; any partition's error is the group's, as its picture would have a hole."""
    if failure := failure_in(answer):
        return failure
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, each in partitions_in(answer.topics):
        if failure := failure_in(each):
            return failure
        if each.committed_offset >= 0:
            found[partition] = _offset(each)
    return dict(sorted(found.items()))


def _offset(each: Any) -> OffsetAndMetadata:
    """librdkafka ends metadata with a NUL that is not part of it."""
    metadata = each.metadata or ""
    if metadata[-1:] == "\0":
        metadata = metadata[:-1]
    return OffsetAndMetadata(each.committed_offset, metadata, getattr(each, "committed_leader_epoch", -1))


def list_log_offsets(
    cluster: ClusterClient, partitions: Sequence[TopicPartition], deadline: Deadline, *, read_committed: bool = False
) -> PartitionResults[LogOffsets]:
    """Log start and log end (the high watermark, or the last stable offset) of each partition, both asked at once."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Iterator[Mapping[TopicPartition, LogOffsets | Failure]]:
        for part in list_offsets(connection, wanted, (EARLIEST, LATEST), deadline, read_committed=read_committed):
            yield {partition: _both(*bounds) for partition, bounds in part.items()}

    return partition_results(ask_leaders(cluster, partitions, ask, deadline))


def list_offsets_at(
    cluster: ClusterClient, partitions: Sequence[TopicPartition], timestamp_ms: int, deadline: Deadline
) -> PartitionResults[int | None]:
    """The first offset at or after the time; None where there is no such record."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Iterator[Mapping[TopicPartition, int | Failure]]:
        for part in list_offsets(connection, wanted, (timestamp_ms,), deadline):
            yield {partition: offset for partition, (offset,) in part.items()}

    results = partition_results(ask_leaders(cluster, partitions, ask, deadline))
    return Results({key: None if offset < 0 else offset for key, offset in results.values.items()}, results.errors)


def _both(start: int | Failure, end: int | Failure) -> LogOffsets | Failure:
    if isinstance(start, Failure):
        return start
    if isinstance(end, Failure):
        return end
    return LogOffsets(start, end)


def list_topics(cluster: ClusterClient, topics: Sequence[str] | None, deadline: Deadline) -> Mapping[str, int]:
    """Topic -> number of partitions, sorted; None asks for all. Topics that do not exist, or may not be seen, are left out."""
    if topics is not None and not topics:
        return {}
    found = cluster.layout(None if topics is None else sorted(set(topics)), deadline).topics
    return {name: len(found[name].leaders) for name in sorted(found) if not found[name].error_code}


K = TypeVar("K", bound=Hashable)

_SEEMS_MISSING = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INCONSISTENT_GROUP_PROTOCOL})


_COMMITS = {GroupType.SHARE: "it has start offsets in the place of commits"}
"""Why groups of this type have no commits."""

_NOT_EVERYWHERE = {rights.DELETE_OFFSETS: OFFSET_DELETE, rights.REMOVE_MEMBERS: LEAVE_GROUP}
"""Changes that old brokers have no request for."""


def _are_starts(offsets: Committed) -> bool:
    """Whether they are a share group's."""
    return any(isinstance(offset, StartOffset) for offset in offsets.values())


class LiveGroupAdmin(Closing):
    """`kgctl.admin.GroupAdmin` of a cluster. Nothing is contacted before the first call."""

    def __init__(self, properties: Mapping[str, str], timeout_ms: int) -> None:
        self._properties = properties
        self.timeout_ms = timeout_ms
        self.limit: Deadline | None = None
        settings = WireSettings.from_properties(properties)
        self._user = settings.sasl.username if settings.sasl else None
        self._cluster = ClusterClient(settings)

    @property
    def _confluent(self) -> ConfluentGroupAdmin:
        self._through_confluent.limit = self.limit
        return self._through_confluent

    @cached_property
    def _through_confluent(self) -> ConfluentGroupAdmin:
        from kgctl.admin.confluent import ConfluentGroupAdmin

        return ConfluentGroupAdmin(self._properties, self.timeout_ms)

    def cluster_id(self) -> str | None:
        """As Metadata tells it."""
        return self._cluster.layout([], self._deadline()).cluster_id

    def sight(self) -> Sight:
        """Two requests, in one go."""
        return groups.sight(self._cluster, self._deadline(), self._user)

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """Groups of every type."""
        return list_groups(self._cluster, self._deadline(), states, types)

    def describe_groups(self, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        """Groups of every type that their broker can describe."""
        return rights.LOOK.told(describe_groups(self._cluster, group_ids, self._deadline()), self._user)

    def list_committed_offsets(self, group_ids: Sequence[str], *, require_stable: bool = False) -> GroupResults[Committed]:
        """Fifty groups a request."""
        found = list_committed_offsets(self._cluster, group_ids, self._deadline(), require_stable=require_stable)
        return rights.LOOK.told(found, self._user)

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """Each leader is asked for all its partitions at once."""
        found = list_log_offsets(self._cluster, partitions, self._deadline(), read_committed=read_committed)
        return rights.LOOK.told(found, self._user)

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """Return the first offset at or after the time; None where no record is as new as that."""
        return rights.LOOK.told(list_offsets_at(self._cluster, partitions, timestamp_ms, self._deadline()), self._user)

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        """Through librdkafka, which knows every compression."""
        return self._confluent.list_record_times(places)

    def read_records(self, spans: Sequence[Span]) -> Results[Span, tuple[Record, ...]]:
        """Through librdkafka, which knows every compression."""
        return self._confluent.read_records(spans)

    def list_commit_times(self, wanted: Mapping[str, Collection[TopicPartition]]) -> GroupResults[Mapping[TopicPartition, int]]:
        """Through librdkafka, as record times."""
        return self._confluent.list_commit_times(wanted)

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions."""
        return list_topics(self._cluster, topics, self._deadline())

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """From Kafka 2.8 on."""
        if not topics:
            return {}
        found = self._cluster.layout(sorted(set(topics)), self._deadline()).topics
        return {name: str(topic.topic_id) for name, topic in found.items() if topic.topic_id and not topic.error_code}

    def alter_offsets(self, group_id: str, offsets: Committed) -> PartitionResults[None]:
        """A group with members is NON_EMPTY_GROUP on each partition."""
        return dict(self.alter_offsets_of({group_id: offsets})).get(group_id, Results())

    def alter_offsets_of(self, wanted: Mapping[str, Committed]) -> Iterator[tuple[str, PartitionResults[None]]]:
        """All groups at the same time; then share groups, which are told by what they are to have."""
        shared = {group_id: offsets for group_id, offsets in wanted.items() if _are_starts(offsets)}
        commits = {group_id: offsets for group_id, offsets in wanted.items() if group_id not in shared}
        for group_id, results in commit_offsets(self._cluster, commits, self._deadline()).items():
            yield group_id, self._naming_type(group_id, rights.COMMIT.told(results, self._user))
        for group_id, results in share_groups.alter_start_offsets(self._cluster, shared, self._deadline()).items():
            yield group_id, self._naming_type(group_id, rights.COMMIT.told(results, self._user))

    def check_supports(self, change: Needs) -> None:
        """By what some broker says of itself."""
        api = _NOT_EVERYWHERE.get(change)
        if api is not None:
            self._cluster.ask(lambda connection: connection.version(api), self._deadline())

    def lacking(self, change: Needs, group_ids: Sequence[str], topics: Sequence[str]) -> Lacking:
        """By what coordinators, and some broker, say of this user; from Kafka 2.3 on."""
        on_groups, on_topics, deadline = change.group_bit, change.topic_bit, self._deadline()
        by_group = lacking_on_groups(self._cluster, group_ids, on_groups, deadline) if on_groups and group_ids else {}
        by_topic = lacking_on_topics(self._cluster, topics, on_topics, deadline) if on_topics and topics else {}
        return Lacking(change.told_errors(by_group, self._user), change.told_errors(by_topic, self._user))

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """GROUP_SUBSCRIBED_TO_TOPIC where a member still reads the topic.

        Of a share group whole topics only, else INVALID_REQUEST; NON_EMPTY_GROUP where it has members.
        """
        results = rights.DELETE_OFFSETS.told(delete_offsets(self._cluster, group_id, partitions, self._deadline()), self._user)
        if not any(error.code in _SEEMS_MISSING for error in results.errors.values()):
            return results
        starts = list_committed_offsets(self._cluster, [group_id], self._deadline()).values.get(group_id, {})
        if not _are_starts(starts):
            return self._naming_type(group_id, results)
        apart = share_groups.in_part(starts, partitions)
        whole = [partition for partition in partitions if partition not in apart]
        found = share_groups.delete_start_offsets(self._cluster, group_id, whole, self._deadline()) if whole else Results()
        return rights.DELETE_OFFSETS.told(Results(found.values, {**found.errors, **apart}), self._user)

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""
        return rights.DELETE_GROUP.told(delete_groups(self._cluster, group_ids, self._deadline()), self._user)

    def delete_topics(self, topics: Sequence[str]) -> Results[str, None]:
        """Any broker hands it on."""
        return rights.DELETE_TOPICS.told(delete_topics(self._cluster, topics, self._deadline()), self._user)

    def remove_members(
        self, group_id: str, *, member_ids: Sequence[str] = (), group_instance_ids: Sequence[str] = (), reason: str | None = None
    ) -> GroupResults[None]:
        """By member id or, for static members, by group instance id."""
        results = remove_members(
            self._cluster, group_id, self._deadline(), member_ids=member_ids, group_instance_ids=group_instance_ids, reason=reason
        )
        return self._naming_type(group_id, rights.REMOVE_MEMBERS.told(results, self._user), NO_LEAVING)

    def close(self) -> None:
        """Safe to call twice."""
        self._cluster.close()
        if "_through_confluent" in self.__dict__:
            self._through_confluent.close()

    @property
    def progress(self) -> str:
        """``looked at 3,200 of 10,000 groups``: of the question that is being asked; "" before the first."""
        answered, wanted = self._cluster.answered, self._cluster.wanted
        return f"looked at {min(answered, wanted):,} of {wanted:,} {self._cluster.noun}" if wanted else ""

    def _deadline(self) -> Deadline:
        return Deadline.of_call(self.limit, self.timeout_ms)

    def _naming_type(
        self, group_id: str, results: Results[K, None], whys: Mapping[GroupType, str] = _COMMITS
    ) -> Results[K, None]:
        """To brokers a group of another type is one that does not exist; the errors say what it is (``whys``: by type)."""
        if not any(error.code in _SEEMS_MISSING for error in results.errors.values()):
            return results
        found = describe_groups(self._cluster, [group_id], self._deadline())
        kind = found.values[group_id].type if group_id in found.values else GroupType.UNKNOWN
        told = unfit(group_id, kind, whys) or found.errors.get(group_id)
        if told is None or told.code is not ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return results
        return Results(results.values, {k: told if each.code in _SEEMS_MISSING else each for k, each in results.errors.items()})
