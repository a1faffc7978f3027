"""A live cluster: confluent-kafka for what changes groups, kgctl's own connection for what reads them and for what confluent
lacks.

Why reading does not go through confluent-kafka although it could, in part: it drops share, streams and Connect groups from a
listing, shows the states of the consumer protocol as UNKNOWN and a share group as a missing one, has no epochs, asks one
group a request, can abort the process (`kgctl.admin.confluent.calls`), and its import alone costs a third of the time that
``describe group`` may take. Where kgctl's own connection does not cover the login (GSSAPI, PKCS12 key stores),
all goes through confluent-kafka, and `connect` says what is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from kgctl.admin.client import Place, Record
from kgctl.admin.protocol import groups
from kgctl.admin.protocol.groups import describe_groups, explained, list_groups, remove_members
from kgctl.admin.protocol.offsets import delete_offsets, list_committed_offsets, list_log_offsets, list_offsets_at, list_topics
from kgctl.admin.results import (
    COMMIT,
    DELETE_GROUP,
    DELETE_OFFSETS,
    LOOK,
    REMOVE_MEMBERS,
    GroupResults,
    ItemError,
    PartitionResults,
    Results,
    Sight,
)
from kgctl.errors import UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    OffsetAndMetadata,
    TopicPartition,
)
from kgctl.wire.cluster import Cluster, Failure, ask_coordinators
from kgctl.wire.deadline import Deadline
from kgctl.wire.settings import WireSettings

if TYPE_CHECKING:
    from kgctl.admin.confluent.admin import ConfluentGroupAdmin

K = TypeVar("K", bound=Hashable)

_SEEMS_MISSING = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INCONSISTENT_GROUP_PROTOCOL})


class LiveGroupAdmin:
    """`kgctl.admin.client.GroupAdmin` of a cluster. Nothing is contacted before the first call."""

    def __init__(self, properties: Mapping[str, str], timeout_ms: int) -> None:
        self._properties = properties
        self._timeout_ms = timeout_ms
        settings = WireSettings.from_properties(properties)
        self._user = settings.sasl.username if settings.sasl else None
        self._cluster = Cluster(settings)

    @cached_property
    def _confluent(self) -> ConfluentGroupAdmin:
        from kgctl.admin.confluent.admin import ConfluentGroupAdmin

        return ConfluentGroupAdmin(self._properties, self._timeout_ms)

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
        """A share or streams group has the error INCONSISTENT_GROUP_PROTOCOL."""
        return LOOK.told(describe_groups(self._cluster, group_ids, self._deadline()), self._user)

    def list_committed_offsets(
        self, group_ids: Sequence[str], *, require_stable: bool = False
    ) -> GroupResults[Mapping[TopicPartition, OffsetAndMetadata]]:
        """Fifty groups a request."""
        found = list_committed_offsets(self._cluster, group_ids, self._deadline(), require_stable=require_stable)
        return LOOK.told(found, self._user)

    def list_log_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """Each leader is asked for all its partitions at once."""
        found = list_log_offsets(self._cluster, partitions, self._deadline(), read_committed=read_committed)
        return LOOK.told(found, self._user)

    def list_offsets_at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> PartitionResults[int | None]:
        """None where no record is as new as that."""
        return LOOK.told(list_offsets_at(self._cluster, partitions, timestamp_ms, self._deadline()), self._user)

    def list_record_times(self, places: Sequence[Place]) -> Results[Place, int | None]:
        """Through librdkafka, which knows every compression."""
        return self._confluent.list_record_times(places)

    def list_records(self, places: Sequence[Place]) -> Results[Place, Record | None]:
        """Through librdkafka, which knows every compression."""
        return self._confluent.list_records(places)

    def list_commit_times(self, wanted: Mapping[str, Collection[TopicPartition]]) -> GroupResults[Mapping[TopicPartition, int]]:
        """Through librdkafka, as record times."""
        return self._confluent.list_commit_times(wanted)

    def list_topics(self, topics: Sequence[str] | None = None) -> Mapping[str, int]:
        """Topic -> number of partitions."""
        return list_topics(self._cluster, topics, self._deadline())

    def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PartitionResults[None]:
        """A group with members is NON_EMPTY_GROUP on each partition."""
        return dict(self.alter_offsets_of({group_id: offsets})).get(group_id, Results())

    def alter_offsets_of(
        self, wanted: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]
    ) -> Iterator[tuple[str, PartitionResults[None]]]:
        """All groups at the same time."""
        unready = self._hand_over(list(wanted))
        for group_id, error in unready.items():
            yield group_id, COMMIT.told(Results({}, dict.fromkeys(wanted[group_id], error)), self._user)
        ready = {group_id: offsets for group_id, offsets in wanted.items() if group_id not in unready}
        for group_id, results in self._confluent.alter_offsets_of(ready):
            yield group_id, self._naming_type(group_id, results)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> PartitionResults[None]:
        """GROUP_SUBSCRIBED_TO_TOPIC where a member still reads the topic."""
        results = delete_offsets(self._cluster, group_id, partitions, self._deadline())
        return self._naming_type(group_id, DELETE_OFFSETS.told(results, self._user))

    def delete_groups(self, group_ids: Sequence[str]) -> GroupResults[None]:
        """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND are errors of the one group."""
        unready = self._hand_over(group_ids)
        results = self._confluent.delete_groups([group for group in group_ids if group not in unready])
        return Results(results.values, {**results.errors, **DELETE_GROUP.told_errors(unready, self._user)})

    def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Sequence[str] = (),
        group_instance_ids: Sequence[str] = (),
        reason: str | None = None,
    ) -> GroupResults[None]:
        """By member id or, for static members, by group instance id."""
        results = remove_members(
            self._cluster,
            group_id,
            self._deadline(),
            member_ids=member_ids,
            group_instance_ids=group_instance_ids,
            reason=reason,
        )
        return self._naming_type(group_id, REMOVE_MEMBERS.told(results, self._user))

    def close(self) -> None:
        """Safe to call twice."""
        self._cluster.close()
        if "_confluent" in self.__dict__:
            self._confluent.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _deadline(self) -> Deadline:
        return Deadline(self._timeout_ms)

    def _naming_type(self, group_id: str, results: Results[K, None]) -> Results[K, None]:
        """To brokers a group of another type is one that does not exist; the errors say what it is."""
        if not any(error.code in _SEEMS_MISSING for error in results.errors.values()):
            return results
        described = describe_groups(self._cluster, [group_id], self._deadline()).errors.get(group_id)
        if described is None or described.code is not ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return results
        errors = {key: described if error.code in _SEEMS_MISSING else error for key, error in results.errors.items()}
        return Results(results.values, errors)

    def _hand_over(self, group_ids: Sequence[str]) -> dict[str, ItemError]:
        """Before a change is handed to librdkafka: the groups whose coordinator is not to be had, with the reason.

        Raises when none is: a broker that hangs is met here, where that harms nothing, and before anything is changed. Both
        clients together have the time of one call.
        """
        deadline = self._deadline()
        try:
            answers = ask_coordinators(self._cluster, group_ids, lambda _, groups: dict.fromkeys(groups), deadline)
        except UnreachableError as error:
            error.nothing_sent = True
            raise
        self._confluent.share(deadline)
        failed = {group: answer for group, answer in answers.items() if isinstance(answer, Failure)}
        return {group: replace(explained(answer, group=group), nothing_sent=True) for group, answer in failed.items()}
