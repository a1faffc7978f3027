"""A running consumer of the kind that keeps its group in ZooKeeper: it registers, claims, rebalances and commits. It fetches
nothing: records are read with whatever client one has, from the offsets that it hands out.

::

    with ConsumerGroup("zk1:2181/kafka", "payments", ["orders"], on_assigned=begin, on_revoked=end) as group:
        ...
        group.commit({TopicPartition("orders", 0): 42})

Partitions go to instances by range, as Kafka's own high-level consumer deals them out (kafka.consumer.RangeAssignor): both may
be in one group. What stays with an instance is kept through a rebalance; what goes is handed to ``on_revoked`` first, and
released when that returns, so that the next owner starts where this one committed.

The way out of ZooKeeper: offsets of its groups, copied into groups on Kafka (`plan_migration`): a reset of the Kafka groups to
what the others have committed, with all that a reset has. The source must be at rest, before and after; all that was written is
read back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from kgctl.admin import Committed, GroupAdmin, zookeeper
from kgctl.admin.notation import FromFile, PlannedOffset
from kgctl.admin.offset_reset import ResetPlan, ResetRequest, ResetResult
from kgctl.admin.resets import plan_reset
from kgctl.admin.topic_scopes import TopicScope, is_within
from kgctl.admin.zookeeper import Registration, registry
from kgctl.admin.zookeeper.admin import write_offsets
from kgctl.admin.zookeeper.registry import Registry
from kgctl.errors import KgctlError, NotFoundError, UsageError, users_code
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from kgctl.model.values import frozen_in_order

RETRY_S = 0.1
ENDING_S = 30.0

Assigned = Callable[[Mapping[TopicPartition, int | None]], None]
"""Told of partitions that are now this instance's, each with the committed offset; None where nothing is committed."""
Revoked = Callable[[frozenset[TopicPartition]], None]
"""Told of partitions that are to go; they are still this instance's until it returns, unless the session was lost."""


def assign_range(instances: Mapping[str, Registration], topics: Mapping[str, int]) -> dict[str, set[TopicPartition]]:
    """Deal out the partitions of each topic among the streams of the instances that read it; instance -> partitions.

    Streams are sorted by ``<instance>-<number>`` as text; each gets so many partitions in a row, the first ones one more.
    Kafka: kafka.consumer.RangeAssignor#assign.
    """
    assigned: dict[str, set[TopicPartition]] = {name: set() for name in instances}
    for topic, count in topics.items():
        streams = sorted(
            (f"{name}-{number}", name)
            for name, registration in instances.items()
            for number in range(_streams(registration, topic))
        )
        start = 0
        for position, (_, name) in enumerate(streams):
            size = count // len(streams) + (position < count % len(streams))
            assigned[name].update(TopicPartition(topic, number) for number in range(start, start + size))
            start += size
    return assigned


def _streams(registration: Registration, topic: str) -> int:
    """How many streams an instance has for a topic; those of a list count for each topic that it means."""
    if not registration.reads(topic):
        return 0
    return registration.subscription.get(topic) or max(registration.subscription.values(), default=1)


class ConsumerGroup:
    """One instance of a group, at work from `start` to `close` in a thread of its own, which makes the callbacks.

    An error in that thread ends the instance: everything is released, and the next call raises it. What a callback raises is told
    as `UserCodeError`, with its file and line, and is the cause. A lost session is no error: the partitions are revoked, and the
    instance registers anew.
    """

    def __init__(
        self,
        zookeeper: str,
        group: str,
        topics: Sequence[str] | Registration,
        *,
        on_assigned: Assigned | None = None,
        on_revoked: Revoked | None = None,
        properties: Mapping[str, str] | None = None,
        session_ms: int = 6_000,
        timeout_ms: int = 10_000,
        instance: str | None = None,
    ) -> None:
        """Nothing is contacted before `start`.

        Raises:
            UsageError: no topics, or an address, property or name that cannot be.
        """
        if not (topics.subscription if isinstance(topics, Registration) else topics):
            raise UsageError("a consumer needs at least one topic")
        self._registry = Registry.connect(zookeeper, properties, timeout_ms=timeout_ms, session_ms=session_ms)
        self._group = self._registry.group(group)
        self._instance = self._group.new_instance(instance)
        self._topics = topics
        self._on_assigned = on_assigned or _nothing_to_do
        self._on_revoked = on_revoked or _nothing_to_do
        self._claimed: frozenset[TopicPartition] = frozenset()
        self._changed = threading.Event()
        self._settled = threading.Condition()
        self._rebalances = 0
        self._lost = self._closing = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"kgctl-{group}", daemon=True)

    @property
    def instance(self) -> str:
        """Return the instance's id."""
        return self._instance.name

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that the instance claims now."""
        return self._claimed

    @property
    def rebalances(self) -> int:
        """Return how many rebalances are over."""
        return self._rebalances

    def start(self) -> None:
        """Register, and begin to claim.

        Raises:
            InstanceRegisteredError: an instance of this id is running.
            UnreachableError, AuthError: as every call.
        """
        self._instance.register(self._topics)
        self._registry.connection.on_state(self._on_state)
        self._group.watch_instances(self._wake)
        self._watch_topics()
        self._thread.start()

    def wait(self, rebalances: int, timeout_s: float) -> bool:
        """Whether so many rebalances are over, within the time.

        Raises:
            KgctlError: what ended the instance.
        """
        with self._settled:
            reached = self._settled.wait_for(lambda: self._rebalances >= rebalances or self._failure is not None, timeout_s)
        self._raise_failure()
        return reached

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of claimed partitions, in one transaction for up to 1,000.

        Raises:
            PartitionNotClaimedError: one is not claimed by this instance (any more); nothing is committed.
            KgctlError: what ended the instance, or why it could not be written.
        """
        self._raise_failure()
        for partition, offset in offsets.items():
            if partition not in self._claimed:
                raise zookeeper.PartitionNotClaimedError(self._group.name, instance=self.instance, **partition._asdict())
            zookeeper.check_offset(offset)
        for error in write_offsets(self._registry.connection, self._group.name, offsets, guarded=False).values():
            raise error

    def close(self) -> None:
        """Revoke and release everything, deregister, and end the session. Safe to call twice; not from a callback.

        Raises:
            KgctlError: what ended the instance before.
        """
        if not self._closing:
            self._closing = True
            self._changed.set()
            if self._thread.is_alive():
                self._thread.join(ENDING_S)
            self._registry.close()
            self._raise_failure()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _wake(self, _: object) -> bool:
        self._changed.set()
        return True

    def _on_state(self, state: str) -> None:
        """Take a change of the connection's state, in a thread of kazoo."""
        self._lost = self._lost or (state == "LOST" and not self._closing)
        self._changed.set()

    def _watch_topics(self) -> None:
        connection = self._registry.connection
        if isinstance(self._topics, Registration) and self._topics.pattern is not zookeeper.Pattern.STATIC:
            connection.ensure(zookeeper.TOPICS)
            connection.watch_children(zookeeper.TOPICS, self._wake)
            return
        for topic in self._topics.subscription if isinstance(self._topics, Registration) else self._topics:
            connection.watch_data(f"{zookeeper.TOPICS}/{topic}", self._wake)

    def _run(self) -> None:
        try:
            while not self._closing:
                self._changed.wait()
                self._changed.clear()
                self._rebalance()
        except Exception as error:  # noqa: BLE001 - whatever it is, the owner of this instance is told
            self._failure = error
        finally:
            self._leave()

    def _rebalance(self) -> None:
        """Bring the claims to what is this instance's, by those that are running now; again where they change meanwhile."""
        if self._closing or not self._registry.connection.is_connected:
            return
        if self._lost:
            self._register_anew()
        wanted = self._wanted()
        self._revoke(self._claimed - wanted)
        missing = wanted - self._claimed
        while missing and not self._changed.is_set():
            claimed = frozenset(partition for partition in sorted(missing) if self._claim(partition))
            self._assign(claimed)
            missing -= claimed
            if missing:
                self._changed.wait(RETRY_S)
        if not missing:
            with self._settled:
                self._rebalances += 1
                self._settled.notify_all()

    def _wanted(self) -> frozenset[TopicPartition]:
        connection = self._registry.connection
        groups = registry.read_groups(connection, [self._group.name], offsets=False).found
        running = groups[self._group.name].instances if self._group.name in groups else {}
        instances = {name: registration for name, registration in running.items() if registration is not None}
        return frozenset(assign_range(instances, registry.read_topics(connection)).get(self.instance, ()))

    def _claim(self, partition: TopicPartition) -> bool:
        try:
            self._instance.claim(*partition)
        except zookeeper.PartitionClaimedError:
            return False
        return True

    def _assign(self, partitions: frozenset[TopicPartition]) -> None:
        if not partitions:
            return
        self._claimed |= partitions
        committed = {partition: self._group.fetch(*partition) for partition in sorted(partitions)}
        with users_code("on_assigned", lets_by=(KgctlError,)):
            self._on_assigned(committed)

    def _tell_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        with users_code("on_revoked", lets_by=(KgctlError,)):
            self._on_revoked(partitions)

    def _revoke(self, partitions: frozenset[TopicPartition]) -> None:
        """The application ends its work on them before anybody else can begin."""
        if not partitions:
            return
        try:
            self._tell_revoked(partitions)
        finally:
            self._claimed -= partitions
            for partition in sorted(partitions):
                self._release(partition)

    def _release(self, partition: TopicPartition) -> None:
        with suppress(zookeeper.PartitionNotClaimedError, zookeeper.SessionLostError):  # it went with its session
            self._instance.release(*partition)

    def _register_anew(self) -> None:
        """After a lost session nothing is claimed any more, and others may have the partitions already."""
        self._lost = False
        gone, self._claimed = self._claimed, frozenset()
        if gone:
            self._tell_revoked(gone)
        try:
            self._instance.register(self._topics)
        except zookeeper.InstanceRegisteredError:
            self._lost = True  # the old session's is still there, for a moment
            self._changed.wait(RETRY_S)
            self._changed.set()

    def _leave(self) -> None:
        try:
            self._revoke(self._claimed)
            self._instance.deregister()
        except zookeeper.InstanceNotRegisteredError:
            pass
        except KgctlError as error:
            self._failure = self._failure or error
        except Exception as error:  # noqa: BLE001 - a callback's
            self._failure = self._failure or error
        finally:
            with self._settled:
                self._settled.notify_all()


def _nothing_to_do(_: object) -> None:
    """Do nothing, for a consumer without a listener."""


NOT_VERIFIED = "NOT_VERIFIED"


@frozen_in_order
class Migration:
    """What is to be copied. ``names`` maps each source to its target; ``active`` are the sources with running instances."""

    names: Mapping[str, str]
    offsets: Mapping[str, Committed]
    plan: ResetPlan
    active: Mapping[str, int]

    def for_execution(self) -> ResetPlan:
        """The plan without the targets of active sources, which are errors of it."""
        refused = [zookeeper.RunningInstancesError(source, count) for source, count in self.active.items()]
        targets = {self.names[source] for source in self.active}
        groups = tuple(group for group in self.plan.groups if group.group_id not in targets)
        return ResetPlan(groups, (*self.plan.errors, *refused))


def plan_migration(
    source: GroupAdmin, target: GroupAdmin, names: Mapping[str, str], scopes: Sequence[TopicScope] = (), *, clamp: bool = True
) -> Migration:
    """Look at both sides and change nothing. ``names``: source -> target; ``scopes``: only these topics and partitions."""
    described = source.describe_groups(list(names))
    errors = [error.to_exception(group=group_id) for group_id, error in described.errors.items()]
    present = [name for name in names if name in described.values]
    committed = source.list_committed_offsets(present)
    errors += [error.to_exception(group=group_id) for group_id, error in committed.errors.items()]
    errors += [flaw for flaws in (described.flaws, committed.flaws) for group in flaws.values() for flaw in group]
    offsets = {name: _within(committed.values[name], scopes) for name in present if name in committed.values}
    errors += [_nothing(name) for name, commits in offsets.items() if not commits]
    wanted = {names[name]: _planned(commits) for name, commits in offsets.items() if commits}
    plan = ResetPlan(())
    if wanted:
        plan = plan_reset(target, ResetRequest(tuple(wanted), FromFile(wanted), clamp=clamp, create=True))
    active = {name: len(group.members) for name, group in described.values.items() if not group.state.is_inactive}
    return Migration(names, offsets, ResetPlan(plan.groups, (*errors, *plan.errors)), active)


def verify_migration(
    source: GroupAdmin, target: GroupAdmin, migration: Migration, done: Mapping[str, Sequence[TopicPartition]]
) -> list[KgctlError]:
    """What is not as it should be after the deed. ``done``: target -> the partitions that were written, or were right already."""
    targets = {name: migration.names[name] for name in migration.offsets if migration.names[name] in done}
    if not targets:
        return []
    described, committed = source.describe_groups(list(targets)), source.list_committed_offsets(list(targets))
    written = target.list_committed_offsets(list(targets.values()))
    running, now, there = described.values, committed.values, written.values
    failed = (*described.errors.items(), *committed.errors.items(), *written.errors.items())
    problems = [not_read_back(error.message, group) for group, error in failed]
    planned = {(row.group_id, row.partition): row.new for row in migration.plan.rows if row.result is not ResetResult.FAILED}
    for name, to_group in targets.items():
        if name in running and not running[name].state.is_inactive:
            problems.append(zookeeper.RunningInstancesError(name, len(running[name].members)))
        for partition in done[to_group] if name in now and to_group in there else ():
            wanted, found = planned.get((to_group, partition)), there[to_group].get(partition)
            if wanted is not None and (found is None or found.offset != wanted.offset):
                problems.append(_differs(to_group, partition, f"{wanted.offset} was written, {_shown(found)} is there"))
            before, after = migration.offsets[name].get(partition), now[name].get(partition)
            if after != before:
                problems.append(_differs(name, partition, f"{_shown(before)} was copied, {_shown(after)} is committed now"))
    return problems


def not_read_back(why: str, group: str | None = None) -> KgctlError:
    """What was done may be so, or not: nobody could look."""
    return KgctlError(f"what was written could not be read back: {why}", code=NOT_VERIFIED, group=group)


def _within(commits: Committed, scopes: Sequence[TopicScope]) -> Committed:
    return {partition: commit for partition, commit in commits.items() if not scopes or is_within(partition, scopes)}


def _planned(commits: Committed) -> dict[TopicPartition, PlannedOffset]:
    return {partition: PlannedOffset(commit) for partition, commit in sorted(commits.items())}


def _nothing(group: str) -> NotFoundError:
    return NotFoundError(f"group {group!r} has no committed offsets there: nothing to copy", group=group)


def _differs(group: str, partition: TopicPartition, how: str) -> KgctlError:
    message = f"group {group!r}, {partition}: {how}"
    return KgctlError(message, code=NOT_VERIFIED, group=group, topic=partition.topic, partition=partition.partition)


def _shown(commit: OffsetAndMetadata | None) -> str:
    return "no offset" if commit is None else str(commit.offset)
