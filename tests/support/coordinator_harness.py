"""The coordinator in tests, a short method for each request; `tests.support.coordinator_driver` says what every call checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.group import Group
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import TimerKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ConsumerSubscription, MetadataImage, TopicMetadata, TopicPartition
from kgctl.model.requests import (
    DeleteGroups,
    DeleteGroupsResult,
    DescribedGroup,
    DescribeGroups,
    DescribeGroupsResult,
    Done,
    EndTransaction,
    ForceCompleteRebalance,
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    JoinGroupResult,
    JoinProtocol,
    LeaveGroup,
    LeaveGroupResult,
    ListGroups,
    ListGroupsResult,
    MemberIdentity,
    OffsetCommit,
    OffsetCommitPartition,
    OffsetDelete,
    OffsetDeleteResult,
    OffsetFetch,
    OffsetFetchResult,
    PartitionErrors,
    Request,
    SyncGroup,
    SyncGroupResult,
    TopicsChanged,
    TxnOffsetCommit,
    UpdateGroupConfig,
)
from kgctl.serde.consumer_protocol import encode_subscription
from tests.support.coordinator_driver import CoordinatorDriver

R = TypeVar("R")


def subscription(*topics: str) -> bytes:
    """Metadata of a consumer that subscribes to these topics."""
    return encode_subscription(ConsumerSubscription(topics))


def topic_partition(text: str) -> TopicPartition:
    """``topic-number``."""
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def image_of(topics: Mapping[str, int], version: int = 1) -> MetadataImage:
    """Topics with these numbers of partitions; a topic's id follows from its name."""
    entries = {name: TopicMetadata(name, uuid5(NAMESPACE_URL, name), partitions) for name, partitions in topics.items()}
    return MetadataImage(entries, version)


@dataclass(frozen=True)
class Call:
    """One request: whether it waits, and what it was answered."""

    harness: CoordinatorHarness
    request_id: int

    @property
    def is_parked(self) -> bool:
        """Whether there is no answer yet."""
        return self.request_id not in self.harness.driver.replies

    @property
    def answered_at_ms(self) -> int:
        """When it was answered."""
        return self.harness.driver.replies[self.request_id][0]

    def result(self, expected_type: type[R]) -> R:
        """The answer."""
        assert not self.is_parked, "the request is parked"
        result = self.harness.driver.replies[self.request_id][1]
        assert isinstance(result, expected_type)
        return result

    @property
    def join(self) -> JoinGroupResult:
        """The answer to a join."""
        return self.result(JoinGroupResult)

    @property
    def sync(self) -> SyncGroupResult:
        """The answer to a sync."""
        return self.result(SyncGroupResult)

    @property
    def error(self) -> ErrorCode:
        """The error of the answer."""
        error = self.result(object).error  # type: ignore[attr-defined]  # not every result has one
        assert isinstance(error, ErrorCode)
        return error


class CoordinatorHarness:
    """A coordinator at time 0 with no groups. Member ids are the prefix and a number: ``c-1``, ``c-2``."""

    def __init__(self, config: Mapping[str, str] | None = None, topics: Mapping[str, int] | None = None) -> None:
        numbers = count(1)
        self._request_ids = count(1)
        self.driver = CoordinatorDriver(
            CoordinatorConfig.from_properties(config or {}),
            lambda prefix: f"{prefix}-{next(numbers)}",
            image_of(topics or {}),
        )

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.driver.now_ms

    @property
    def shard(self) -> Shard:
        """The coordinator's state."""
        return self.driver.coordinator.shard

    @property
    def log(self) -> list[AppendRecord]:
        """Everything appended so far."""
        return self.driver.log

    def group(self, group_id: str = "g") -> ClassicGroup:
        """A classic group."""
        group = self.shard.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def any_group(self, group_id: str) -> Group | None:
        """A group of any type."""
        return self.shard.groups.get(group_id)

    def sleep_ms(self, duration_ms: int) -> None:
        """Let time pass; timers fire at their own times."""
        self.driver.run_to(self.now_ms + duration_ms)

    def sleep_to_next_deadline(self) -> None:
        """Let time pass until the next timer has fired."""
        self.driver.run_to(self.driver.coordinator.next_deadline_ms() or self.now_ms)

    def expect_timer(self, key: TimerKey, at_ms: int | None) -> None:
        """The timer fires at this time; None: it is not armed."""
        assert self.shard.timers.deadline_ms(key) == at_ms

    def send(self, make: type[Request], **fields: Any) -> Call:
        """Any request."""
        request_id = next(self._request_ids)
        self.driver.request(make(request_id=request_id, **fields))
        self.driver.run_to(self.now_ms)
        return Call(self, request_id)

    # Membership.

    def join(
        self,
        member_id: str = "",
        *,
        group: str | None = "g",
        instance: str | None = None,
        protocols: Iterable[str] = ("range",),
        topics: Iterable[str] = ("t",),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int | None = 30_000,
        version: int = 9,
    ) -> Call:
        """JoinGroup; every protocol has the same metadata."""
        metadata = subscription(*topics)
        return self.send(
            JoinGroup,
            api_version=version,
            client_id="c",
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=tuple(JoinProtocol(name=name, metadata=metadata) for name in protocols),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
        )

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str | None = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> Call:
        """SyncGroup."""
        return self.send(
            SyncGroup,
            group_id=group,
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=tuple((assignments or {}).items()),
        )

    def heartbeat(self, member_id: str, generation: int, *, group: str | None = "g", instance: str | None = None) -> ErrorCode:
        """Heartbeat."""
        call = self.send(Heartbeat, group_id=group, member_id=member_id, generation_id=generation, group_instance_id=instance)
        return call.result(HeartbeatResult).error

    def leave(self, *members: str | MemberIdentity, group: str | None = "g") -> LeaveGroupResult:
        """LeaveGroup of these member ids or identities."""
        identities = tuple(MemberIdentity(member_id=m) if isinstance(m, str) else m for m in members)
        return self.send(LeaveGroup, group_id=group, members=identities).result(LeaveGroupResult)

    def stable_group(self, size: int = 1, *, group: str = "g", instances: Iterable[str] = (), **fields: Any) -> list[str]:
        """Bring members into a new group, static ones first, until it is Stable; the leader's id comes first."""
        joins = [self.join(group=group, instance=instance, **fields) for instance in instances]
        joins += [self.join(group=group, version=3, **fields) for _ in range(size - len(joins))]
        self.sleep_ms(self.driver.config.group_initial_rebalance_delay_ms * 2)
        ids = [call.join.member_id for call in joins]
        generation = self.group(group).generation_id
        leader = joins[0].join.leader
        self.sync(leader, generation, {member_id: b"A" + member_id.encode() for member_id in ids}, group=group)
        for member_id in ids:
            if member_id != leader:
                self.sync(member_id, generation, group=group)
        assert self.group(group).state == "Stable"
        return sorted(ids, key=lambda member_id: member_id != leader)

    # Offsets.

    def commit(
        self,
        offsets: Mapping[str, int],
        member_id: str = "",
        generation: int = -1,
        *,
        group: str | None = "g",
        version: int = 9,
        metadata: str | None = "",
        **fields: Any,
    ) -> dict[str, ErrorCode]:
        """OffsetCommit of ``topic-number`` -> offset."""
        call = self.send(
            OffsetCommit,
            api_version=version,
            group_id=group,
            member_id=member_id,
            generation_id=generation,
            partitions=_committed(offsets, metadata),
            **fields,
        )
        return _errors(call.result(PartitionErrors))

    def txn_commit(
        self, producer_id: int, offsets: Mapping[str, int], member_id: str = "", generation: int = -1, *, group: str | None = "g"
    ) -> dict[str, ErrorCode]:
        """TxnOffsetCommit."""
        call = self.send(
            TxnOffsetCommit,
            group_id=group,
            producer_id=producer_id,
            member_id=member_id,
            generation_id=generation,
            partitions=_committed(offsets, ""),
        )
        return _errors(call.result(PartitionErrors))

    def end_txn(self, producer_id: int, *, committed: bool = True) -> None:
        """The transaction's marker."""
        assert self.send(EndTransaction, producer_id=producer_id, committed=committed).result(Done) == Done()

    def fetch(self, *partitions: str, group: str | None = "g", **fields: Any) -> OffsetFetchResult:
        """OffsetFetch of these partitions, of all without any."""
        wanted = tuple(map(topic_partition, partitions)) if partitions else None
        return self.send(OffsetFetch, group_id=group, partitions=wanted, **fields).result(OffsetFetchResult)

    def offsets(self, group: str = "g") -> dict[str, int]:
        """What is committed."""
        return {str(fetched.partition): fetched.offset for fetched in self.fetch(group=group).offsets}

    def delete_offsets(self, *partitions: str, group: str | None = "g") -> OffsetDeleteResult:
        """OffsetDelete."""
        wanted = tuple(map(topic_partition, partitions))
        return self.send(OffsetDelete, group_id=group, partitions=wanted).result(OffsetDeleteResult)

    # Administration.

    def describe(self, group: str | None = "g", version: int = 6) -> DescribedGroup:
        """DescribeGroups of one group."""
        call = self.send(DescribeGroups, api_version=version, group_ids=(group,))
        return call.result(DescribeGroupsResult).groups[0]

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[tuple[str, str, str, str]]:
        """ListGroups: id, protocol type, state, type of each."""
        call = self.send(ListGroups, states_filter=tuple(states), types_filter=tuple(types))
        return [(g.group_id, g.protocol_type, g.state, g.type) for g in call.result(ListGroupsResult).groups]

    def delete_groups(self, *groups: str | None) -> list[ErrorCode]:
        """DeleteGroups."""
        return [error for _, error in self.send(DeleteGroups, group_ids=groups).result(DeleteGroupsResult).groups]

    def change_topics(self, topics: Mapping[str, int]) -> None:
        """The cluster has these topics from now on."""
        self.send(TopicsChanged, image=image_of(topics, self.driver.image.version + 1))

    def update_config(self, config: Mapping[str, str], group: str = "g") -> ErrorCode:
        """Per-group settings."""
        return self.send(UpdateGroupConfig, group_id=group, config=config).error

    def force_complete(self, group: str = "g") -> ErrorCode:
        """ForceCompleteRebalance."""
        return self.send(ForceCompleteRebalance, group_id=group).error


def _committed(offsets: Mapping[str, int], metadata: str | None) -> tuple[OffsetCommitPartition, ...]:
    return tuple(
        OffsetCommitPartition(topic=at.topic, partition=at.partition, offset=offset, metadata=metadata)
        for at, offset in ((topic_partition(text), offset) for text, offset in offsets.items())
    )


def _errors(result: PartitionErrors) -> dict[str, ErrorCode]:
    return {str(partition): error for partition, error in result.partitions}
