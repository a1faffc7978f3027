"""A cluster inside the test's process, whose sessions expire, whose groups rebalance and whose brokers go when the test says."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kgctl.arguments import checked
from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.rebalance import start_rebalance
from kgctl.coordinator.config import with_broker_version
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.group import Group
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.errors import BrokerError, MisuseError, NotFoundError, UnsupportedError, UsageError
from kgctl.model.groups import ByPartition, Committable, GroupDescription, topic_name_problem
from kgctl.server.background import BackgroundServer
from kgctl.server.runtime import CoordinatorRuntime

if TYPE_CHECKING:
    from kgctl.group.consumer_group import ConsumerGroup
    from kgctl.library.clusters import Admin

T = TypeVar("T")

AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
"""The one setting that is not Kafka's own: a group does not wait three seconds for more first members."""

QUICK = {
    "group.min.session.timeout.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "500",
}
"""What ``quick=True`` adds: members may be short-lived, and those of the consumer protocol beat often. No broker has these."""


class EmbeddedServer:
    """A context manager: kgctl's server, listening on free local ports inside the block. Real clients connect to ``bootstrap``.

    ``topics``: names with numbers of partitions. ``config`` has Kafka's broker settings, whose defaults are Kafka's but for
    ``group.initial.rebalance.delay.ms``, which is 0. ``quick`` lowers bounds that a broker has as well: sessions of 100 ms and
    more are taken (Kafka: of 6 s), and members of the consumer protocol beat every 100 ms (5 s) with sessions of 4 s (45 s).
    ``broker_version``: answer as a broker of "3.9", "4.0", "4.1", "4.2" or "4.3", the newest, does. ``brokers``: that many
    listeners. ``data``: a folder to keep everything in; in memory without it.

    Raises, when it is entered:
        UsageError: a setting that cannot be. StorageError: the data folder cannot be used.
    """

    @checked(not_empty=("data",))
    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        config: Mapping[str, str] | None = None,
        quick: bool = False,
        brokers: int = 1,
        data: Path | str | None = None,
        broker_version: str | None = None,
    ) -> None:
        if brokers < 1:
            raise UsageError(f"brokers must be 1 or more, not {brokers}")
        for name in topics or {}:
            _check_name(name)
        settings = with_broker_version({**AT_ONCE, **(QUICK if quick else {}), **(config or {})}, broker_version)
        self._brokers = brokers
        folder = None if data is None else Path(data)
        self._server = BackgroundServer(topics=topics, config=settings, brokers=brokers, data=folder)
        self._admin: Admin | None = None
        self._is_running = self._was_entered = False

    @property
    def bootstrap(self) -> str:
        """``HOST:PORT`` of each broker that is up, with commas."""
        self._check_is_running()
        return self._server.bootstrap

    @property
    def admin(self) -> Admin:
        """A `kgctl.Admin` on this cluster, made when it is first asked for."""
        if self._admin is None:
            from kgctl.library.clusters import connect

            self._admin = connect(self.bootstrap)
        return self._admin

    def __enter__(self) -> Self:
        if self._was_entered:
            raise MisuseError("an EmbeddedServer runs once: make another one for another `with` block")
        self._was_entered = True
        self._server.__enter__()
        self._is_running = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._is_running = False
        if self._admin is not None:
            self._admin.close()
        self._server.__exit__(kind, error, traceback)

    def __del__(self) -> None:
        if getattr(self, "_is_running", False):
            warnings.warn(f"unclosed {self!r}: use `with`", ResourceWarning, stacklevel=1, source=self)
            self._server.end()

    # --- what there is

    @checked(not_empty=("name",))
    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, or give one more partitions. Raises `UsageError` for a name or a number that Kafka refuses."""
        self._check_is_running()
        _check_name(name)
        catalog = self._server.server.services.catalog

        def create() -> None:
            known = catalog.get(name)
            if known is None:
                catalog.create({name: partitions})
            elif known.partition_count < partitions:
                catalog.grow({name: partitions})

        self._in_loop(create)

    @checked(not_empty=("group_id",))
    def consumer_group(self, group_id: str, *topics: str, **settings: Any) -> ConsumerGroup:
        """A `kgctl.ConsumerGroup` on this cluster with quick heartbeats; close it, or use ``with``."""
        from kgctl.group.consumer_group import ConsumerGroup

        quick = {} if settings.get("protocol") == "consumer" else {"heartbeat_interval_ms": 50}
        given = {**quick, "auto_offset_reset": "earliest", "retry_backoff_ms": 10, **settings}
        return ConsumerGroup(self.bootstrap, group_id, topics, **given)

    @checked()
    def describe(self, group_id: str) -> GroupDescription:
        """State, members and assignment of a group. Raises `NotFoundError`."""
        return self.admin.describe_groups([group_id]).one()

    @checked()
    def committed(self, group_id: str) -> ByPartition[int]:
        """All committed offsets of a group."""
        offsets = self.admin.list_committed_offsets([group_id]).one()
        return ByPartition((partition, stored.offset) for partition, stored in offsets.items())

    @checked(not_empty=("group_id",))
    def commit(self, group_id: str, offsets: Committable) -> None:
        """Commit for a group without members: where its consumers will begin. Raises `BrokerError` for a group that has some."""
        for partition, error in self.admin.alter_offsets(group_id, offsets).errors.items():
            raise BrokerError(f"group '{group_id}' ({partition}): {error.message}", code=error.code.name, group=group_id)

    # --- what can happen to consumers

    @checked()
    def expire_session(self, group_id: str, member: str) -> None:
        """Let the session of a member (its id, its instance id or its client id) run out now, as if it had been silent too long.

        The member hears UNKNOWN_MEMBER_ID at its next heartbeat; the others rebalance. Raises `NotFoundError`.
        """

        def expire(runtime: CoordinatorRuntime) -> None:
            shard = runtime.core.shard
            key = _session_timer(_group(runtime.core, group_id), member)
            shard.arm(key, 0)
            runtime.fire_due()

        self._with_runtime(expire)

    @checked()
    def force_rebalance(self, group_id: str) -> None:
        """Begin a rebalance of a classic group that nobody asked for: every member is told to join again.

        Raises:
            NotFoundError: no such group.
            UnsupportedError: a group of the consumer protocol, whose members never join again; `expire_session` moves partitions.
        """

        def rebalance(runtime: CoordinatorRuntime) -> None:
            group = _group(runtime.core, group_id)
            if not isinstance(group, ClassicGroup):
                raise UnsupportedError(
                    f"group '{group_id}' speaks the consumer protocol, in which nobody is told to join again; "
                    "use expire_session to move partitions",
                    group=group_id,
                )
            if not group.members:
                raise NotFoundError(f"group '{group_id}' has no members to rebalance", group=group_id)
            start_rebalance(runtime.core.shard, group)
            runtime.fire_due()

        self._with_runtime(rebalance)

    @checked()
    @contextmanager
    def lose_broker(self, number: int = 1) -> Iterator[None]:
        """Inside the block this broker (counted from 1) has closed its connections and refuses new ones."""
        if not 1 <= number <= self._brokers:
            raise UsageError(f"brokers are counted from 1 to {self._brokers}: there is no broker {number}")
        self._check_is_running()
        server = self._server.server
        self._server.run(server.stop_broker(number))
        try:
            yield
        finally:
            self._server.run(server.start_broker(number))

    # --- inside

    def _with_runtime(self, work: Callable[[CoordinatorRuntime], T]) -> T:
        runtime = self._server.server.services.runtime
        return self._in_loop(lambda: work(runtime))

    def _check_is_running(self) -> None:
        if not self._is_running:
            raise MisuseError("an EmbeddedServer runs inside its `with` block, and this is outside of it")

    def _in_loop(self, work: Callable[[], T]) -> T:
        self._check_is_running()

        async def run() -> T:
            await asyncio.sleep(0)
            return work()

        return self._server.run(run())


def _check_name(topic: str) -> None:
    problem = topic_name_problem(topic)
    if problem is not None:
        raise UsageError(problem)


def _group(core: GroupCoordinator, group_id: str) -> Group:
    group = core.shard.groups.get(group_id)
    if group is None:
        raise NotFoundError(f"there is no group '{group_id}'", group=group_id)
    return group


def _session_timer(group: Group, wanted: str) -> TimerKey:
    members: Any = getattr(group, "members", {})
    for member in members.values():
        instance_id = getattr(member, "group_instance_id", None) or getattr(member, "instance_id", None)
        if wanted in (member.member_id, instance_id, member.client_id):
            is_classic = isinstance(group, ClassicGroup)
            kind = TimerKind.SESSION if is_classic else TimerKind.CONSUMER_SESSION
            return TimerKey(kind, group.group_id, member.member_id)
    known = ", ".join(sorted(member.member_id for member in members.values())) or "none"
    raise NotFoundError(f"group '{group.group_id}' has no member '{wanted}' (members: {known})", group=group.group_id)
