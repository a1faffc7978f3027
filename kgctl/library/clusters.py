"""`kgctl.connect`: the groups of a cluster, of a data folder or of ZooKeeper, and resets that are planned first."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from kgctl.errors import ClosedError, MisuseError, RefusedError, UsageError

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin import GroupAdmin as _AllOfGroupAdmin
    from kgctl.admin.connect import ConnectionSettings
    from kgctl.admin.offset_reset import ResetPlan, ResetRow, Strategy

else:
    _AllOfGroupAdmin = object  # type checkers see all methods, which `Admin.__getattr__` finds

R = TypeVar("R")

TIMEOUT_MS = 10_000


class Admin(_AllOfGroupAdmin):
    """All of `kgctl.GroupAdmin`, and `plan_reset`. Close it, or use ``with``; for one thread at a time.

    Raises, from every method:
        ClosedError: it was closed.
        MisuseError: another thread is in the middle of a call.
    """

    def __init__(self, groups: GroupAdmin) -> None:
        self.groups = groups
        self._is_closed = False
        self._call = threading.Lock()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            found = getattr(self.groups, name)
            return self._alone(found) if callable(found) else found

    def _alone(self, method: Callable[..., R]) -> Callable[..., R]:
        """Return the method as it answers an open admin, and one thread at a time: two would read each other's answers."""

        @wraps(method)
        def call(*arguments: Any, **options: Any) -> R:
            if self._is_closed:
                raise ClosedError("this admin is closed: connect again")
            if not self._call.acquire(blocking=False):
                raise MisuseError(
                    "an admin is for one thread at a time, and another is in the middle of a call: connect once a thread"
                )
            try:
                return method(*arguments, **options)
            finally:
                self._call.release()

        return call

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
        from kgctl.admin.changes import plan_reset
        from kgctl.admin.offset_reset import ResetRequest, parse_topic_scopes

        request = ResetRequest(
            group_ids=(group_ids,) if isinstance(group_ids, str) else tuple(group_ids),
            strategy=_strategy(to, shift_by),
            scopes=None if topics is None else parse_topic_scopes(topics),
            clamp=clamp,
        )
        return Plan(self.groups, self._alone(plan_reset)(self.groups, request))

    def close(self) -> None:
        """Give connections back. Safe to call twice."""
        self._is_closed = True
        self.groups.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class Plan:
    """A reset that was planned: `rows` say what would happen, `execute` does it, `undo` brings back what it replaced."""

    def __init__(self, groups: GroupAdmin, plan: ResetPlan) -> None:
        self._groups = groups
        self._plan = plan
        self._done: ResetPlan | None = None

    @property
    def rows(self) -> tuple[ResetRow, ...]:
        """One for each group and partition: old and new offset, ``result`` (planned, unchanged, reset, failed, ...), note."""
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
        from kgctl.admin.changes import execute_reset

        if self._done is not None:
            raise MisuseError("this plan was executed before: plan again, or undo it")
        if self._plan.is_out_of_range:
            raise RefusedError("an offset of the plan lies outside its log: nothing was changed")
        executed = execute_reset(self._groups, self._plan)
        self._done = executed.plan
        if executed.ended_by is not None and not executed.may_have_changed:
            raise executed.ended_by
        return self._done.rows

    def undo(self) -> Plan:
        """Return the plan that brings back what `execute` replaced, commits that were not there included; execute it in turn."""
        from kgctl.admin.changes import plan_reset
        from kgctl.admin.notation import FromFile, PlannedOffset
        from kgctl.admin.offset_reset import ResetRequest, ResetResult

        if self._done is None:
            raise MisuseError("nothing to undo: this plan was not executed")
        before: dict[str, dict[Any, PlannedOffset]] = {}
        for row in self._done.rows:
            if row.result in (ResetResult.RESET, ResetResult.DELETED, ResetResult.UNKNOWN):
                before.setdefault(row.group_id, {})[row.partition] = PlannedOffset(row.old)
        return Plan(self._groups, plan_reset(self._groups, ResetRequest(tuple(before), FromFile(before), create=True)))


class AsyncAdmin:
    """An `Admin` for coroutines: every method is awaited, and runs in a thread; one call at a time."""

    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self._lock = asyncio.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.admin, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            async with self._lock:
                return await asyncio.to_thread(method, *arguments, **options)

        return call

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        await asyncio.to_thread(self.admin.close)


def connect(
    bootstrap: str | None = None,
    *,
    embedded: Path | str | None = None,
    zookeeper: str | None = None,
    context: str | None = None,
    properties: Mapping[str, str] | None = None,
    timeout_ms: int | None = None,
) -> Admin:
    """Return what administers the groups there; close it, or use ``with``. Nothing is contacted before the first call.

    One of ``bootstrap`` (``host:port[,host:port]``), ``embedded`` (the data folder of ``kgctl serve``), ``zookeeper``
    (``host:port[/chroot]``: groups of the old consumer; ``bootstrap`` beside it names the brokers that know the logs) and
    ``context`` (a name in the file of ``kgctl context``, which ``KGCTL_CONFIG`` may name; its secrets are looked up).
    ``properties`` have librdkafka's names, and stand over those of a context. ``timeout_ms`` covers each call as a whole: 10,000
    where neither it nor the context says so.

    Raises:
        UsageError: none of the four, or two that do not go together; no such context; settings that cannot be.
    """
    from kgctl.admin.connect import ConnectionSettings
    from kgctl.admin.connect import connect as connect_to

    places = (("bootstrap", bootstrap), ("embedded", embedded), ("zookeeper", zookeeper), ("context", context))
    named = [name for name, value in places if value]
    if len(named) != 1 and named != ["bootstrap", "zookeeper"]:
        raise UsageError(f"name one cluster: bootstrap, embedded, zookeeper or context (given: {', '.join(named) or 'none'})")
    if context is not None:
        return _admin(connect_to(_context_settings(context, properties or {}, timeout_ms)))
    settings = ConnectionSettings(
        bootstrap=bootstrap,
        embedded=None if embedded is None else Path(embedded),
        zookeeper=zookeeper,
        properties=dict(properties or {}),
        timeout_ms=TIMEOUT_MS if timeout_ms is None else timeout_ms,
    )
    return _admin(connect_to(settings))


def _admin(groups: GroupAdmin) -> Admin:
    return Admin(groups)  # type: ignore[abstract]  # what it inherits it has from `groups`


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
        return ToOffset(to)
    places: dict[str, Strategy] = {"earliest": ToEarliest(), "latest": ToLatest(), "current": ToCurrent()}
    if not isinstance(to, str) or to not in places:
        raise UsageError(f"to={to!r}: expected earliest, latest, current, an offset or a datetime")
    return places[to]
