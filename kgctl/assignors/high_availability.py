"""Which instance of a Kafka Streams application gets which task, by whose copies of the states are how far.

Kafka: HighAvailabilityTaskAssignor, TaskMovement, DefaultStandbyTaskAssignor, ClientTagAwareStandbyTaskAssignor, ClientState;
without racks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

from kgctl.assignors.client_tags import Tags, TagValues, UsedTags, agree
from kgctl.assignors.java_queue import PriorityQueue
from kgctl.model.values import frozen_in_order, hash_map_order, objects_hash, uuid_hash

LATEST_OFFSET = -2
"""The offset sum of a task that runs: nobody is further."""
UNKNOWN_OFFSET_SUM = -3


class NumberedTask(NamedTuple):
    """A task: a part of the topology, and a partition of what it reads."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


def number_hash(task: NumberedTask) -> int:
    """``hashCode`` of a ``TaskId`` without a named topology."""
    return objects_hash(task.subtopology, task.partition, 0)


@frozen_in_order
class TaskSettings:
    """The settings of Kafka Streams that the assignor goes by, under their names."""

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    rack_aware_assignment_tags: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class ClientState:
    """An instance: its stream threads, how far its states lag behind, and what it is given. ``key`` orders the instances."""

    process_id: UUID
    capacity: int
    lags: Mapping[NumberedTask, int]
    tags: Tags = field(default_factory=dict)
    active: set[NumberedTask] = field(default_factory=set)
    standby: set[NumberedTask] = field(default_factory=set)
    key: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        """Java's UUIDs are compared by their halves, which are signed."""
        high, low = self.process_id.int >> 64, self.process_id.int & (1 << 64) - 1
        self.key = high - (high >> 63 << 64), low - (low >> 63 << 64)

    @property
    def load(self) -> float:
        """How many tasks a thread has."""
        return (len(self.active) + len(self.standby)) / self.capacity

    def has(self, task: NumberedTask) -> bool:
        """Whether it is given the task, to run or as a copy."""
        return task in self.active or task in self.standby


def lags_of(offset_sums: Mapping[NumberedTask, int], end_offset_sums: Mapping[NumberedTask, int]) -> dict[NumberedTask, int]:
    """How far an instance's states are behind the ends of their changelogs. Kafka: ClientState#computeTaskLags."""
    found = {}
    for task, end in end_offset_sums.items():
        offset = offset_sums.get(task, 0)
        if offset in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM):
            found[task] = offset
        else:
            found[task] = end if end < offset else end - offset
    return found


Clients: TypeAlias = Sequence[ClientState]
Fits: TypeAlias = Callable[[ClientState], bool]
MayMove: TypeAlias = Callable[[ClientState, ClientState], bool]
_Movement: TypeAlias = tuple[NumberedTask, ClientState]


class _ByLoad:
    """The client with the least load, of those that are in it and fit. Kafka: ConstrainedPrioritySet.

    Loads change while clients are in it, and then its heap is no longer one: who comes out is as in Java only by the same steps.
    """

    def __init__(self, clients: Clients) -> None:
        self._queue = PriorityQueue[ClientState](lambda client: (client.load, client.key), clients)
        self._there = set(clients)

    def poll(self, fits: Fits) -> ClientState | None:
        refused: list[ClientState] = []
        while (client := self._queue.poll()) is not None:
            self._there.remove(client)
            if fits(client):
                break
            refused.append(client)
        self.offer(*hash_map_order(refused, hash_of=lambda each: uuid_hash(each.process_id)))
        return client

    def offer(self, *clients: ClientState) -> None:
        for client in clients:
            if client in self._there:
                self._queue.remove(client)
            self._there.add(client)
            self._queue.offer(client)


class HighAvailabilityTaskAssignor:
    """Kafka's default. An instance whose state of a task lags too far first warms up while one that is further runs the task."""

    def assign(
        self,
        clients: Iterable[ClientState],
        all_tasks: Collection[NumberedTask],
        stateful: Collection[NumberedTask],
        settings: TaskSettings,
    ) -> bool:
        """Give each task to a client. Return whether a later look may do better: a probing rebalance is needed."""
        ordered = sorted(clients, key=lambda client: client.key)
        tasks = sorted(stateful)
        _spread_active(ordered, tasks)
        if settings.num_standby_replicas and settings.rack_aware_assignment_tags:
            _spread_standbys_apart(ordered, tasks, settings)
        elif settings.num_standby_replicas:
            _spread_standbys(ordered, tasks, settings.num_standby_replicas)
        plan = _Movements(ordered, tasks, settings)
        needed = plan.move_active() + plan.move_standbys()
        _spread_stateless(ordered, sorted(set(all_tasks) - set(tasks)))
        return needed > 0


def _always(_source: ClientState, _destination: ClientState) -> bool:
    return True


def _spread_active(clients: Clients, tasks: Sequence[NumberedTask]) -> None:
    for number, task in enumerate(tasks):
        clients[number % len(clients)].active.add(task)
    _balance(clients, lambda client: client.active)


def _spread_standbys(clients: Clients, tasks: Sequence[NumberedTask], replicas: int) -> None:
    by_load = _ByLoad(clients)
    for task in tasks:
        _give_copies(by_load, task, replicas)
    _balance(clients, lambda client: client.standby)


def _give_copies(by_load: _ByLoad, task: NumberedTask, replicas: int) -> None:
    for _ in range(replicas):
        client = by_load.poll(lambda each: not each.has(task))
        if client is None:
            break
        client.standby.add(task)
        by_load.offer(client)


def _spread_standbys_apart(clients: Clients, tasks: Sequence[NumberedTask], settings: TaskSettings) -> None:
    """Copies on instances with other tags, as far as there are any; those that are left then go by load alone."""
    values = TagValues({client.key: client.tags for client in clients}, settings.rack_aware_assignment_tags)
    by_load, replicas = _ByLoad(()), settings.num_standby_replicas
    left = {}
    for task in tasks:
        by_load.offer(*clients)
        owner = next(client for client in clients if task in client.active)
        left[task] = replicas - _give_copies_apart(by_load, task, owner, UsedTags(values), replicas)
    by_load.offer(*clients)
    for task in hash_map_order(left, hash_of=number_hash):
        _give_copies(by_load, task, left[task])
    _balance(clients, lambda client: client.standby, lambda source, destination: agree(source.tags, destination.tags))


def _give_copies_apart(by_load: _ByLoad, task: NumberedTask, owner: ClientState, used: UsedTags, replicas: int) -> int:
    """Return how many were given."""
    client = owner
    for given in range(replicas):
        used.use(client.key, given + 1)
        found = by_load.poll(lambda each: not each.has(task) and not used.shares_with(each.key))
        if found is None:
            return given
        found.standby.add(task)
        client = found
    return replicas


def _spread_stateless(clients: Clients, tasks: Sequence[NumberedTask]) -> None:
    for task in tasks:
        min(clients, key=lambda client: (len(client.active) / client.capacity, client.key)).active.add(task)


def _balance(clients: Clients, of: Callable[[ClientState], set[NumberedTask]], may_move: MayMove = _always) -> None:
    goes_on = True
    while goes_on:
        goes_on = False
        for source in clients:
            for destination in clients:
                if source is not destination and may_move(source, destination):
                    goes_on |= _level(source, destination, of)


def _level(source: ClientState, destination: ClientState, of: Callable[[ClientState], set[NumberedTask]]) -> bool:
    has_moved = False
    for task in sorted(of(source)):
        if not _is_better(source, destination):
            break
        if not destination.has(task):
            of(source).remove(task)
            of(destination).add(task)
            has_moved = True
    return has_moved


def _is_better(source: ClientState, destination: ClientState) -> bool:
    """Whether one task more there makes the loads more alike. Kafka: HighAvailabilityTaskAssignor#shouldMoveATask."""
    skew = source.load - destination.load
    there = (len(destination.active) + len(destination.standby) + 1.0) / destination.capacity
    here = (len(source.active) + len(source.standby) - 1.0) / source.capacity
    return skew > 0 and 0 <= here - there < skew


class _Movements:
    """Who runs a task meanwhile, where the client that is to have it is not caught up. Kafka: TaskMovement."""

    def __init__(self, clients: Clients, tasks: Sequence[NumberedTask], settings: TaskSettings) -> None:
        self._clients = clients
        self._warmups_left = settings.max_warmup_replicas
        self._warmups: set[tuple[tuple[int, int], NumberedTask]] = set()
        most = settings.acceptable_recovery_lag
        self._caught_up = {task: {each.key for each in clients if _is_caught_up(each.lags[task], most)} for task in tasks}
        self._by_lag = {task: sorted(clients, key=lambda each: (each.lags[task], each.key)) for task in tasks}

    def move_active(self) -> int:
        """Let caught-up clients run the tasks of those that are not; how many that were."""
        planned = self._planned(lambda client: client.active)
        by_load = _ByLoad(self._clients)
        for task, destination in planned:
            ready = self._caught_up[task]
            source = by_load.poll(lambda each: each.key in ready and task in each.standby)  # noqa: B023  # called at once
            source = source or by_load.poll(lambda each: each.key in ready)  # noqa: B023
            source = source or self._furthest(task, destination, lambda _: True)
            assert source is not None, "a movement is planned only where another client is further"
            if task in source.standby:
                source.standby.remove(task)
                destination.standby.add(task)
            elif self._may_warm_up():
                destination.standby.add(task)
                self._warmups.add((destination.key, task))
            destination.active.remove(task)
            source.active.add(task)
            by_load.offer(source, destination)
        return len(planned)

    def move_standbys(self) -> int:
        """The same for copies, where there is another client to have them."""
        planned = self._planned(lambda client: client.standby)
        by_load, moved = _ByLoad(self._clients), 0
        for task, destination in planned:
            ready = self._caught_up[task]
            source = by_load.poll(lambda each: each.key in ready and not each.has(task))  # noqa: B023
            source = source or self._furthest(task, destination, lambda each: not each.has(task))  # noqa: B023
            if source is None:
                continue
            source.standby.add(task)
            if not self._may_warm_up():
                destination.standby.remove(task)
            by_load.offer(source, destination)
            moved += 1
        return moved

    def _planned(self, of: Callable[[ClientState], set[NumberedTask]]) -> list[_Movement]:
        """The tasks that somebody is further with than the client that is to have them, in the order of Java's queue."""
        queue = PriorityQueue[_Movement](lambda each: (len(self._caught_up[each[0]]), each[0]))
        for client in self._clients:
            for task in sorted(of(client)):
                if (client.key, task) not in self._warmups and self._is_behind(task, client):
                    queue.offer((task, client))
        return [movement for _ in range(len(queue)) if (movement := queue.poll()) is not None]

    def _is_behind(self, task: NumberedTask, client: ClientState) -> bool:
        if client.key in self._caught_up[task]:
            return False
        return self._by_lag[task][0].lags[task] < client.lags[task]

    def _furthest(self, task: NumberedTask, destination: ClientState, fits: Fits) -> ClientState | None:
        for client in self._by_lag[task]:
            if client is destination:
                break
            if fits(client):
                return client
        return None

    def _may_warm_up(self) -> bool:
        self._warmups_left -= 1
        return self._warmups_left >= 0


def _is_caught_up(lag: int, most: int) -> bool:
    return lag == LATEST_OFFSET or most == 2**63 - 1 or 0 <= lag <= most
