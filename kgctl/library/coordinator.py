"""`kgctl.Coordinator`: Kafka's group coordinator inside one's own process, with calls that wait, and a storage of one's own."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import fields
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import NAMESPACE_URL, uuid5

from kgctl.arguments import checked
from kgctl.assignors.registry import get_assignor
from kgctl.coordinator.config import CoordinatorConfig, with_broker_version
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import Effect, Reply, ResolveRegexes
from kgctl.coordinator.re2 import resolve_regexes
from kgctl.coordinator.share.no_op import outcome_without_state
from kgctl.errors import (
    BrokerError,
    ClosedError,
    CommitError,
    NotFoundError,
    StorageError,
    TimedOutError,
    UsageError,
    UserCodeError,
)
from kgctl.library.group_info import Activity, GroupInfo, group_info
from kgctl.library.handed_in import MemberIds, checked_clock
from kgctl.library.kept_offsets import KeptOffsets, stored_offsets
from kgctl.library.member_fields import Assignment, join_fields, sync_fields
from kgctl.member.leader import group_spec
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ByPartition, Committable, MetadataImage, OffsetAndMetadata, TopicMetadata, TopicPartition
from kgctl.model.requests import (
    CoordinatorStatistics,
    DeleteGroups,
    ForceCompleteRebalance,
    Heartbeat,
    JoinGroup,
    JoinGroupResult,
    LeaveGroup,
    ListGroups,
    MemberIdentity,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    RebalanceStatus,
    Request,
    Result,
    SyncGroup,
    TopicsChanged,
    offset_to_commit,
)
from kgctl.model.share_requests import ShareStateCall
from kgctl.server.runtime import new_member_id, steady_clock
from kgctl.storage.folder import MemoryOffsetStorage, OffsetStorage
from kgctl.storage.record_log import CommitEntry

R = TypeVar("R", bound=Any)
EVENT_ID = 0
LOCAL_HOST = "/127.0.0.1"
"""As Kafka writes a client's address."""


class Coordinator:
    """All groups of one coordinator, driven by threads: call it from any; a call that has to wait (join, sync) waits.

    The rules are Apache Kafka's (`kgctl.coordinator`). Offsets are kept by ``storage`` (memory where none is given) and are there
    again after a restart; members join anew. ``config`` has Kafka's names (``group.initial.rebalance.delay.ms``). ``topics`` are
    names with numbers of partitions: `set_topics` changes them, and offsets of topics that go are deleted, as in Kafka.
    ``broker_version``: the rules of Kafka "3.9", "4.0", "4.1", "4.2" or "4.3", the newest.
    ``member_id`` makes ids from client id (of a static member: its instance id) and client host, for ids that can be told
    beforehand; one that is in use is that member's, who joins again. By default ``<client id>-<uuid>``. ``clock_ms``:
    milliseconds that never go back.

    Errors of the protocol are raised as `kgctl.errors.BrokerError` with Kafka's name as ``code``; storage that fails as
    `kgctl.errors.StorageError`, after which `fetch` may be ahead of the storage until the same partition is committed again.

    Raises:
        UsageError: a setting that does not exist or cannot have this value.
        StorageError: the storage cannot be read.
    """

    @checked()
    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        storage: OffsetStorage | None = None,
        *,
        topics: Mapping[str, int] | None = None,
        member_id: Callable[[str, str], str] | None = None,
        clock_ms: Callable[[], int] | None = None,
        broker_version: str | None = None,
    ) -> None:
        settings = with_broker_version(config or {}, broker_version)
        self.storage: OffsetStorage = storage if storage is not None else MemoryOffsetStorage()
        self._clock_ms = checked_clock(clock_ms) if clock_ms is not None else steady_clock()
        self._member_ids = None if member_id is None else MemberIds(member_id)
        self._ids = count(EVENT_ID + 1)
        self._waiting: dict[int, tuple[Request, Future[Any]]] = {}
        self._activity: dict[str, Activity] = {}
        self._led: dict[str, JoinGroupResult] = {}
        self._offsets = KeptOffsets(self.storage, self._clock_ms)
        self._failure: StorageError | None = None
        self._changed = threading.Condition(threading.RLock())
        self._is_closed = False
        self._image = MetadataImage()
        self._core = GroupCoordinator(
            CoordinatorConfig.from_properties(settings), self._member_ids or new_member_id, start_ms=self._clock_ms()
        )
        self._load()
        self.set_topics(topics or {})
        watched = (weakref.ref(self), self._changed)
        self._timer = threading.Thread(target=_watch_time, args=watched, name="kgctl-coordinator", daemon=True)
        self._timer.start()

    # --- the protocol of members

    @checked(not_empty=("topics", "client_host"))
    def join(
        self,
        group_id: str,
        topics: Sequence[str] = (),
        *,
        member_id: str = "",
        protocols: Sequence[str] | Mapping[str, bytes] = ("range",),
        protocol_type: str = "consumer",
        group_instance_id: str | None = None,
        client_id: str = "kgctl",
        client_host: str = LOCAL_HOST,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 300_000,
        timeout_ms: int | None = None,
    ) -> JoinGroupResult:
        """Join, and wait for the end of the join phase. A new member without an id is given one, as clients take it.

        ``protocols``: assignors in order of preference, whose subscription is made from ``topics``; or names with bytes of one's
        own. The answer has generation, member id and leader; the leader's also the members, for `assign` or one's own work.

        Raises:
            BrokerError: UNKNOWN_MEMBER_ID, INCONSISTENT_GROUP_PROTOCOL, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, ...
            TimedOutError: not within ``timeout_ms``; the member, whose id the message has, is in the group all the same.
        """
        given = join_fields(locals())
        joined: JoinGroupResult = _waited(self._ask(JoinGroup, member_id=member_id, **given), timeout_ms, group_id, member_id)
        if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
            member_id = joined.member_id
            joined = _waited(self._ask(JoinGroup, member_id=member_id, **given), timeout_ms, group_id, member_id)
        return checked_answer(joined, group_id)

    @checked()
    def sync(
        self,
        group_id: str,
        joined: JoinGroupResult,
        assignment: Assignment | Mapping[str, bytes] | None = None,
        *,
        group_instance_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> bytes:
        """Hand in the leader's assignment, or none, and wait for one's own as bytes (`kgctl.decode_assignment` reads them).

        ``assignment``: member id -> topic -> partitions, or -> bytes of one's own.

        Raises:
            BrokerError: REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID: join again.
            TimedOutError: the leader has not handed in within ``timeout_ms``.
        """
        request = sync_fields(group_id, joined, assignment or {}, group_instance_id)
        answer = _waited(self._ask(SyncGroup, **request), timeout_ms, group_id, joined.member_id)
        return bytes(checked_answer(answer, group_id).assignment)

    @checked()
    def assign(self, group_id: str, topics: Mapping[str, int] | None = None) -> dict[str, dict[str, tuple[int, ...]]]:
        """Run the group's chosen assignor over its members' subscriptions, as their leader would: what to hand to `sync`.

        ``topics``: partitions of each topic; those of `set_topics` where none are given.

        Raises:
            NotFoundError: no join phase of the group has ended yet.
            UsageError: the chosen protocol is none of kgctl's assignors.
        """
        joined = self._led.get(group_id)
        if joined is None or joined.protocol_name is None:
            raise NotFoundError(f"group '{group_id}' has no generation to assign partitions in: join first", group=group_id)
        image = self._image if topics is None else _image(topics, self._image.version)
        spec = group_spec(joined.members, image)
        assigned = get_assignor(joined.protocol_name).assign(spec)
        return {
            member.member_id: {topic: tuple(parts) for topic, parts in assigned[member.member_id].items()}
            for member in spec.members
        }

    @checked()
    def heartbeat(self, group_id: str, generation_id: int, member_id: str, *, group_instance_id: str | None = None) -> None:
        """Keep the session alive. Raises `BrokerError`: REBALANCE_IN_PROGRESS asks to join again."""
        fields = {"generation_id": generation_id, "member_id": member_id, "group_instance_id": group_instance_id}
        checked_answer(self._ask(Heartbeat, group_id=group_id, **fields).result(), group_id)

    @checked()
    def leave(
        self, group_id: str, member_id: str = "", *, group_instance_id: str | None = None, reason: str | None = None
    ) -> None:
        """Leave the group, by member id or, for a static member, by instance id."""
        identity = MemberIdentity(member_id=member_id, group_instance_id=group_instance_id, reason=reason)
        answer = checked_answer(self._ask(LeaveGroup, group_id=group_id, members=(identity,)).result(), group_id)
        for member in answer.members:
            checked_answer(member, group_id)

    # --- offsets

    @checked()
    def commit(
        self,
        group_id: str,
        offsets: Committable,
        *,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        """Commit in a generation, or without one for a group that has no members. Stored when it returns; all or, on error, none.

        Raises:
            BrokerError: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, OFFSET_METADATA_TOO_LARGE, ...
            StorageError: the storage refused.
        """
        answer = self._ask(
            OffsetCommit,
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=group_instance_id,
            partitions=tuple(offset_to_commit(*each) for each in offsets.items()),
        ).result()
        for partition, error in answer.partitions:
            _raise(error, group_id, f" ({partition})")

    @checked()
    def fetch(self, group_id: str, partitions: Iterable[tuple[str, int]] | None = None) -> ByPartition[OffsetAndMetadata]:
        """Return committed offsets of these partitions, of all for None; a partition without one is left out (0 is an offset)."""
        wanted = None if partitions is None else tuple(TopicPartition(*partition) for partition in partitions)
        answer = checked_answer(self._ask(OffsetFetch, group_id=group_id, partitions=wanted).result(), group_id)
        return ByPartition(
            (each.partition, OffsetAndMetadata(each.offset, each.metadata, each.leader_epoch))
            for each in answer.offsets
            if each.offset >= 0
        )

    @checked()
    def validate(self, group_id: str, logs: Mapping[tuple[str, int], tuple[int, int]]) -> None:
        """Check that commits lie inside their logs: ``logs`` has the first offset of each partition and that after its last.

        A commit right after the last record is inside. Partitions without a commit, or without a log here, are not looked at.

        Raises:
            CommitError: OFFSET_OUT_OF_RANGE; ``errors`` has the partitions concerned.
        """
        outside: dict[object, str] = {
            partition: ErrorCode.OFFSET_OUT_OF_RANGE.name
            for partition, stored in self.fetch(group_id, logs).items()
            if not logs[partition][0] <= stored.offset <= logs[partition][1]
        }
        if outside:
            named = ", ".join(str(partition) for partition in outside)
            message = f"group '{group_id}': commits outside of the log: {named}"
            raise CommitError(message, errors=outside, code=ErrorCode.OFFSET_OUT_OF_RANGE.name, group=group_id)

    @checked()
    def forget_offsets(self, group_id: str, partitions: Iterable[tuple[str, int]] | None = None) -> None:
        """Delete committed offsets: of these partitions, or of all that the group has."""
        chosen = self.fetch(group_id) if partitions is None else partitions
        wanted = tuple(TopicPartition(*partition) for partition in chosen)
        answer = checked_answer(self._ask(OffsetDelete, group_id=group_id, partitions=wanted).result(), group_id)
        for partition, error in answer.partitions:
            _raise(error, group_id, f" ({partition})")

    # --- looking after groups

    @property
    def config(self) -> Mapping[str, object]:
        """All of the coordinator's settings by Kafka's names, defaults included."""
        config = self._core.shard.config
        return {entry.metadata["name"]: getattr(config, entry.name) for entry in fields(config)}

    @checked()
    def commit_log(self, group_id: str | None = None) -> tuple[CommitEntry, ...]:
        """Return what was committed and deleted since the start, of one group or of all, oldest first: the last 10,000."""
        with self._open():
            return tuple(entry for entry in self._offsets.commits if group_id is None or entry.group == group_id)

    def list_groups(self) -> tuple[str, ...]:
        """Return the ids of all groups, in Kafka's order."""
        return tuple(group.group_id for group in checked_answer(self._ask(ListGroups).result(), "").groups)

    @checked()
    def group(self, group_id: str) -> GroupInfo:
        """Return the group as it is now. Raises `NotFoundError`."""
        with self._open():
            found = self._core.shard.groups.get(group_id)
            if found is None:
                raise NotFoundError(f"there is no group '{group_id}'", group=group_id, code="GROUP_ID_NOT_FOUND")
            names: dict[object, str] = {topic.topic_id: name for name, topic in self._image.topics.items()}
            return group_info(found, self._activity.get(group_id), names)

    @checked()
    def delete_group(self, group_id: str) -> None:
        """Delete a group without members, with its offsets. Raises `BrokerError`: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        for _, error in self._ask(DeleteGroups, group_ids=(group_id,)).result().groups:
            _raise(error, group_id)

    @checked()
    def rebalance_status(self, group_id: str) -> RebalanceStatus | None:
        """Return whom the group's rebalance waits for, and until when; None where there is no such group."""
        with self._open():
            return self._core.rebalance_status(group_id, self._clock_ms())

    @checked()
    def complete_rebalance(self, group_id: str) -> None:
        """End the rebalance now: members that did not answer are put out, the rest goes on. Raises `BrokerError`."""
        checked_answer(self._ask(ForceCompleteRebalance, group_id=group_id).result(), group_id)

    def statistics(self) -> CoordinatorStatistics:
        """Return how many groups, members and offsets there are."""
        with self._open():
            return self._core.statistics()

    @checked()
    def set_topics(self, topics: Mapping[str, int]) -> None:
        """Say which topics there are, all of them, with their numbers of partitions."""
        with self._open():
            self._image = _image(topics, self._image.version + 1)
            self._perform(self._core.handle(TopicsChanged(request_id=EVENT_ID, image=self._image), self._clock_ms()))

    def close(self) -> None:
        """Answer what waits with NOT_COORDINATOR and end. Safe to call twice."""
        with self._changed:
            if self._is_closed:
                return
            self._perform(self._core.unload(self._clock_ms()))
            self._is_closed = True
            self._changed.notify_all()
        self._timer.join()

    def __del__(self) -> None:
        if getattr(self, "_timer", None) is not None and not self._is_closed:
            warnings.warn(f"unclosed {self!r}: use `with`, or close()", ResourceWarning, stacklevel=1, source=self)
            self._is_closed = True
            with self._changed:
                self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    # --- the driver

    @checked()
    def ask(self, kind: type[Request], **fields: Any) -> Future[Any]:
        """Hand a request to the core: any of `kgctl.model.requests`. The future has its result, or the storage's error."""
        return self._ask(kind, **fields)

    def _ask(self, kind: type[Request], **fields: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._open():
            if self._member_ids is not None and kind is JoinGroup and not fields.get("member_id"):
                fields["member_id"] = self._made_id(self._member_ids, **fields)
            request = kind(request_id=next(self._ids), **fields)
            self._waiting[request.request_id] = (request, future)
            self._failure = None
            self._note(request)
            self._perform(self._core.handle(request, self._clock_ms()))
        return future

    def _made_id(
        self,
        ids: MemberIds,
        group_id: str,
        client_id: str = "",
        client_host: str = "",
        group_instance_id: str | None = None,
        **_: Any,
    ) -> str:
        who = client_id if group_instance_id is None else group_instance_id
        return ids.of_join(self._core.shard.groups.get(group_id), who, client_host)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Hold the lock of a coordinator that is not closed."""
        with self._changed:
            if self._is_closed:
                raise ClosedError("this coordinator is closed: make a new one on the same storage")
            yield

    def _perform(self, effects: list[Effect]) -> None:
        """Records before the replies that stand behind them; called with the lock held."""
        self._failure = self._offsets.store(effects) or self._failure
        for effect in effects:
            if isinstance(effect, Reply):
                self._deliver(effect.request_id, effect.result)
            elif isinstance(effect, ResolveRegexes):
                resolved = resolve_regexes(effect, tuple(self._image.topics), EVENT_ID)
                self._perform(self._core.handle(resolved, self._clock_ms()))
            elif isinstance(effect, ShareStateCall):
                self._perform(self._core.handle(outcome_without_state(effect, EVENT_ID), self._clock_ms()))
        self._changed.notify_all()

    def _deliver(self, request_id: int, result: Result) -> None:
        if request_id not in self._waiting:
            return
        request, future = self._waiting.pop(request_id)
        if isinstance(result, JoinGroupResult):
            self._note_join(request, result)
        if not future.set_running_or_notify_cancel():
            return  # whoever asked waits no longer
        if self._failure is not None and not isinstance(request, Heartbeat):
            failure, self._failure = self._failure, None
            future.set_exception(failure)
        else:
            future.set_result(result)

    def _note(self, request: Request) -> None:
        group_id = getattr(request, "group_id", None)
        if isinstance(group_id, str) and not isinstance(request, OffsetFetch | ForceCompleteRebalance):
            now_ms = self._clock_ms()
            activity = self._activity.setdefault(group_id, Activity(now_ms, now_ms))
            activity.last_activity_ms = now_ms
            if isinstance(request, Heartbeat):
                activity.last_heartbeat_ms[request.member_id] = now_ms

    def _note_join(self, request: Request, result: JoinGroupResult) -> None:
        assert isinstance(request, JoinGroup)
        if result.error is not ErrorCode.NONE or request.group_id is None:
            return
        activity = self._activity.get(request.group_id)
        if activity is not None:
            activity.joined_ms.setdefault(result.member_id, self._clock_ms())
        if result.members:
            self._led[request.group_id] = result

    def _load(self) -> None:
        for group_id, (topic, partition), stored in stored_offsets(self.storage):
            key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
            self._core.replay(CoordinatorRecord(key=key, value=OffsetCommitValue(**stored.as_dict())))
        self._core.loaded(self._clock_ms())

    def _fire_due(self) -> float | None:
        """Fire the timers that are due, with the lock held. Returns the seconds until the next one; None: there is none."""
        while True:
            deadline_ms = self._core.next_deadline_ms()
            left_ms = None if deadline_ms is None else deadline_ms - self._clock_ms()
            if left_ms is None or left_ms > 0:
                return None if left_ms is None else left_ms / 1000
            self._perform(self._core.expire(self._clock_ms()))
            self._forget_gone()

    def _forget_gone(self) -> None:
        groups = self._core.shard.groups
        for group_id in [group_id for group_id in self._activity if group_id not in groups]:
            self._activity.pop(group_id, None)
            self._led.pop(group_id, None)


def _watch_time(watched: weakref.ref[Coordinator], changed: threading.Condition) -> None:
    """Fire a coordinator's timers, until it is closed or nobody has it any more. A clock of the user's that fails closes it."""
    with changed:
        while (coordinator := watched()) is not None and not coordinator._is_closed:
            try:
                left_s = coordinator._fire_due()
            except UserCodeError:
                coordinator._is_closed = True
                raise
            del coordinator
            changed.wait(left_s)


def _image(topics: Mapping[str, int], version: int) -> MetadataImage:
    for name, partitions in topics.items():
        if not name or partitions < 1:
            raise UsageError(f"topics are names with numbers of partitions from 1 on, not {name!r}: {partitions}")
    found = {name: TopicMetadata(name, uuid5(NAMESPACE_URL, f"topic:{name}"), count) for name, count in topics.items()}
    return MetadataImage(found, version)


def _waited(future: Future[Any], timeout_ms: int | None, group_id: str, member_id: str) -> Any:
    try:
        return future.result(None if timeout_ms is None else timeout_ms / 1000)
    except TimeoutError:
        who = f"member '{member_id}'" if member_id else "the member"
        limit_s = (timeout_ms or 0) / 1000
        message = f"group '{group_id}': no answer within {limit_s:g} s; {who} is in the group: ask again, or let it leave"
        raise TimedOutError(message, group=group_id) from None


def checked_answer(answer: R, group_id: str) -> R:
    _raise(answer.error, group_id)
    return answer


def _raise(error: ErrorCode, group_id: str, where: str = "") -> None:
    if error is not ErrorCode.NONE:
        raise BrokerError(f"group '{group_id}'{where}: {error.name}: {error.text}", code=error.name, group=group_id)
