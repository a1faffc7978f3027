"""Share groups on the server: a manager for each broker, and what the group coordinator has done for it.

The coordinator never waits: where it needs the state of share partitions or the ends of logs it makes a call, which is performed
here, and its outcome goes back to it as an event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar
from uuid import UUID

from kgctl.coordinator.config import GroupConfig
from kgctl.errors import NotFoundError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import Request
from kgctl.model.share import PartitionState, SharePartitionKey
from kgctl.model.share_requests import (
    ByTopicId,
    DeleteShareState,
    GroupStateDeleted,
    InitializeShareState,
    LatestOffsetsListed,
    ListLatestOffsets,
    ReadShareStateSummary,
    ShareGroupPartitions,
    ShareStateCall,
    ShareStateDeleted,
    ShareStateError,
    ShareStateInitialized,
    ShareStateSummary,
    ShareStateSummaryRead,
)
from kgctl.server.cluster import Broker, Catalog, Cluster
from kgctl.server.partition_data import PartitionData
from kgctl.server.runtime import EVENT_ID, Clock
from kgctl.server.share.manager import SharePartitionManager
from kgctl.server.share.persister import UNWRITTEN, Persister
from kgctl.server.share.sessions import TopicIdPartition
from kgctl.share.state.shard import StateRefusal

V = TypeVar("V")


class ShareGroups:
    """Everything of share groups that is not the group coordinator's. ``settings`` are those of a group."""

    def __init__(
        self,
        data: PartitionData,
        clock: Clock,
        persister: Persister,
        *,
        settings: Callable[[str], GroupConfig],
        cluster: Cluster,
        catalog: Catalog,
        max_sessions: int,
    ) -> None:
        self._data = data
        self._clock = clock
        self.persister = persister
        self._settings = settings
        self._cluster = cluster
        self._catalog = catalog
        self._max_sessions = max_sessions
        self._managers: dict[int, SharePartitionManager] = {}

    def of(self, broker: Broker) -> SharePartitionManager:
        """What this broker has of share groups."""
        found = self._managers.get(broker.node_id)
        if found is None:
            found = self._managers[broker.node_id] = SharePartitionManager(
                self._data,
                self._clock,
                self.persister,
                settings=self._settings,
                leads=partial(self._leads, broker),
                max_sessions=self._max_sessions,
            )
        return found

    def _leads(self, broker: Broker, partition: TopicIdPartition) -> TopicPartition | None:
        topic = self._catalog.by_id(partition.topic_id)
        if topic is None or not 0 <= partition.partition < topic.partition_count:
            return None
        leads = self._cluster.leader(topic.name, partition.partition) is broker
        return TopicPartition(topic.name, partition.partition) if leads else None

    def topics_changed(self) -> None:
        """Forget partitions that are gone, and what is kept of them."""
        self.persister.topics_changed()
        for manager in self._managers.values():
            manager.topics_changed()

    def broker_stopped(self, broker: Broker) -> None:
        """Forget what a broker had in memory, as it does when it ends."""
        manager = self._managers.pop(broker.node_id, None)
        if manager is not None:
            manager.stop()

    def clock_moved(self) -> None:
        """Look at what is due now that the clock shows another time."""
        for manager in self._managers.values():
            manager.fire_due()

    def stop(self) -> None:
        """Let fetches end and look at the time no more."""
        for manager in self._managers.values():
            manager.stop()

    def perform(self, call: ShareStateCall, tell: Callable[[Request], None]) -> None:
        """Do what the group coordinator wants done, and tell it what came of it when that is durable."""
        outcome = self._outcome(call)
        self.persister.after_writes(lambda lost: tell(outcome if lost is None else _lost(call, lost)))

    def refuse(self, call: ShareStateCall, tell: Callable[[Request], None]) -> None:
        """Tell the group coordinator that nothing was done, as its own records could not be written."""
        tell(_lost(call, UNWRITTEN))

    def _outcome(self, call: ShareStateCall) -> Request:
        match call:
            case InitializeShareState():
                starts = {
                    topic.topic_id: {each.partition: (each.state_epoch, each.start_offset) for each in topic.partitions}
                    for topic in call.topics
                }
                found = self.persister.initialize(call.group_id, starts)
                return ShareStateInitialized(request_id=EVENT_ID, call=call, topics=_errors(found))
            case DeleteShareState():
                groups = tuple(
                    GroupStateDeleted(group.group_id, _errors(self.persister.delete(_keys(group)))) for group in call.groups
                )
                return ShareStateDeleted(request_id=EVENT_ID, call=call, groups=groups)
            case ReadShareStateSummary():
                wanted = _keys(ShareGroupPartitions(call.group_id, call.topics))
                summaries = {key: _summary(key, state) for key, state in self.persister.read_summary(wanted).items()}
                return ShareStateSummaryRead(request_id=EVENT_ID, call=call, topics=_by_topic(summaries))
            case ListLatestOffsets():
                offsets = tuple(self._latest(partition) for partition in call.partitions)
                return LatestOffsetsListed(request_id=EVENT_ID, call=call, offsets=offsets)

    def _latest(self, partition: TopicPartition) -> tuple[TopicPartition, int, ErrorCode]:
        try:
            return partition, self._data.bounds(partition)[1], ErrorCode.NONE
        except NotFoundError:
            return partition, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _keys(group: ShareGroupPartitions) -> list[SharePartitionKey]:
    return [SharePartitionKey(group.group_id, topic_id, index) for topic_id, indexes in group.topics for index in indexes]


def _by_topic(found: Mapping[SharePartitionKey, V]) -> ByTopicId[V]:
    topics: dict[UUID, list[V]] = {}
    for key, value in found.items():
        topics.setdefault(key.topic_id, []).append(value)
    return tuple((topic_id, tuple(values)) for topic_id, values in topics.items())


def _errors(found: Mapping[SharePartitionKey, StateRefusal | None]) -> ByTopicId[ShareStateError]:
    return _by_topic({key: _error(key, refusal) for key, refusal in found.items()})


def _error(key: SharePartitionKey, refusal: StateRefusal | None) -> ShareStateError:
    return ShareStateError(key.partition) if refusal is None else ShareStateError(key.partition, refusal.error, refusal.message)


def _summary(key: SharePartitionKey, state: PartitionState | StateRefusal) -> ShareStateSummary:
    if isinstance(state, StateRefusal):
        return ShareStateSummary(key.partition, error=state.error, error_message=state.message)
    return ShareStateSummary(
        key.partition, state.state_epoch, state.start_offset, state.leader_epoch, state.delivery_complete_count
    )


def _lost(call: ShareStateCall, lost: StateRefusal) -> Request:
    """What is told of a call whose records could not be written."""
    match call:
        case InitializeShareState():
            return ShareStateInitialized(request_id=EVENT_ID, call=call, error=lost.error, error_message=lost.message)
        case DeleteShareState():
            groups = tuple(GroupStateDeleted(group.group_id, error=lost.error) for group in call.groups)
            return ShareStateDeleted(request_id=EVENT_ID, call=call, groups=groups)
        case ReadShareStateSummary():
            return ShareStateSummaryRead(request_id=EVENT_ID, call=call, error=lost.error)
        case ListLatestOffsets():
            offsets = tuple((partition, -1, lost.error) for partition in call.partitions)
            return LatestOffsetsListed(request_id=EVENT_ID, call=call, offsets=offsets)
