"""The group coordinator as a pure state machine: requests, records and the time go in, effects come out.

The driver owns the clock, the log and the connections. Its duties:

* perform the effects of each call in order: a `Reply` only when every `AppendRecord` before it in the list is durable;
* after each call look at `GroupCoordinator.next_deadline_ms`, which may be now, and call `GroupCoordinator.expire` when it has
  come (calling late is safe: timers fire at their own time, in order; `GroupCoordinator.handle` fires those that are due by
  itself, before the request);
* at start, feed every record of the log to `GroupCoordinator.replay`, then call `GroupCoordinator.loaded`;
* where records could not be written, call `GroupCoordinator.restore` and refuse the replies that stood behind them.

Routing only; the rules are in the modules that the tables name. Kafka: GroupCoordinatorService and GroupCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any
from uuid import UUID

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.handlers import on_session_timer
from kgctl.coordinator.classic.rebalance import (
    handle_force_complete_rebalance,
    on_join_timer,
    on_stuck_timer,
    on_sync_timer,
    rebalance_status,
    refuse_waiting,
    retire,
    wake,
)
from kgctl.coordinator.config import CoordinatorConfig, GroupConfig
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.heartbeat import handle_consumer_group_heartbeat
from kgctl.coordinator.consumer.subscription import handle_regex_resolved, on_topics_changed
from kgctl.coordinator.consumer.timers import CONSUMER_TIMERS, wake_group
from kgctl.coordinator.describe import (
    handle_consumer_group_describe,
    handle_delete_groups,
    handle_describe_groups,
    handle_list_groups,
    handle_share_group_describe,
    handle_share_state_deleted,
    listed_groups,
    reconciliation_status,
    statistics,
)
from kgctl.coordinator.effects import Effect, GroupFailed, refuse
from kgctl.coordinator.group import Group
from kgctl.coordinator.invariants import check_shard
from kgctl.coordinator.membership import handle_heartbeat, handle_join_group, handle_leave_group, handle_sync_group
from kgctl.coordinator.offset_handlers import (
    delete_offsets_of_topics,
    handle_end_transaction,
    handle_offset_commit,
    handle_offset_delete,
    handle_offset_fetch,
    handle_txn_offset_commit,
    on_deletion_timer,
    on_expiry_timer,
    start_expiry_cycle,
)
from kgctl.coordinator.shard import Shard, apply_marker, load_record
from kgctl.coordinator.share.deletion import drop_topics, handle_delete_share_group_offsets
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.share.heartbeat import SHARE_TIMERS, handle_share_group_heartbeat, wake_share_group
from kgctl.coordinator.share.offsets import (
    handle_alter_share_group_offsets,
    handle_describe_share_group_offsets,
    handle_latest_offsets_listed,
    handle_share_state_initialized,
    handle_share_state_summary_read,
    initialized_partitions,
)
from kgctl.coordinator.share.partitions import SharePartitions
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.timers import STREAMS_TIMERS, wake_streams_group
from kgctl.coordinator.timers import Timer, TimerKind
from kgctl.errors import InvariantViolation, UsageError
from kgctl.model.coordinator_records import CoordinatorRecord, TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    CoordinatorStatistics,
    DeleteGroups,
    DescribeGroups,
    Done,
    EndTransaction,
    ForceCompleteRebalance,
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    LeaveGroup,
    ListedGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    RebalanceStatus,
    RegexResolved,
    Request,
    SyncGroup,
    TopicsChanged,
    TxnOffsetCommit,
    UpdateGroupConfig,
)
from kgctl.model.share_requests import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DescribeShareGroupOffsets,
    LatestOffsetsListed,
    ShareGroupDescribe,
    ShareGroupHeartbeat,
    ShareStateDeleted,
    ShareStateInitialized,
    ShareStateSummaryRead,
)
from kgctl.model.streams_requests import StreamsGroupDescribe, StreamsGroupHeartbeat
from kgctl.model.values import quick_enum


def handle_topics_changed(shard: Shard, request: TopicsChanged) -> None:
    """Take over the new image; offsets of topics that are gone, or that were created anew, go."""
    old, shard.image = shard.image, request.image
    gone = []
    for name, topic in old.topics.items():
        successor = request.image.topics.get(name)
        if successor is None or successor.topic_id != topic.topic_id:
            gone.append(topic)
    on_topics_changed(shard, old)
    if gone:
        delete_offsets_of_topics(shard, gone)
        drop_topics(shard, [topic.topic_id for topic in gone])
    shard.reply(request.request_id, Done())


def handle_update_group_config(shard: Shard, request: UpdateGroupConfig) -> None:
    """Set the group's own settings, all of them at once; a wrong one refuses them all."""
    try:
        config = GroupConfig.from_properties(request.config, shard.config)
    except UsageError:
        shard.reply(request.request_id, Done(error=ErrorCode.INVALID_CONFIG))
        return
    shard.group_configs[request.group_id] = config
    shard.reply(request.request_id, Done())


MAX_STRING_BYTES = 32_767
_MEMBER_ID_SUFFIX_BYTES = len("-00000000-0000-0000-0000-000000000000")
_PADDING = "-" * _MEMBER_ID_SUFFIX_BYTES
_SURELY_SHORT = (MAX_STRING_BYTES - _MEMBER_ID_SUFFIX_BYTES) // 4  # no UTF-8 character has more than four bytes


def fits_records(request: Request) -> bool:
    """Whether every name that ``request`` may put into a record fits; requests that write no names always do."""
    names = _NAMES.get(type(request))
    if names is not None:
        for name in names(request):
            if name is not None and len(name) > _SURELY_SHORT and not _fits(name):
                return False
    return True


def _fits(name: str) -> bool:
    return len(name.encode()) <= MAX_STRING_BYTES


def _names_of_join(request: JoinGroup) -> Iterable[str | None]:
    """A new member's id is its client id or instance id with a UUID behind it, and has to fit as well."""
    new_ids = (request.client_id + _PADDING, (request.group_instance_id or "") + _PADDING)
    return (request.group_id, request.member_id, request.protocol_type, *new_ids, *[one.name for one in request.protocols])


def _names_of_commit(request: OffsetCommit | TxnOffsetCommit) -> Iterable[str | None]:
    return (request.group_id, *{partition.topic: None for partition in request.partitions})


def _names_of_share_heartbeat(request: ShareGroupHeartbeat) -> Iterable[str | None]:
    return (request.group_id, request.member_id, request.rack_id, *(request.subscribed_topic_names or ()))


def _names_of_consumer_heartbeat(request: ConsumerGroupHeartbeat) -> Iterable[str | None]:
    return (request.group_id, request.member_id, request.subscribed_topic_regex)


def _names_of_streams_heartbeat(request: StreamsGroupHeartbeat) -> Iterable[str | None]:
    tags = (text for pair in request.client_tags or () for text in pair)
    endpoint = None if request.user_endpoint is None else request.user_endpoint.host
    return (request.group_id, request.member_id, request.rack_id, request.process_id, endpoint, *tags)


_NAMES: dict[type[Request], Callable[[Any], Iterable[str | None]]] = {
    JoinGroup: _names_of_join,
    OffsetCommit: _names_of_commit,
    TxnOffsetCommit: _names_of_commit,
    ConsumerGroupHeartbeat: _names_of_consumer_heartbeat,
    ShareGroupHeartbeat: _names_of_share_heartbeat,
    StreamsGroupHeartbeat: _names_of_streams_heartbeat,
}


# Most coordinators never have a streams group: what only its requests need is entered with the first of them.


def _streams_group_heartbeat(shard: Shard, request: StreamsGroupHeartbeat) -> None:
    from kgctl.coordinator.streams.heartbeat import handle_streams_group_heartbeat

    handle_streams_group_heartbeat(shard, request)


def _streams_group_describe(shard: Shard, request: StreamsGroupDescribe) -> None:
    from kgctl.coordinator.streams.describe import handle_streams_group_describe

    handle_streams_group_describe(shard, request)


Handler = Callable[[Shard, Any], None]

HANDLERS: dict[type[Request], Handler] = {
    JoinGroup: handle_join_group,
    SyncGroup: handle_sync_group,
    Heartbeat: handle_heartbeat,
    LeaveGroup: handle_leave_group,
    OffsetCommit: handle_offset_commit,
    TxnOffsetCommit: handle_txn_offset_commit,
    EndTransaction: handle_end_transaction,
    OffsetFetch: handle_offset_fetch,
    OffsetDelete: handle_offset_delete,
    DescribeGroups: handle_describe_groups,
    ListGroups: handle_list_groups,
    DeleteGroups: handle_delete_groups,
    ConsumerGroupHeartbeat: handle_consumer_group_heartbeat,
    ConsumerGroupDescribe: handle_consumer_group_describe,
    ShareGroupHeartbeat: handle_share_group_heartbeat,
    ShareGroupDescribe: handle_share_group_describe,
    DescribeShareGroupOffsets: handle_describe_share_group_offsets,
    AlterShareGroupOffsets: handle_alter_share_group_offsets,
    DeleteShareGroupOffsets: handle_delete_share_group_offsets,
    StreamsGroupHeartbeat: _streams_group_heartbeat,
    StreamsGroupDescribe: _streams_group_describe,
    ShareStateInitialized: handle_share_state_initialized,
    ShareStateDeleted: handle_share_state_deleted,
    ShareStateSummaryRead: handle_share_state_summary_read,
    LatestOffsetsListed: handle_latest_offsets_listed,
    TopicsChanged: handle_topics_changed,
    RegexResolved: handle_regex_resolved,
    UpdateGroupConfig: handle_update_group_config,
    ForceCompleteRebalance: handle_force_complete_rebalance,
}
"""Request -> the function that answers it."""

TIMERS: dict[TimerKind, Callable[[Shard, Timer], None]] = {
    TimerKind.SESSION: on_session_timer,
    TimerKind.JOIN: on_join_timer,
    TimerKind.SYNC: on_sync_timer,
    TimerKind.STUCK_REBALANCE: on_stuck_timer,
    TimerKind.EXPIRE_OFFSETS: on_expiry_timer,
    TimerKind.DELETE_OFFSETS: on_deletion_timer,
    **CONSUMER_TIMERS,
    **SHARE_TIMERS,
    **STREAMS_TIMERS,
}
"""Timer kind -> what happens when it fires."""

RETRY_MS = 10_000
"""After this a timer that failed is tried again."""

_NOT_IN_STORY = frozenset({Heartbeat, OffsetFetch, DescribeGroups, ListGroups, ConsumerGroupDescribe, DescribeShareGroupOffsets})
"""Requests that say nothing about why a group is as it is."""


@quick_enum
class _Phase(Enum):
    ACTIVE = "answers requests"
    LOADING = "reads its log"
    UNLOADED = "has given its groups up"


_ACTIVE = _Phase.ACTIVE


def _wake(shard: Shard, group: Group) -> None:
    if isinstance(group, ClassicGroup):
        wake(shard, group)
    elif isinstance(group, ConsumerGroup):
        wake_group(shard, group)
    elif isinstance(group, ShareGroup):
        wake_share_group(shard, group)
    elif isinstance(group, StreamsGroup):
        wake_streams_group(shard, group)


class GroupCoordinator:
    """All groups of one coordinator. See the module for the driver's duties.

    ``new_member_id(prefix)`` makes member ids: the prefix is the client id, or the instance id of a static member; it is "" for
    ids in the form of the consumer protocol. Times are milliseconds of one clock that does not go back. Protocol errors are
    values in results; an exception (`InvariantViolation`) is a bug, and has the group's recent story.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        new_member_id: Callable[[str], str],
        image: MetadataImage = MetadataImage(),  # noqa: B008  # frozen
        start_ms: int = 0,
    ) -> None:
        self._shard = Shard(config, new_member_id, image, start_ms)
        self._phase = _Phase.ACTIVE
        start_expiry_cycle(self._shard)

    @property
    def shard(self) -> Shard:
        """Return the state, for reading: tests, traces and tools look at it."""
        return self._shard

    def handle(self, request: Request, now_ms: int) -> list[Effect]:
        """Answer a request, after the timers that are due. The answer may come from a later call, when the request is parked."""
        shard = self._shard
        self._fire(now_ms)
        if self._phase is not _ACTIVE:
            self._turn_away(request)
            return shard.take_effects()
        if not fits_records(request):
            shard.reply(request.request_id, refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return shard.take_effects()
        kind = type(request)
        group_id = getattr(request, "group_id", None)
        if group_id is not None and kind not in _NOT_IN_STORY:
            shard.story.note(group_id, now_ms, "request", request)
        self._run(HANDLERS[kind], request, group_id)
        if group_id is not None and group_id not in shard.groups:
            shard.story.forget(group_id)
        return shard.take_effects()

    def next_deadline_ms(self) -> int | None:
        """When `expire` has to be called next; None if there is nothing to wait for."""
        return self._shard.timers.next_deadline_ms()

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire every timer whose deadline is not after ``now_ms``, in order of deadline, then of arming, each at its own time.

        A timer that fails is a `GroupFailed` among the effects and keeps no other from firing.
        """
        self._fire(now_ms)
        return self._shard.take_effects()

    def replay(self, record: CoordinatorRecord | TransactionMarker, *, producer_id: int | None = None) -> None:
        """Apply a record of the log, in the log's order; ``producer_id`` for transactional ones. Ends with `loaded`."""
        self._phase = _Phase.LOADING
        if isinstance(record, TransactionMarker):
            apply_marker(self._shard, record)
        else:
            load_record(self._shard, record, producer_id)

    def loaded(self, now_ms: int) -> list[Effect]:
        """The log is read: sessions start anew, the expiry cycle begins, requests are answered from now on."""
        shard = self._shard
        self._phase = _Phase.ACTIVE
        shard.now_ms = max(shard.now_ms, now_ms)
        for group in shard.groups.java_values():
            _wake(shard, group)
        start_expiry_cycle(shard)
        return shard.take_effects()

    def restore(self, lost: Mapping[str, bool], written: GroupCoordinator, now_ms: int) -> list[Effect]:
        """Make groups again what the log says of them: what was appended for them since could not be written.

        ``lost`` says for each group whether commits alone were lost: its members then notice nothing. Otherwise who is parked
        there is told to ask again (NOT_COORDINATOR), and sessions start anew, as after a move to another coordinator. Other
        groups stay as they are. ``written`` is a coordinator to which all was replayed that the log has of these groups; it is
        of no more use afterwards.
        """
        shard = self._shard
        shard.now_ms = max(shard.now_ms, now_ms)
        whole = {group_id for group_id, commits_only in lost.items() if not (commits_only and self._has_members(group_id))}
        armed = shard.timers.keys()
        for key in [key for key in armed if key.group_id in whole]:
            shard.disarm(key)
        for group_id in lost:
            shard.offsets.forget_group(group_id)
            shard.offsets.take_group(group_id, written.shard.offsets)
            if group_id in whole:
                self._take_group(group_id, written.shard.groups.get(group_id), written.shard.share_partitions.get(group_id))
        return shard.take_effects()

    def _has_members(self, group_id: str) -> bool:
        return bool(getattr(self._shard.groups.get(group_id), "members", ()))

    def _take_group(self, group_id: str, written: Group | None, share_partitions: SharePartitions | None) -> None:
        shard = self._shard
        given_up = shard.groups.pop(group_id, None)
        if isinstance(given_up, ClassicGroup):
            refuse_waiting(shard, given_up, ErrorCode.NOT_COORDINATOR)
        for names in (shard.unsettled, shard.forgotten, shard.upgraded, shard.share_partitions):
            names.pop(group_id, None)
        if share_partitions is not None:
            shard.share_partitions[group_id] = share_partitions
        if written is None:
            shard.story.forget(group_id)
            return
        shard.groups[group_id] = written
        shard.story.note(group_id, shard.now_ms, "restored from the log")
        _wake(shard, written)

    def unload(self, now_ms: int) -> list[Effect]:
        """Give all groups up: parked requests are answered NOT_COORDINATOR, and so is everything from now on."""
        shard = self._shard
        self._fire(now_ms)
        for group in shard.groups.java_values():
            if isinstance(group, ClassicGroup):
                retire(shard, group)
        shard.timers.clear()
        self._phase = _Phase.UNLOADED
        return shard.take_effects()

    def initialized_share_partitions(self, group_id: str) -> Mapping[UUID, tuple[int, ...]]:
        """The partitions, by topic, of which a share group's state is there."""
        return initialized_partitions(self._shard, group_id)

    def rebalance_status(self, group_id: str, now_ms: int) -> RebalanceStatus | None:
        """Whom the group's rebalance waits for; None if there is no such group."""
        group = self._shard.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return rebalance_status(self._shard, group, now_ms)
        return reconciliation_status(self._shard, group) if isinstance(group, ConsumerGroup) else None

    def listed_groups(self, request: ListGroups) -> Iterator[ListedGroup]:
        """What `handle` answers to this request, group by group: a driver that lets others in between sees each as it is then."""
        return listed_groups(self._shard, request)

    def statistics(self) -> CoordinatorStatistics:
        """How many groups, members and offsets there are. Visits every group."""
        return statistics(self._shard)

    def check(self) -> None:
        """Check the invariants of every group, as long as they are this coordinator's. Raises `InvariantViolation`."""
        if self._phase is _Phase.ACTIVE:
            check_shard(self._shard)

    @property
    def forgotten(self) -> tuple[str, ...]:
        """Ids of groups of which the log says more than is in memory, until it is loaded again."""
        return tuple(self._shard.forgotten)

    def durable(self, without: Collection[str] = ()) -> object:
        """Everything that would survive a reload, as a value to compare with another coordinator's; ``without`` these groups."""
        durable = {group_id: (group.type, group.durable()) for group_id, group in self._shard.groups.items()}
        groups: dict[str, tuple[object, ...]] = {
            key: state for key, state in durable.items() if state[1] is not None and key not in without
        }
        for group_id, known in self._shard.share_partitions.items():
            if group_id in groups:
                groups[group_id] = (*groups[group_id], known.durable())
        return groups, self._shard.offsets.durable()

    def _fire(self, now_ms: int) -> None:
        shard = self._shard
        shard.call_ms = now_ms if now_ms > shard.now_ms else shard.now_ms  # noqa: FURB136  # in the way of every request
        if shard.timers.earliest_ms <= now_ms:
            while (timer := shard.timers.pop_due(now_ms)) is not None:
                shard.now_ms = max(shard.now_ms, timer.deadline_ms)
                try:
                    self._run(TIMERS[timer.key.kind], timer, timer.key.group_id)
                except InvariantViolation as error:
                    self._confine(timer, error)
        if now_ms > shard.now_ms:  # noqa: PLR1730  # as above
            shard.now_ms = now_ms

    def _confine(self, timer: Timer, error: InvariantViolation) -> None:
        """Keep a timer's failure inside its group: the request or the timers that come next are other groups' business.

        Kafka logs the failure and goes on (CoordinatorRuntime.EventBasedCoordinatorTimer); some of its groups then stay as they
        are for good, with JoinGroups that nobody answers.
        """
        shard, group = self._shard, self._shard.groups.get(timer.key.group_id)
        shard.timers.arm(timer.key, shard.now_ms + RETRY_MS, timer.argument)
        if isinstance(group, ClassicGroup):
            refuse_waiting(shard, group, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        shard.emit(GroupFailed(timer.key.group_id, error))

    def _run(self, function: Callable[[Shard, Any], None], subject: Request | Timer, group_id: str | None) -> None:
        """Call a handler; whatever it raises is a bug, told with the group's story. What it did before stays to be performed."""
        try:
            function(self._shard, subject)
        except InvariantViolation as error:
            error.story = error.story or self._shard.story.of(group_id or "")
            raise
        except Exception as error:
            raise self._shard.violation(group_id or "", f"{subject!r} failed with {error!r}") from error

    def _turn_away(self, request: Request) -> None:
        """Kafka answers a heartbeat with NONE while it loads, so that no member gives its partitions up for that."""
        if self._phase is _Phase.LOADING and isinstance(request, Heartbeat):
            self._shard.reply(request.request_id, HeartbeatResult())
            return
        loading = self._phase is _Phase.LOADING
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR
        self._shard.reply(request.request_id, refuse(request, error))
