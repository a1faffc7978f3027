"""`kgctl.connect`: the groups of a cluster, of a data folder or of ZooKeeper, and resets that are planned first."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from kgctl.admin import GroupAdmin, GroupResults, PartitionResults, Results
from kgctl.arguments import checked
from kgctl.errors import ClosedError, MisuseError, RefusedError, UsageError
from kgctl.model.groups import ByPartition, Committable, LogOffsets, OffsetAndMetadata, TopicPartition
from kgctl.model.requests import offset_to_commit
from kgctl.wire.settings import checked_property, with_msk_mechanism
from kgctl.wire.tokens import waited_for

if TYPE_CHECKING:
    from kgctl.admin.connect import ConnectionSettings
    from kgctl.admin.offset_reset import ResetPlan, ResetRow, Strategy

P = ParamSpec("P")
R = TypeVar("R")

TIMEOUT_MS = 10_000
AT_ONCE = 4
"""Calls of an `AsyncAdmin`."""


def _alone(
    method: Callable[Concatenate[GroupAdmin, P], R], *, not_empty: Collection[str] = ()
) -> Callable[Concatenate[Admin, P], R]:
    """Return a method of `GroupAdmin` as an `Admin` has it: with the same signature, on what it connects to."""
    name = method.__name__

    @checked(not_empty=not_empty)
    @wraps(method)
    def call(self: Admin, /, *arguments: P.args, **options: P.kwargs) -> R:
        found: Callable[P, R] = getattr(self.groups, name)
        return self._call_alone(found, *arguments, **options)

    return call


class Admin(GroupAdmin):
    """All of `kgctl.GroupAdmin`, and `plan_reset`. Close it, or use ``with``; for one thread at a time.

    Raises, from every method:
        ClosedError: it was closed.
        MisuseError: another thread is in the middle of a call.
    """

    @checked()
    def __init__(self, groups: GroupAdmin) -> None:
        self.groups = groups
        self._is_closed = self._was_used = False
        self._call = threading.Lock()
        self._again: Callable[[], GroupAdmin] | None = None
        """Connects once more to the same place; None where that cannot be."""
        self._others: list[Admin] = []
        """What `AsyncAdmin` has connected to the same place."""

    cluster_id = _alone(GroupAdmin.cluster_id)
    sight = _alone(GroupAdmin.sight)
    list_groups = _alone(GroupAdmin.list_groups)
    describe_groups = _alone(GroupAdmin.describe_groups, not_empty=("group_ids",))
    _list_committed_offsets = _alone(GroupAdmin.list_committed_offsets, not_empty=("group_ids",))
    _list_log_offsets = _alone(GroupAdmin.list_log_offsets)
    _list_offsets_at = _alone(GroupAdmin.list_offsets_at)
    list_record_times = _alone(GroupAdmin.list_record_times)
    list_topics = _alone(GroupAdmin.list_topics, not_empty=("topics",))
    topic_ids = _alone(GroupAdmin.topic_ids, not_empty=("topics",))
    _alter_offsets = _alone(GroupAdmin.alter_offsets)
    _delete_offsets = _alone(GroupAdmin.delete_offsets, not_empty=("group_id",))
    delete_groups = _alone(GroupAdmin.delete_groups, not_empty=("group_ids",))
    remove_members = _alone(GroupAdmin.remove_members, not_empty=("group_id", "member_ids", "group_instance_ids"))

    def _call_alone(self, method: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Call it, if this is open, and one thread at a time: two would read each other's answers."""
        if self._is_closed:
            raise ClosedError("this admin is closed: connect again")
        if not self._call.acquire(blocking=False):
            raise MisuseError(
                "an admin is for one thread at a time, and another is in the middle of a call: connect once a thread"
            )
        self._was_used = True
        try:
            return method(*arguments, **options)
        finally:
            self._call.release()

    def __del__(self) -> None:
        if getattr(self, "_was_used", False) and not self._is_closed:
            warnings.warn(f"unclosed {self!r}: use `with`, or close()", ResourceWarning, stacklevel=1, source=self)
            self.groups.close()

    @checked(not_empty=("group_ids",))
    def list_committed_offsets(
        self, group_ids: Sequence[str], *, require_stable: bool = False
    ) -> GroupResults[ByPartition[OffsetAndMetadata]]:
        """All committed offsets of each group; an unknown group has none. With ``require_stable`` partitions that an open
        transaction commits for are left out, and their error is told in `Results.flaws`."""
        found = self._list_committed_offsets(group_ids, require_stable=require_stable)
        values = {group_id: ByPartition(offsets) for group_id, offsets in found.values.items()}
        return Results(values, found.errors, found.unreachable, found.flaws)

    @checked()
    def list_log_offsets(
        self, partitions: Sequence[tuple[str, int]], *, read_committed: bool = False
    ) -> PartitionResults[LogOffsets]:
        """As `GroupAdmin.list_log_offsets`; partitions may be plain tuples."""
        return self._list_log_offsets(_partitions(partitions), read_committed=read_committed)

    @checked()
    def list_offsets_at(self, partitions: Sequence[tuple[str, int]], timestamp_ms: int) -> PartitionResults[int | None]:
        """As `GroupAdmin.list_offsets_at`; partitions may be plain tuples."""
        return self._list_offsets_at(_partitions(partitions), timestamp_ms)

    @checked(not_empty=("group_id",))
    def alter_offsets(self, group_id: str, offsets: Committable) -> PartitionResults[None]:
        """Commit these offsets for a group without members; creates the group where there is none.

        Raises:
            UsageError: no (topic, partition), or an offset below 0.
        """
        return self._alter_offsets(group_id, to_commit(offsets))

    @checked(not_empty=("group_id",))
    def delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> PartitionResults[None]:
        """As `GroupAdmin.delete_offsets`; partitions may be plain tuples."""
        return self._delete_offsets(group_id, _partitions(partitions))

    @checked(not_empty=("group_ids", "topics"))
    def plan_reset(
        self,
        group_ids: str | Sequence[str],
        *,
        to: Literal["earliest", "latest", "current"] | int | datetime | None = None,
        shift_by: int | None = None,
        topics: Sequence[str] | None = None,
        clamp: bool = True,
    ) -> Plan:
        """Look at the cluster, change nothing, and return what a reset would do, as ``kgctl reset-offsets`` shows it.

        ``to``: a place, an offset, or a moment (with a time zone; the first record at or after it); or ``shift_by`` records.
        ``topics``: names, or ``orders:0,2-5``; without them every partition that has a commit. ``clamp``: offsets outside the
        log become its start or end; otherwise such a plan can't be executed.

        Raises:
            UsageError: no target, or two; a moment without a time zone; no such form of a topic.
            NotFoundError: a topic or partition does not exist.
        """
        from kgctl.admin.offset_reset import ResetRequest
        from kgctl.admin.resets import plan_reset
        from kgctl.admin.topic_scopes import parse_topic_scopes

        request = ResetRequest(
            group_ids=(group_ids,) if isinstance(group_ids, str) else tuple(group_ids),
            strategy=_strategy(to, shift_by),
            scopes=None if topics is None else parse_topic_scopes(topics),
            clamp=clamp,
        )
        return Plan(self, self._call_alone(plan_reset, self.groups, request))

    def close(self) -> None:
        """Give connections back. Safe to call twice."""
        self._is_closed = True
        for each in (self.groups, *self._others):
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _partitions(partitions: Sequence[tuple[str, int]]) -> list[TopicPartition]:
    return [TopicPartition(*each) for each in partitions]


def to_commit(offsets: Committable) -> ByPartition[OffsetAndMetadata]:
    """Return what is to be committed, in one form. Raises `UsageError` for what no commit can be."""
    found = ByPartition[OffsetAndMetadata]()
    for key, value in offsets.items():
        one = offset_to_commit(key, value)
        found[TopicPartition(one.topic, one.partition)] = OffsetAndMetadata(one.offset, one.metadata or "", one.leader_epoch)
    return found


class Plan:
    """A reset that was planned: `rows` say what would happen, `execute` does it, `undo` brings back what it replaced."""

    def __init__(self, admin: Admin, plan: ResetPlan) -> None:
        self._admin = admin
        self._plan = plan
        self._done: ResetPlan | None = None

    def __repr__(self) -> str:
        counts = Counter(str(row.result) for row in self.rows)
        told = ", ".join(f"{count} {result}" for result, count in counts.items()) or "nothing to do"
        return f"<Plan: {told}{f', {len(self.errors)} errors' if self.errors else ''}>"

    @property
    def rows(self) -> tuple[ResetRow, ...]:
        """One row for each group and partition: old and new offset, ``result`` (planned, unchanged, reset, failed, ...), note."""
        return (self._done or self._plan).rows

    @property
    def errors(self) -> tuple[Exception, ...]:
        """What failed about groups that could not be planned, or were left alone."""
        return (self._done or self._plan).errors

    def execute(self) -> tuple[ResetRow, ...]:
        """Do it, once, and return what became of each row. Groups with members are left alone and named in `errors`.

        Raises:
            RefusedError: an offset lies outside its log, and clamping was not wanted; nothing was changed.
            MisuseError: it was executed before.
        """
        from kgctl.admin.resets import execute_reset

        if self._done is not None:
            raise MisuseError("this plan was executed before: plan again, or undo it")
        if self._plan.is_out_of_range:
            raise RefusedError("an offset of the plan lies outside its log: nothing was changed")
        executed = self._admin._call_alone(execute_reset, self._admin.groups, self._plan)
        self._done = executed.plan
        if executed.ended_by is not None and not executed.may_have_changed:
            raise executed.ended_by
        return self._done.rows

    @checked()
    def undo(self, *, overwrite: bool = False) -> Plan:
        """Return the plan that brings back what `execute` replaced, commits that were not there included; execute it in turn.

        A group that has gone on since is refused, with the code CHANGED_MEANWHILE, unless its progress is to be overwritten.
        """
        from kgctl.admin.notation import FromFile, PlannedOffset
        from kgctl.admin.offset_reset import ResetRequest, ResetResult
        from kgctl.admin.resets import plan_reset

        if self._done is None:
            raise MisuseError("nothing to undo: this plan was not executed")
        before: dict[str, dict[Any, PlannedOffset]] = {}
        for row in self._done.rows:
            if row.result in (ResetResult.RESET, ResetResult.DELETED, ResetResult.UNKNOWN):
                before.setdefault(row.group_id, {})[row.partition] = PlannedOffset(
                    row.old, row.new.offset if row.new else None, verify=not overwrite, undoes=True
                )
        request = ResetRequest(tuple(before), FromFile(before), create=True)
        return Plan(self._admin, self._admin._call_alone(plan_reset, self._admin.groups, request))


def _awaited(method: Callable[Concatenate[Admin, P], R]) -> Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, R]]:
    """Return a method of `Admin` as an `AsyncAdmin` has it: with the same arguments and answer, but awaited."""

    @checked()
    @wraps(method)
    async def call(self: AsyncAdmin, /, *arguments: P.args, **options: P.kwargs) -> R:
        return await self._at_once(method, *arguments, **options)

    return call


class AsyncAdmin:
    """An `Admin` for coroutines: each of its methods, but awaited. Use ``async with``.

    Up to four calls are under way at once, in threads with connections of their own; in a data folder, and for plans, it is one
    after the other. A call that is cancelled ends in its thread, within its time limit, and holds up no other.

    Raises, from every method:
        ClosedError: it was closed.
    """

    @checked()
    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self._lock = asyncio.Lock()
        self._more = asyncio.Semaphore(AT_ONCE - 1)
        self._idle: list[Admin] = []

    cluster_id = _awaited(Admin.cluster_id)
    sight = _awaited(Admin.sight)
    list_groups = _awaited(Admin.list_groups)
    describe_groups = _awaited(Admin.describe_groups)
    list_committed_offsets = _awaited(Admin.list_committed_offsets)
    list_log_offsets = _awaited(Admin.list_log_offsets)
    list_offsets_at = _awaited(Admin.list_offsets_at)
    list_record_times = _awaited(Admin.list_record_times)
    list_topics = _awaited(Admin.list_topics)
    topic_ids = _awaited(Admin.topic_ids)
    alter_offsets = _awaited(Admin.alter_offsets)
    delete_offsets = _awaited(Admin.delete_offsets)
    delete_groups = _awaited(Admin.delete_groups)
    remove_members = _awaited(Admin.remove_members)

    @checked(not_empty=("group_ids", "topics"))
    async def plan_reset(
        self,
        group_ids: str | Sequence[str],
        *,
        to: Literal["earliest", "latest", "current"] | int | datetime | None = None,
        shift_by: int | None = None,
        topics: Sequence[str] | None = None,
        clamp: bool = True,
    ) -> AsyncPlan:
        """As `Admin.plan_reset`, with a plan that is executed and undone by coroutines."""
        plan = await self._in_thread(self.admin.plan_reset, group_ids, to=to, shift_by=shift_by, topics=topics, clamp=clamp)
        return AsyncPlan(self, plan)

    async def close(self) -> None:
        """As `Admin.close`, when all that is under way has ended."""
        for _ in range(AT_ONCE - 1):
            await self._more.acquire()
        try:
            await self._in_thread(self.admin.close)
        finally:
            for _ in range(AT_ONCE - 1):
                self._more.release()

    async def _at_once(self, method: Callable[Concatenate[Admin, P], R], *arguments: P.args, **options: P.kwargs) -> R:
        """Call it on the admin, or on another one like it while that is in the middle of a call."""
        admin = self.admin
        if admin._again is None or admin._is_closed or not self._lock.locked():
            return await self._in_thread(method, admin, *arguments, **options)
        again = admin._again

        def on_another() -> R:
            other = self._another(again)
            try:
                return method(other, *arguments, **options)
            finally:
                self._idle.append(other)

        await self._more.acquire()
        return await self._run(self._more.release, on_another)

    def _another(self, again: Callable[[], GroupAdmin]) -> Admin:
        """One that has nothing to do, or that is connected now; in the thread of its call."""
        try:
            return self._idle.pop()
        except IndexError:
            self.admin._others.append(other := Admin(again()))
            return other

    async def _in_thread(self, method: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        await self._lock.acquire()
        return await self._run(self._lock.release, method, *arguments, **options)

    @staticmethod
    async def _run(release: Callable[[], None], method: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """In a thread, with ``release`` at its end: it goes on when the caller is cancelled."""
        work = asyncio.ensure_future(asyncio.to_thread(waited_for(method), *arguments, **options))

        def ended(done: asyncio.Future[R]) -> None:
            release()
            if not done.cancelled():
                done.exception()  # the caller, if there is one, has it

        work.add_done_callback(ended)
        return await asyncio.shield(work)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        await self.close()


class AsyncPlan:
    """A `Plan` for coroutines."""

    def __init__(self, admin: AsyncAdmin, plan: Plan) -> None:
        self._admin = admin
        self._plan = plan

    @property
    def rows(self) -> tuple[ResetRow, ...]:
        """As `Plan.rows`."""
        return self._plan.rows

    @property
    def errors(self) -> tuple[Exception, ...]:
        """As `Plan.errors`."""
        return self._plan.errors

    async def execute(self) -> tuple[ResetRow, ...]:
        """As `Plan.execute`."""
        return await self._admin._in_thread(self._plan.execute)

    @checked()
    async def undo(self, *, overwrite: bool = False) -> AsyncPlan:
        """As `Plan.undo`."""
        return AsyncPlan(self._admin, await self._admin._in_thread(self._plan.undo, overwrite=overwrite))


@checked(not_empty=("bootstrap", "embedded", "zookeeper", "context"))
def connect(
    bootstrap: str | None = None,
    *,
    embedded: Path | str | None = None,
    zookeeper: str | None = None,
    context: str | None = None,
    properties: Mapping[str, str | Callable[[], str | Awaitable[str]]] | None = None,
    timeout_ms: int | None = None,
) -> Admin:
    """Return what administers the groups there; close it, or use ``with``. Nothing is contacted before the first call.

    One of ``bootstrap`` (``host:port[,host:port]``), ``embedded`` (the data folder of ``kgctl serve``), ``zookeeper``
    (``host:port[/chroot]``: groups of the old consumer; ``bootstrap`` beside it names the brokers that know the logs) and
    ``context`` (a name in the user's file of ``kgctl context``, or the file that ``KGCTL_CONFIG`` names, never a project's
    ``.kgctl.yml`` that happens to lie there: a program means the same cluster in every folder; its secrets are looked up).
    ``properties`` have librdkafka's names, and stand over those of a context; ``sasl.oauthbearer.token`` may be a function, or
    a coroutine function, that makes a token for each login (OAUTHBEARER, IAM of Amazon MSK). ``timeout_ms`` covers each call as a
    whole: 10,000 where neither it nor the context says so.

    Raises:
        UsageError: none of the four, or two that do not go together; no such context; settings that cannot be.
    """
    from kgctl.admin.connect import ConnectionSettings
    from kgctl.admin.connect import connect as connect_to

    places = (("bootstrap", bootstrap), ("embedded", embedded), ("zookeeper", zookeeper), ("context", context))
    named = [name for name, value in places if value]
    if len(named) != 1 and named != ["bootstrap", "zookeeper"]:
        raise UsageError(f"name one cluster: bootstrap, embedded, zookeeper or context (given: {', '.join(named) or 'none'})")
    if timeout_ms is not None and timeout_ms <= 0:
        raise UsageError(f"timeout_ms must be more than 0, not {timeout_ms}")
    given = {name: str(value) if zookeeper else checked_property(name, value) for name, value in (properties or {}).items()}
    given = given if zookeeper else with_msk_mechanism(given)
    if context is not None:
        settings = _context_settings(context, given, timeout_ms)
    else:
        settings = ConnectionSettings(
            bootstrap=bootstrap,
            embedded=None if embedded is None else Path(embedded),
            zookeeper=zookeeper,
            properties=given,
            timeout_ms=TIMEOUT_MS if timeout_ms is None else timeout_ms,
        )
    admin = Admin(connect_to(settings))
    if settings.embedded is None:
        admin._again = partial(connect_to, settings)
    return admin


def _context_settings(name: str, properties: Mapping[str, str], timeout_ms: int | None) -> ConnectionSettings:
    from kgctl.admin.connect import config_path, context_settings, load_config_file, resolved

    context = load_config_file(config_path(os.environ)).context(name)
    limit = f"{timeout_ms}ms" if timeout_ms is not None else None
    settings = context_settings(context, properties, limit or context.timeout or f"{TIMEOUT_MS}ms")
    return replace(settings, properties=resolved(settings.properties, os.environ))


def _strategy(to: str | int | datetime | None, shift_by: int | None) -> Strategy:
    from kgctl.admin.offset_reset import ShiftBy, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime

    if (to is None) == (shift_by is None):
        raise UsageError("say where to: one of to= and shift_by=")
    if shift_by is not None:
        return ShiftBy(shift_by)
    if isinstance(to, datetime):
        if to.tzinfo is None:
            raise UsageError(f"to={to!r} has no time zone: give one (datetime.timezone.utc)")
        return ToTime(round(to.timestamp() * 1000))
    if isinstance(to, int):
        if to < 0:
            raise UsageError(f"to={to}: an offset is a number from 0 on")
        return ToOffset(to)
    places: dict[str, Strategy] = {"earliest": ToEarliest(), "latest": ToLatest(), "current": ToCurrent()}
    assert isinstance(to, str)
    return places[to]
