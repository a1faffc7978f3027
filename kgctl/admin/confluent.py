"""`GroupAdmin` on confluent-kafka alone: all that librdkafka's admin client can do; and when groups committed, read from the end
of their partitions of ``__consumer_offsets``, as no request of Kafka's tells it."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import OffsetSpec

from kgctl.admin import (
    ACTIVE_GROUP,
    MAX_TIMESTAMP,
    NO_SUCH_NAME,
    Closing,
    Committed,
    GroupResults,
    ItemError,
    PartitionResults,
    Place,
    Record,
    Results,
    Sight,
    Span,
    item_error,
    other_type,
    rights,
)
from kgctl.admin.librdkafka import (
    LIBRDKAFKA_TIMEOUT_S,
    AdminCalls,
    OutsideReader,
    connection_error,
    error_code,
    explained,
    read_spans,
    results_of_calls,
)
from kgctl.admin.rights import Needs
from kgctl.errors import NotFoundError, UnsupportedError
from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    Assignment,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    TopicPartition,
)
from kgctl.model.values import partition_for
from kgctl.serde.coordinator_records import decode_key, decode_value
from kgctl.wire import Deadline

STATES: Mapping[ConsumerGroupState, GroupState] = {
    ConsumerGroupState.PREPARING_REBALANCING: GroupState.PREPARING_REBALANCE,
    ConsumerGroupState.COMPLETING_REBALANCING: GroupState.COMPLETING_REBALANCE,
    ConsumerGroupState.STABLE: GroupState.STABLE,
    ConsumerGroupState.DEAD: GroupState.DEAD,
    ConsumerGroupState.EMPTY: GroupState.EMPTY,
}
"""States that librdkafka has; Assigning, Reconciling and NotReady come as UNKNOWN."""

TYPES: Mapping[ConsumerGroupType, GroupType] = {
    ConsumerGroupType.CONSUMER: GroupType.CONSUMER,
    ConsumerGroupType.CLASSIC: GroupType.CLASSIC,
}
"""Types that librdkafka has; share and streams groups do not come at all."""


def listing(found: Any) -> GroupListing:
    """A ConsumerGroupListing; librdkafka lists only groups whose protocol type is "consumer" or none."""
    protocol_type = "" if found.is_simple_consumer_group else "consumer"
    return GroupListing(found.group_id, protocol_type, *_state_and_type(found))


def description(found: Any) -> GroupDescription:
    """A ConsumerGroupDescription; it has no epochs."""
    return GroupDescription(
        found.group_id,
        *_state_and_type(found),
        protocol_type="" if found.is_simple_consumer_group else "consumer",
        assignor=found.partition_assignor or None,
        coordinator=Node(found.coordinator.id, found.coordinator.host, found.coordinator.port) if found.coordinator else None,
        members=tuple(sorted(map(_member, found.members), key=lambda member: member.member_id)),
    )


def _state_and_type(found: Any) -> tuple[GroupState, GroupType]:
    """In Kafka's spelling."""
    return STATES.get(found.state, GroupState.UNKNOWN), TYPES.get(found.type, GroupType.UNKNOWN)


def _member(found: Any) -> MemberDescription:
    return MemberDescription(
        member_id=found.member_id,
        client_id=found.client_id,
        host=found.host,
        group_instance_id=found.group_instance_id or None,
        assignment=_assignment(found.assignment),
        target_assignment=_assignment(found.target_assignment),
    )


def _assignment(found: Any) -> Assignment | None:
    if found is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for each in found.topic_partitions:
        by_topic.setdefault(each.topic, []).append(each.partition)
    return {topic: tuple(sorted(by_topic[topic])) for topic in sorted(by_topic)}


def committed(found: ConfluentPartition) -> OffsetAndMetadata:
    """A committed offset. Metadata ends at its first NUL: librdkafka's strings are C's."""
    epoch: int | None = found.leader_epoch  # confluent-kafka's annotation forgets None
    return OffsetAndMetadata(found.offset, found.metadata or "", -1 if epoch is None else epoch)


def to_commit(partition: TopicPartition, offset: OffsetAndMetadata) -> ConfluentPartition:
    """Return this offset as librdkafka commits it: with a NUL behind metadata, and so without any where it is empty."""
    known: dict[str, Any] = {"metadata": offset.metadata} if offset.metadata else {}
    if offset.leader_epoch >= 0:
        known["leader_epoch"] = offset.leader_epoch
    return ConfluentPartition(partition.topic, partition.partition, offset.offset, **known)


K = TypeVar("K")
V = TypeVar("V")

_ACTIVE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION})
_NOT_YET = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""A coordinator that has only just got the group: librdkafka hands the error on, partition by partition."""

_TOO_LITTLE = "{what} needs kgctl's own connection, which does not cover {why}; everything else works through librdkafka"
_NO_CALL = {rights.DELETE_OFFSETS: "deleting offsets", rights.REMOVE_MEMBERS: "removing members"}
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
NEWEST: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
_LONG = {"request_timeout": LIBRDKAFKA_TIMEOUT_S}


class ConfluentGroupAdmin(Closing):
    """A live cluster through librdkafka; see `kgctl.admin.live.LiveGroupAdmin` for what kgctl uses where it can.

    What librdkafka cannot tell: groups of other types than consumer groups are missing from a listing, the states Assigning and
    Reconciling are UNKNOWN, there are no epochs; offsets cannot be deleted and members not removed (`UnsupportedError`).
    ``why`` says for that message which setting stands in the way of more.
    """

    def __init__(self, properties: Mapping[str, str], timeout_ms: int, *, why: str = "these settings") -> None:
        self._calls = AdminCalls(properties, timeout_ms)
        self._why = why
        self._properties = properties
        self.timeout_ms = timeout_ms
        self.limit: Deadline | None = None
        self._user = properties.get("sasl.username")

    def _begin(self) -> None:
        self._calls.begin(self._deadline())

    def _deadline(self) -> Deadline:
        return Deadline.of_call(self.limit, self.timeout_ms)

    def cluster_id(self) -> str | None:
        """As Metadata tells it."""
        self._begin()
        return self._calls.blocking(lambda seconds: self._calls.client.list_topics(timeout=seconds)).cluster_id

    def sight(self) -> Sight:
        """Who may describe the cluster without every group sees all of them, and is told here that he may not."""
        self._begin()
        groups = self._calls.client.describe_consumer_groups([NO_SUCH_NAME], **_LONG)
        topics = self._calls.client.describe_topics(TopicCollection([NO_SUCH_NAME]), **_LONG)
        self._calls.wait([*groups.values(), *topics.values()])
        denied = {error_code(error.args[0]) for future in (*groups.values(), *topics.values()) if (error := future.exception())}
        return Sight(
            ErrorCode.GROUP_AUTHORIZATION_FAILED not in denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED not in denied, self._user
        )

    def list_groups(self, *, states: Sequence[GroupState] = (), types: Sequence[GroupType] = ()) -> GroupResults[GroupListing]:
        """Consumer groups only. Filters are applied here, as librdkafka does not know all states."""
        self._begin()
        found = self._calls.result(self._calls.client.list_consumer_groups(**_LONG))
        errors = [error for error in found.errors if isinstance(error, KafkaException)]
        if errors and not found.valid:
            raise connection_error(errors[0].args[0])
        listings = sorted(map(listing, found.valid), key=lambda each: each.group_id)
        wanted = [each for each in listings if (not states or each.state in states) and (not types or each.type in types)]
        unreachable = {f"broker {number}": explained(error.args[0]) for number, error in enumerate(errors, start=1)}
        return Results({each.group_id: each for each in wanted}, {}, unreachable)

    def describe_groups(self, group_ids: Sequence[str]) -> GroupResults[GroupDescription]:
        """librdkafka shows a missing group as Dead and without members, and so a share group as well."""
        self._begin()
        if not group_ids:
            return Results()
        futures = self._calls.client.describe_consumer_groups(list(dict.fromkeys(group_ids)), **_LONG)
        values, errors = self._collect(futures)
        described = {group: description(found) for group, found in values.items()}
        missing = {group for group, each in described.items() if each.state is GroupState.DEAD and not each.members}
        errors |= self._explain_missing(missing)
        return rights.LOOK.told(
            Results({group: each for group, each in described.items() if group not in missing}, errors), self._user
        )

    def list_committed_offsets(self, group_ids: Sequence[str], *, require_stable: bool = False) -> GroupResults[Committed]:
        """Ask for each group in a request of its own, all in flight together."""
        self._begin()
        futures: dict[str, Future[Any]] = {}
        for group in dict.fromkeys(group_ids):
            asked = [ConsumerGroupTopicPartitions(group)]
            futures |= self._calls.client.list_consumer_group_offsets(asked, require_stable=require_stable, **_LONG)
        values, errors = self._collect(futures)
        found: dict[str, Committed] = {}
        for group, answer in values.items():
            failed = next((each.error for each in answer.topic_partitions if each.error), None)
            if failed:
                errors[group] = explained(failed, group=group)
            else:
                found[group] = _committed(answer.topic_partitions)
        return rights.LOOK.told(Results(found, errors), self._user)

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """Both bounds of each partition, both asked at once."""
        self._begin()
        starts = self._start_list_offsets(partitions, EARLIEST)
        ends = self._start_list_offsets(partitions, LATEST, read_committed=read_committed)
        first, errors = self._collect_offsets(starts)
        last, more_errors = self._collect_offsets(ends)
        both = {key: LogOffsets(first[key], last[key]) for key in first if key in last}
        return rights.LOOK.told(Results(both, more_errors | errors), self._user)

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """librdkafka answers -1 where there is no such record."""
        self._begin()
        if timestamp_ms < MAX_TIMESTAMP:
            raise UnsupportedError(_TOO_LITTLE.format(what="asking for marks of tiered storage", why=self._why))
        spec = NEWEST if timestamp_ms == MAX_TIMESTAMP else OffsetSpec.for_timestamp(timestamp_ms)
        found, errors = self._collect_offsets(self._start_list_offsets(partitions, spec))
        offsets = {key: None if offset < 0 else offset for key, offset in found.items()}
        return rights.LOOK.told(Results(offsets, errors), self._user)

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        """With a consumer that is in no group."""
        found = self.read_records([Span(*place) for place in places])
        times = {span[:2]: records[0].timestamp_ms if records else None for span, records in found.values.items()}
        return Results(times, {span[:2]: error for span, error in found.errors.items()})

    def read_records(self, spans: Sequence[Span]) -> Results[Span, tuple[Record, ...]]:
        """With a consumer that is in no group."""
        return rights.READ.told(read_spans(self._properties, spans, self._deadline()), self._user)

    def list_commit_times(self, wanted: Mapping[str, Collection[TopicPartition]]) -> GroupResults[Mapping[TopicPartition, int]]:
        """From the end of the offsets topic, with a consumer that is in no group."""

        count = self.list_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC, 0)
        return rights.READ.told(commit_times(self._properties, wanted, count, self._deadline()), self._user)

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions."""
        self._begin()
        found = self._calls.blocking(lambda seconds: self._calls.client.list_topics(timeout=seconds)).topics
        names = sorted(found) if topics is None else sorted(set(topics) & set(found))
        return {name: len(found[name].partitions) for name in names if not found[name].error}

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG002
        """None: librdkafka's Metadata has no ids."""
        return {}

    def alter_offsets(self, group_id: str, offsets: Committed) -> PartitionResults[None]:
        """A group with members is NON_EMPTY_GROUP; the broker itself says UNKNOWN_MEMBER_ID, which tells nobody anything."""
        return dict(self.alter_offsets_of({group_id: offsets})).get(group_id, Results())

    def alter_offsets_of(self, wanted: Mapping[str, Committed]) -> Iterator[tuple[str, PartitionResults[None]]]:
        """One request a group, all in flight together; what a coordinator is not ready for is asked again while there is time."""
        self._begin()
        pending = {group_id: offsets for group_id, offsets in wanted.items() if offsets}
        found: dict[str, PartitionResults[None]] = {}
        while pending:
            again: dict[str, Committed] = {}
            for group_id, answered in self._alter(pending):
                known = found.get(group_id, Results())
                errors = {key: error for key, error in known.errors.items() if key not in pending[group_id]}
                found[group_id] = Results({**known.values, **answered.values}, {**errors, **answered.errors})
                not_yet = [key for key, error in answered.errors.items() if error.code in _NOT_YET]
                if not_yet:
                    again[group_id] = {key: wanted[group_id][key] for key in not_yet}
                else:
                    yield group_id, rights.COMMIT.told(found[group_id], self._user)
            if again and not self._calls.pause():
                yield from ((group_id, rights.COMMIT.told(found[group_id], self._user)) for group_id in again)
                return
            pending = again

    def _alter(self, wanted: Mapping[str, Committed]) -> Iterator[tuple[str, PartitionResults[None]]]:
        futures: dict[str, Future[Any]] = {}
        for group_id, offsets in wanted.items():
            asked = [to_commit(partition, offset) for partition, offset in offsets.items()]
            request = [ConsumerGroupTopicPartitions(group_id, asked)]
            futures |= self._calls.client.alter_consumer_group_offsets(request, **_LONG)
        for group_id in self._calls.as_completed(futures):
            found, failed = self._collect({group_id: futures[group_id]})
            if group_id in failed:
                yield group_id, Results({}, dict.fromkeys(wanted[group_id], failed[group_id]))
            else:
                yield group_id, _alter_results(group_id, found[group_id].topic_partitions)

    def check_supports(self, change: Needs) -> None:
        """Raise `UnsupportedError` for what confluent-kafka has no call for."""
        if change in _NO_CALL:
            raise UnsupportedError(_TOO_LITTLE.format(what=_NO_CALL[change], why=self._why))

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """Raise `UnsupportedError`."""
        del group_id, partitions
        self.check_supports(rights.DELETE_OFFSETS)
        return Results()

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""
        self._begin()
        if not group_ids:
            return Results()
        futures = self._calls.client.delete_consumer_groups(list(dict.fromkeys(group_ids)), **_LONG)
        values, errors = self._collect(futures)
        return rights.DELETE_GROUP.told(Results(dict.fromkeys(values), errors), self._user)

    def remove_members(
        self, group_id: str, *, member_ids: Sequence[str] = (), group_instance_ids: Sequence[str] = (), reason: str | None = None
    ) -> GroupResults[None]:
        """Raise `UnsupportedError`."""
        del group_id, member_ids, group_instance_ids, reason
        self.check_supports(rights.REMOVE_MEMBERS)
        return Results()

    def close(self) -> None:
        """Safe to call twice."""
        self._calls.close()

    def _explain_missing(self, groups: Collection[str]) -> dict[str, ItemError]:
        """The old listing of librdkafka has groups of every type, though it does not tell of which."""
        if not groups:
            return {}
        there = {each.id for each in self._calls.blocking(self._list_groups_of_every_type)}
        return {
            group: other_type(group, "share or streams group")
            if group in there
            else item_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group)
            for group in groups
        }

    def _list_groups_of_every_type(self, timeout_s: float) -> Any:
        """Deprecated in favour of a call that leaves such groups out."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._calls.client.list_groups(timeout=timeout_s)

    def _collect(self, futures: Mapping[str, Future[V]]) -> tuple[dict[str, V], dict[str, ItemError]]:
        """Results and errors by group. Errors of the connection are raised."""
        self._calls.wait(futures.values())
        return results_of_calls(futures, lambda group: {"group": group})

    def _start_list_offsets(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, *, read_committed: bool = False
    ) -> Mapping[ConfluentPartition, Future[Any]]:
        if not partitions:
            return {}
        asked = {ConfluentPartition(each.topic, each.partition): spec for each in dict.fromkeys(partitions)}
        level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        found: Mapping[ConfluentPartition, Future[Any]] = self._calls.client.list_offsets(asked, isolation_level=level, **_LONG)
        return found

    def _collect_offsets(
        self, futures: Mapping[ConfluentPartition, Future[Any]]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ItemError]]:
        self._calls.wait(futures.values())
        by_partition = {TopicPartition(key.topic, key.partition): future for key, future in futures.items()}
        values, errors = results_of_calls(by_partition, lambda partition: {"partition": partition})
        return {partition: found.offset for partition, found in values.items()}, errors


def _committed(found: Iterable[ConfluentPartition]) -> Committed:
    by_partition = {TopicPartition(each.topic, each.partition): committed(each) for each in found if each.offset >= 0}
    return dict(sorted(by_partition.items()))


def _alter_results(group_id: str, answered: Sequence[ConfluentPartition]) -> PartitionResults[None]:
    values: dict[TopicPartition, None] = {}
    errors: dict[TopicPartition, ItemError] = {}
    for each in answered:
        partition = TopicPartition(each.topic, each.partition)
        if each.error is None:
            values[partition] = None
        elif error_code(each.error) in _ACTIVE:
            errors[partition] = ItemError(ErrorCode.NON_EMPTY_GROUP, ACTIVE_GROUP.format(group=group_id))
        else:
            errors[partition] = explained(each.error, group=group_id, partition=partition)
    return Results(values, errors)


OFFSETS_TOPIC = "__consumer_offsets"
FIRST_BLOCK = 2_000
"""Records from the end that are read first; each block before it is twice as long."""

_POLL_S = 0.1
_AT_ONCE = 1_000


def commit_times(
    properties: Mapping[str, str], wanted: Mapping[str, Collection[TopicPartition]], partition_count: int, deadline: Deadline
) -> GroupResults[Mapping[TopicPartition, int]]:
    """Return the time of the latest commit, in milliseconds, of each group on each of its partitions.

    A commit that the log no longer has is left out. Groups whose partition could not be read in time, or at all, are errors.
    ``partition_count`` is how many partitions the offsets topic has.

    Raises:
        NotFoundError: this user sees no offsets topic.
        KgctlError: no broker takes the connection.
    """
    if not partition_count:
        raise NotFoundError(f"the topic {OFFSETS_TOPIC}, where commits are kept, is not there, or this user may not see it")
    by_partition: dict[int, set[str]] = {}
    for group_id in wanted:
        by_partition.setdefault(partition_for(group_id, partition_count), set()).add(group_id)
    reader = _CommitReader(properties, deadline)
    try:
        for number, groups in sorted(by_partition.items()):
            reader.read(number, {OffsetCommitKey(group, *each) for group in groups for each in wanted[group]}, groups)
    finally:
        reader.close()
    return Results(reader.values, reader.errors)


class _CommitReader(OutsideReader):
    """Reads one partition after the other, each from its end backwards until every commit that is asked for has been seen."""

    def __init__(self, properties: Mapping[str, str], deadline: Deadline) -> None:
        super().__init__(properties, {"isolation.level": "read_committed"})
        self.values: dict[str, dict[TopicPartition, int]] = {}
        self.errors: dict[str, ItemError] = {}
        self._deadline = deadline

    def read(self, number: int, missing: set[OffsetCommitKey], groups: Collection[str]) -> None:
        """Read until all records are there, or the time is up."""
        partition, seen = TopicPartition(OFFSETS_TOPIC, number), dict.fromkeys(groups, False)
        self.values |= {group: {} for group in seen}
        try:
            start, end = self._consumer.get_watermark_offsets(ConfluentPartition(*partition), self._deadline.seconds_left())
            size = FIRST_BLOCK
            while missing and end > start:
                block = max(start, end - size)
                missing -= self._newest(partition, block, end, missing)
                end, size = block, size * 2
        except _NotRead as failed:
            error = failed.error
        except Exception as failed:  # noqa: BLE001 - librdkafka's, whose argument says what
            error = explained(failed.args[0], partition=partition) if isinstance(failed.args[0], KafkaError) else _late()
        else:
            return
        self.errors |= dict.fromkeys(groups, error)
        if self.failure:
            raise self.failure

    def _newest(self, partition: TopicPartition, start: int, end: int, missing: set[OffsetCommitKey]) -> set[OffsetCommitKey]:
        """The keys that the block has; those with a commit, and no tombstone after it, get their time."""
        found: dict[OffsetCommitKey, int | None] = {}
        for message in self._block(partition, start, end):
            key = decode_key(message.key() or b"\0\0")
            if isinstance(key, OffsetCommitKey) and key in missing:
                value = decode_value(key, message.value())
                found[key] = value.commit_timestamp_ms if isinstance(value, OffsetCommitValue) else None
        for key, time_ms in found.items():
            if time_ms is not None:
                self.values[key.group][TopicPartition(key.topic, key.partition)] = time_ms
        return set(found)

    def _block(self, partition: TopicPartition, start: int, end: int) -> Iterator[Message]:
        self._consumer.assign([ConfluentPartition(*partition, start)])
        while not self._deadline.is_over:
            for message in self._consumer.consume(_AT_ONCE, _POLL_S):
                error = message.error()
                if error is None and (message.offset() or 0) < end:
                    yield message
                elif error is None or error.code() == KafkaError._PARTITION_EOF:
                    return
                else:
                    raise _NotRead(explained(error, partition=partition))
            if self.failure:
                raise self.failure
            if self._is_behind(partition, end):
                return
        raise _NotRead(_late())

    def _is_behind(self, partition: TopicPartition, end: int) -> bool:
        (at,) = self._consumer.position([ConfluentPartition(*partition)])
        return bool(at.offset >= end)


class _NotRead(Exception):  # noqa: N818 - is caught here
    def __init__(self, error: ItemError) -> None:
        self.error = error


def _late() -> ItemError:
    return ItemError(ErrorCode.REQUEST_TIMED_OUT, f"{OFFSETS_TOPIC} was not read in time (--timeout)")
