"""A cluster inside the test's process, whose sessions expire, whose groups rebalance and whose brokers go when the test says."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from kgctl.errors import BrokerError, MisuseError, NotFoundError, UnsupportedError, UsageError, did_you_mean
from kgctl.model.groups import ByPartition, Committable, GroupDescription, GroupState, TopicPartition
from kgctl.server.access import Denial
from kgctl.server.api.transactions import abort_overdue
from kgctl.server.background import BackgroundServer
from kgctl.server.differences import AT_ONCE
from kgctl.server.runtime import CoordinatorRuntime, steady_clock
from kgctl.testing.faults import Fault, Faults
from kgctl.testing.security import OWN_USER, Security, denial_of, listeners_of
from kgctl.testing.topics import ServerTopics, check_name, until

if TYPE_CHECKING:
    from kgctl.group.consumer_group import ConsumerGroup
    from kgctl.library.clusters import Admin

T = TypeVar("T")

QUICK = {
    "group.min.session.timeout.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "500",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.session.timeout.ms": "4000",
    "group.share.min.session.timeout.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.session.timeout.ms": "500",
}
"""What ``quick=True`` adds: members may be short-lived, those of the newer protocols beat often, and locks of share groups may be
as short as a second. No broker has these."""


class EmbeddedServer(ServerTopics):
    """A context manager: kgctl's server, listening on free local ports inside the block. Real clients connect to ``bootstrap``.

    ``topics``: names with numbers of partitions. ``config`` has Kafka's broker settings, whose defaults are Kafka's but for
    ``group.initial.rebalance.delay.ms`` and ``group.streams.initial.rebalance.delay.ms``, which are 0. ``quick`` lowers bounds
    that a broker has as well: sessions of 100 ms and more are taken (Kafka: of 6 s), members of the consumer protocol, of share
    and of streams groups beat every 100 ms (5 s) with sessions of 4 s (45 s), and a share group's locks may be as short as 1 s
    (15 s).
    ``broker_version``: answer as a broker of "3.9", "4.0", "4.1", "4.2" or "4.3", the newest, does. ``brokers``: that many
    listeners. ``data``: a folder to keep everything in; in memory without it.

    ``acls`` are access rules such as "allow alice read topic:orders", "allow User:* all group:billing-*" and "deny bob write
    topic:*"; with some, or none, ``acls=()``, nobody may do anything that no rule allows. ``protocol`` is PLAINTEXT, SSL,
    SASL_PLAINTEXT or SASL_SSL, ``users`` are names with passwords for SASL, by PLAIN and SCRAM. A certificate for this machine is
    made, by the extra ``testing``, unless ``config`` has one (``ssl.keystore.location``). `properties` is what a client needs.

    ``listeners``: more of them, which every broker has beside the one of ``protocol``: names with protocols, {"SSL": "SSL",
    "PROXY": "PLAINTEXT"}. A client is told the addresses of the listener that it came in by; ``advertised`` says "HOST:PORT" of
    some listeners by name, where clients find them elsewhere (the port of a second broker is the next one).

    Raises, when it is entered:
        UsageError: a setting that cannot be. StorageError: the data folder cannot be used.
    """

    @checked(not_empty=("data", "protocol"))
    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        config: Mapping[str, str] | None = None,
        quick: bool = False,
        brokers: int = 1,
        data: Path | str | None = None,
        broker_version: str | None = None,
        acls: Sequence[str] | None = None,
        protocol: str = "PLAINTEXT",
        users: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, str] | None = None,
    ) -> None:
        if brokers < 1:
            raise UsageError(f"brokers must be 1 or more, not {brokers}")
        for name in topics or {}:
            check_name(name)
        settings = with_broker_version(config or {}, broker_version, otherwise={**AT_ONCE, **(QUICK if quick else {})})
        self._brokers = brokers
        folder = None if data is None else Path(data)
        every = listeners_of(protocol, listeners or {}, advertised or {})
        self._security = Security(every, users, settings)
        self._faults, self._clock = Faults(self._security.own_client_id, OWN_USER), _MovedClock()
        server = BackgroundServer(
            topics=topics,
            config={**settings, **self._security.config()},
            acls=acls,
            listeners=every,
            brokers=brokers,
            data=folder,
            compacts=True,
            dispatcher=self._faults.dispatcher,
            clock=self._clock,
        )
        super().__init__(server)
        self._admin: Admin | None = None
        self._was_entered = False

    @property
    def bootstrap(self) -> str:
        """``HOST:PORT`` of each broker that is up, with commas."""
        self._check_is_running()
        return self._server.bootstrap

    @checked(not_empty=("listener",))
    def bootstrap_of(self, listener: str) -> str:
        """The same of another listener. Raises `UsageError` where there is none of this name."""
        self._check_is_running()
        return self._server.server.bootstrap_of(listener)

    @property
    def admin(self) -> Admin:
        """A `kgctl.Admin` on this cluster, made when it is first asked for."""
        if self._admin is None:
            from kgctl.library.clusters import connect

            self._admin = connect(self.bootstrap, properties=self._security.own_properties(self.bootstrap))
        return self._admin

    @checked(not_empty=("user", "mechanism", "listener"))
    def properties(self, user: str | None = None, *, mechanism: str = "PLAIN", listener: str | None = None) -> dict[str, str]:
        """What a client needs to get in, by librdkafka's names: as ``user``, or as the first one of the cluster's ``users``.

        By the first listener, or the one of this name.

        Raises:
            UsageError: no such user, mechanism or listener, or one to which nobody logs in.
        """
        bootstrap = self.bootstrap if listener is None else self.bootstrap_of(listener)
        return self._security.properties(bootstrap, user, mechanism, listener)

    def __enter__(self) -> Self:
        if self._was_entered:
            raise MisuseError("an EmbeddedServer runs once: make another one for another `with` block")
        self._was_entered = True
        self._server.__enter__()
        self._server.server.services.access.owner = f"User:{OWN_USER}"
        self._is_running = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._is_running = False
        if self._admin is not None:
            self._admin.close()
        self._server.__exit__(kind, error, traceback)
        self._security.close()

    def __del__(self) -> None:
        if getattr(self, "_is_running", False):
            warnings.warn(f"unclosed {self!r}: use `with`", ResourceWarning, stacklevel=1, source=self)
            self._server.end()

    @checked(not_empty=("group_id", "state"))
    def wait_for_group(
        self,
        group_id: str,
        *,
        state: GroupState | str | None = GroupState.STABLE,
        members: int | None = None,
        committed: Mapping[tuple[str, int], int] | None = None,
        timeout_ms: int = 10_000,
    ) -> GroupDescription:
        """Wait until the group is in this state, has so many members, and has committed these offsets or later ones.

        Raises:
            TimedOutError: it is not so when the time is up; the message says how it is.
            UsageError: no state of groups has this name.
        """
        wanted = None if state is None else _state(state)
        positions = {TopicPartition(*each): offset for each, offset in (committed or {}).items()}

        def look() -> tuple[GroupDescription | None, Mapping[TopicPartition, int]]:
            found = self.admin.describe_groups([group_id]).values.get(group_id)
            return found, self.committed(group_id) if positions and found is not None else {}

        def is_so(seen: tuple[GroupDescription | None, Mapping[TopicPartition, int]]) -> bool:
            found, offsets = seen
            return (
                found is not None
                and wanted in (None, found.state)
                and members in (None, len(found.members))
                and all(offsets.get(each, -1) >= offset for each, offset in positions.items())
            )

        found, _ = until(look, is_so, timeout_ms, lambda seen: _as_it_is(group_id, *seen))
        assert found is not None
        return found

    @checked(not_empty=("group_id",))
    def consumer_group(self, group_id: str, *topics: str, **settings: Any) -> ConsumerGroup:
        """A `kgctl.ConsumerGroup` on this cluster with quick heartbeats; close it, or use ``with``.

        It is the first of the cluster's ``users``, unless ``properties`` are those of another one, or by another listener.
        """
        from kgctl.group.consumer_group import ConsumerGroup

        quick = {} if settings.get("protocol") == "consumer" else {"heartbeat_interval_ms": 50}
        properties = settings.pop("properties", None) or self.properties()
        login = {name: value for name, value in properties.items() if name != "bootstrap.servers"}
        given = {**quick, "auto_offset_reset": "earliest", "retry_backoff_ms": 10, "properties": login, **settings}
        return ConsumerGroup(properties.get("bootstrap.servers", self.bootstrap), group_id, topics, **given)

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
    def advance(self, ms: int, *, keep: Sequence[str] = ()) -> None:
        """Let so much time pass at once for the coordinator: sessions, rebalances, transactions and retention end that would.

        ``keep``: members (their ids, instance ids or client ids) whose sessions go on as if they had beaten all the time; all
        others have been silent. Records that are written later have later times.

        Raises:
            UsageError: time that would go back.
            NotFoundError: no group has a member of this name.
        """
        if ms < 0:
            raise UsageError(f"ms must be 0 or more, not {ms}: time does not go back")

        def move(runtime: CoordinatorRuntime) -> None:
            timers = runtime.core.shard.timers
            kept = [key for name in keep for key in _session_timers(runtime.core, name)]
            self._clock.ahead_ms += ms
            for key in kept:
                if (deadline_ms := timers.deadline_ms(key)) is not None:
                    timers.arm(key, deadline_ms + ms)
            runtime.clock_moved()
            self._server.server.services.shares.clock_moved()

        self._with_runtime(move)
        self._server.run(abort_overdue(self._server.server.services))

    @checked()
    def freeze(
        self, broker: int | None = None, *, client_id: str | None = None, requests: Sequence[str] = ()
    ) -> AbstractContextManager[Fault]:
        """Inside the block requests are taken and not answered; they are, when it ends. Time goes on: sessions run out.

        Of one ``broker`` (counted from 1), of one client, of these kinds of ``requests`` (``["OffsetCommit"]``), or of all. The
        block has a `Fault`, whose ``hits`` say how many requests were held up.

        Raises:
            UsageError: no such broker, or no such kind of request.
        """
        return self._fault(broker, client_id, requests, delay_ms=None)

    @checked()
    def slow(
        self, delay_ms: int, broker: int | None = None, *, client_id: str | None = None, requests: Sequence[str] = ()
    ) -> AbstractContextManager[Fault]:
        """Inside the block each of these requests waits so long before it is looked at. As `freeze` otherwise."""
        return self._fault(broker, client_id, requests, delay_ms=delay_ms)

    @checked()
    def cut(
        self,
        broker: int | None = None,
        *,
        client_id: str | None = None,
        requests: Sequence[str] = (),
        is_done_first: bool = False,
    ) -> AbstractContextManager[Fault]:
        """Inside the block the connection ends where each of these requests should be answered.

        ``is_done_first``: the request is done, and only its answer is lost: a commit that is stored, and whose client does not
        know. As `freeze` otherwise.
        """
        return self._fault(broker, client_id, requests, is_cut=True, is_done_first=is_done_first)

    @contextmanager
    def _fault(
        self,
        broker: int | None,
        client_id: str | None,
        requests: Sequence[str],
        *,
        delay_ms: int | None = 0,
        is_cut: bool = False,
        is_done_first: bool = False,
    ) -> Iterator[Fault]:
        self._check_is_running()
        node_id = None if broker is None else self._node_id(broker)
        known = {spec.name: spec.key for spec in self._server.server.services.registry.specs()}
        for name in requests:
            if name not in known:
                raise UsageError(f"requests names {name!r}, which is none{did_you_mean(name, known)}")
        keys = frozenset(known[name] for name in requests) or None
        fault = Fault(node_id, client_id, keys, delay_ms, is_cut=is_cut, is_done_first=is_done_first)
        self._in_loop(lambda: self._faults.begin(fault))
        try:
            yield fault
        finally:
            self._in_loop(lambda: self._faults.end(fault))

    @checked()
    @contextmanager
    def deny(self, *rules: str) -> Iterator[Denial]:
        """Inside the block this is refused, as a broker's access control lists refuse it, whatever is allowed otherwise.

        ``rules`` say who (everyone, where nobody is named) may not do what: "write topic:orders", "alice read group:billing-*",
        "User:* describe,create cluster". The block has a `Denial`, whose ``hits`` say how often somebody was refused.

        Raises:
            UsageError: a rule that is none.
        """
        denial = denial_of(rules)
        self._in_loop(lambda: self._server.server.services.access.begin(denial))
        try:
            yield denial
        finally:
            self._in_loop(lambda: self._server.server.services.access.end(denial))

    @checked()
    @contextmanager
    def lose_broker(self, number: int = 1) -> Iterator[None]:
        """Inside the block this broker (counted from 1) has closed its connections and refuses new ones."""
        self._check_is_running()
        server, node_id = self._server.server, self._node_id(number)
        self._server.run(server.stop_broker(node_id))
        try:
            yield
        finally:
            self._server.run(server.start_broker(node_id))

    # --- inside

    def _node_id(self, broker: int) -> int:
        """Of a broker by its number, whatever ``node.id`` the first one has."""
        if not 1 <= broker <= self._brokers:
            raise UsageError(f"brokers are counted from 1 to {self._brokers}: there is no broker {broker}")
        return self._server.server.services.cluster.brokers[broker - 1].node_id


def _group(core: GroupCoordinator, group_id: str) -> Group:
    group = core.shard.groups.get(group_id)
    if group is None:
        raise NotFoundError(f"there is no group '{group_id}'", group=group_id)
    return group


def _session_timer(group: Group, wanted: str) -> TimerKey:
    found = next((key for names, key in _sessions(group) if wanted in names), None)
    if found is None:
        known = ", ".join(sorted(key.member_id for _, key in _sessions(group))) or "none"
        raise NotFoundError(f"group '{group.group_id}' has no member '{wanted}' (members: {known})", group=group.group_id)
    return found


def _session_timers(core: GroupCoordinator, wanted: str) -> list[TimerKey]:
    """Those of all members of this name, in whatever group."""
    found = [key for group in core.shard.groups.values() for names, key in _sessions(group) if wanted in names]
    if not found:
        raise NotFoundError(f"no group has a member '{wanted}'")
    return found


def _sessions(group: Group) -> Iterator[tuple[tuple[str | None, ...], TimerKey]]:
    """The names of each member, and its session's timer."""
    members: Any = getattr(group, "members", {})
    for member in members.values():
        instance_id = getattr(member, "group_instance_id", None) or getattr(member, "instance_id", None)
        kind = TimerKind.SESSION if isinstance(group, ClassicGroup) else TimerKind.CONSUMER_SESSION
        yield (member.member_id, instance_id, member.client_id), TimerKey(kind, group.group_id, member.member_id)


def _state(name: str) -> GroupState:
    if name not in set(GroupState):
        raise UsageError(f"state names {name!r}, which is none{did_you_mean(name, GroupState)}")
    return GroupState(name)


def _as_it_is(group_id: str, found: GroupDescription | None, offsets: Mapping[TopicPartition, int]) -> str:
    if found is None:
        return f"group '{group_id}' does not exist"
    told = ", ".join(f"{partition} at {offset}" for partition, offset in sorted(offsets.items()))
    return f"group '{group_id}' is {found.state} with {len(found.members)} members{f', and has committed {told}' if told else ''}"


class _MovedClock:
    """The server's clock, which a test moves forward."""

    def __init__(self) -> None:
        self._clock = steady_clock()
        self.ahead_ms = 0

    def __call__(self) -> int:
        return self._clock() + self.ahead_ms
