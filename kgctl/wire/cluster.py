"""The brokers of a cluster, and who of them must be asked.

They are found through the bootstrap servers, connected once each, and asked in parallel: the coordinator of a group, the leader
of a partition, again where the answer was "not me" or "not yet"; and of its logs a leader tells the bounds, offsets by time
(ListOffsets), and bytes (Fetch).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from kgctl.errors import KgctlError, TimedOutError, UnreachableError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node, TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.connection import FETCH, FIND_COORDINATOR, LIST_OFFSETS, METADATA, Connection, Request, open_connection
from kgctl.wire.settings import Address, WireSettings

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """A topic's partitions, who leads each (-1: nobody) and who has it. ``error_code`` is Kafka's, 0 for none.

    ``topic_id`` is None where the broker tells none (before Kafka 2.8).
    """

    error_code: int
    leaders: Mapping[int, int]
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """Metadata's answer: the brokers by id, the topics that were asked for, and the cluster's id where it has one."""

    nodes: Mapping[int, Node]
    topics: Mapping[str, TopicLayout] = field(default_factory=dict)
    cluster_id: str | None = None


class Cluster:
    """Connections are made when they are first needed and kept until `close`. For one thread; `on_each` brings its own.

    Errors of one broker are its own: only what concerns the whole cluster is raised. ``coordinators`` remembers who coordinates
    which group, for `find_coordinators`.
    """

    def __init__(self, settings: WireSettings) -> None:
        self._settings = settings
        self._connections: dict[Address, Connection] = {}
        self.coordinators: dict[str, Node] = {}

    def any_broker(self, deadline: Deadline) -> Connection:
        """A connection to some broker: one that is open, else the first bootstrap server that answers.

        Raises `AuthError` at once, and when no server answers the reason that the last one gave.
        """
        for connection in self._connections.values():
            if connection.is_usable:
                return connection
        failures: list[UnreachableError] = []
        servers = self._settings.bootstrap
        for position, address in enumerate(servers):
            left = len(servers) - position
            try:
                return self._connect(address, deadline if left == 1 else deadline.part(1 / left))
            except UnreachableError as error:
                failures.append(error)
        raise _no_bootstrap_server(failures)

    def broker(self, node: Node, deadline: Deadline) -> Connection:
        """The connection to this broker. Raises `UnreachableError`, `AuthError`."""
        address = Address(node.host, node.port)
        known = self._connections.get(address)
        connection = known if known and known.is_usable else self._connect(address, deadline)
        connection.node = node
        return connection

    def on_each(
        self, work: Mapping[Node, T], task: Callable[[Connection, T], R], deadline: Deadline
    ) -> dict[Node, R | KgctlError]:
        """Do ``task`` at every broker of ``work``, at the same time; what it returned or the `KgctlError` that it raised.

        ``task`` runs in a thread of its own when there are several brokers.
        """
        results: dict[Node, R | KgctlError] = {}
        bugs: list[BaseException] = []

        def run(node: Node, item: T) -> None:
            try:
                results[node] = task(self._for_work(node, deadline), item)
            except KgctlError as error:
                results[node] = error
            except BaseException as error:  # noqa: BLE001 - a thread's exception would be lost; it is raised below
                bugs.append(error)

        threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in list(work.items())[1:]]
        for thread in threads:
            thread.start()
        for pair in list(work.items())[:1]:
            run(*pair)
        for thread in threads:
            thread.join()
        if bugs:
            raise bugs[0]
        return {node: results[node] for node in work}

    def _for_work(self, node: Node, deadline: Deadline) -> Connection:
        """`broker`, whose failure says that no request has been sent."""
        try:
            return self.broker(node, deadline)
        except UnreachableError as error:
            error.nothing_sent = True
            raise

    def layout(self, topics: list[str] | None, deadline: Deadline) -> ClusterLayout:
        """The brokers, and the partitions of these topics; None asks for all, an empty list for none."""
        asked = None if topics is None else [{"name": topic} for topic in topics]
        return layout_of(
            self.any_broker(deadline).call(METADATA, {"topics": asked, "allow_auto_topic_creation": False}, deadline)
        )

    def close(self) -> None:
        """Close all connections. Safe to call twice."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connect(self, address: Address, deadline: Deadline) -> Connection:
        connection = open_connection(address, self._settings, deadline)
        stale = self._connections.get(address)
        if stale:
            stale.close()
        self._connections[address] = connection
        return connection


def layout_of(answer: Any) -> ClusterLayout:
    """Read the answer to a Metadata request."""
    nodes = {broker.node_id: Node(broker.node_id, broker.host, broker.port) for broker in answer.brokers}
    return ClusterLayout(
        nodes, {topic.name: _topic_layout(topic) for topic in answer.topics}, getattr(answer, "cluster_id", None)
    )


def _topic_layout(topic: Any) -> TopicLayout:
    return TopicLayout(
        int(topic.error_code),
        {each.partition_index: each.leader_id for each in topic.partitions},
        {each.partition_index: tuple(each.replica_nodes) for each in topic.partitions},
        getattr(topic, "topic_id", None),
    )


def _no_bootstrap_server(failures: list[UnreachableError]) -> UnreachableError:
    """One server: its own error. Several: all of them, and a time-out only when that is all there was."""
    if len(failures) == 1:
        return failures[0]
    message = "no bootstrap server answers: " + "; ".join(failure.message for failure in failures)
    is_slow = all(isinstance(failure, TimedOutError) for failure in failures)
    return (TimedOutError if is_slow else UnreachableError)(message)


K = TypeVar("K", bound=Hashable)

_FIRST_WAIT_S = 0.02
_ELECTION_S = 0.2
"""After so long a partition without a leader is looked at once more: a new leader is there by then, where there can be one."""
_LONGEST_WAIT_S = 0.5
_BATCH_VERSION = 4  # FindCoordinator takes several keys from here on (KIP-699)
_ASK_AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that pass when the cluster has settled: asked again for a while. Any other is the answer."""

_COORDINATOR_PATIENCE = 0.5
_LEADER_PATIENCE = 0.2
"""How much of the time left goes into asking again, before the error is the answer: a leader that is away costs one row."""

_UNKNOWN_TOPIC = TopicLayout(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})


class Failure(NamedTuple):
    """An error of Kafka's for one thing that was asked, with the broker's own words where it had any."""

    code: ErrorCode
    message: str | None = None


NO_LEADER = Failure(ErrorCode.LEADER_NOT_AVAILABLE)
"""By the cluster's own word: none of those in sync is there, and only an operator can tell when one will be."""

LEFT_OUT = Failure(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer leaves it out")


class Route(NamedTuple):
    """Where each key must go, and the keys that can go nowhere."""

    by_node: Mapping[Node, list[Any]]
    failures: Mapping[Any, Failure]


def ask_coordinators(
    cluster: Cluster,
    group_ids: Iterable[str],
    ask: Callable[[Connection, list[str]], Mapping[str, R | Failure]],
    deadline: Deadline,
) -> dict[str, R | Failure]:
    """Ask the coordinator of each group, all coordinators at the same time; one answer a group, in the order given.

    ``ask`` gets a connection and the groups of that coordinator. A coordinator that does not answer is REQUEST_TIMED_OUT or
    NETWORK_EXCEPTION for its groups; when none answers and no group has an answer, the error is raised.
    """

    def find(groups: list[str], *, again: bool) -> Route:
        return find_coordinators(cluster, groups, deadline, forget=again)

    return _ask(cluster, group_ids, find, ask, deadline, patience=_COORDINATOR_PATIENCE)


def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    ask: Callable[[Connection, list[TopicPartition]], Mapping[TopicPartition, R | Failure]],
    deadline: Deadline,
    *,
    known: ClusterLayout | None = None,
) -> dict[TopicPartition, R | Failure]:
    """Ask the leader of each partition; as `ask_coordinators`. ``known`` is where to go first, where it names all leaders."""

    def find(wanted: list[TopicPartition], *, again: bool) -> Route:
        route = Route({}, {}) if known is None or again else _leaders_in(known, wanted)
        return route if route.by_node and not route.failures else find_leaders(cluster, wanted, deadline)

    return _ask(cluster, partitions, find, ask, deadline, patience=_LEADER_PATIENCE)


class _Find(Protocol):
    """Finds out where to go; ``again`` says that the last answer was wrong."""

    def __call__(self, keys: list[Any], /, *, again: bool) -> Route: ...


def _ask(
    cluster: Cluster,
    keys: Iterable[K],
    find: _Find,
    ask: Callable[[Connection, list[K]], Mapping[K, R | Failure]],
    deadline: Deadline,
    *,
    patience: float,
) -> dict[K, R | Failure]:
    until = deadline.part(patience)
    wanted = list(dict.fromkeys(keys))
    answers: dict[K, R | Failure] = {}
    pending, wait_s, is_second_look = wanted, _FIRST_WAIT_S, False
    while pending:
        try:
            route = find(pending, again=bool(answers))
        except UnreachableError as error:
            if not answers:
                error.nothing_sent = True
                raise
            break
        _ask_each(cluster, route, ask, deadline, answers)
        pending = [key for key in pending if _is_passing(answers.setdefault(key, LEFT_OUT))]
        if is_second_look:
            pending = [key for key in pending if answers[key] is not NO_LEADER]
        elif NO_LEADER in (answers[key] for key in pending):
            wait_s = _ELECTION_S
        if pending and not until.wait(wait_s):
            break
        is_second_look, wait_s = True, min(wait_s * 2, _LONGEST_WAIT_S)
    return {key: answers[key] for key in wanted}


def _ask_each(
    cluster: Cluster,
    route: Route,
    ask: Callable[[Connection, list[K]], Mapping[K, R | Failure]],
    deadline: Deadline,
    answers: dict[K, R | Failure],
) -> None:
    """One round: what each node of the route answers, into ``answers``."""
    answers.update(route.failures)
    results = cluster.on_each(route.by_node, ask, deadline)
    for node, result in results.items():
        if isinstance(result, KgctlError):
            answers.update(dict.fromkeys(route.by_node[node], _transport_failure(result)))
            for key in route.by_node[node]:
                cluster.coordinators.pop(key, None)  # a broker that is lost may have handed its groups over
        else:
            answers.update(result)
    _raise_if_nothing_was_learnt(results, answers)


def _is_passing(answer: object) -> bool:
    return isinstance(answer, Failure) and answer.code in _ASK_AGAIN


def _transport_failure(error: KgctlError) -> Failure:
    code = ErrorCode.REQUEST_TIMED_OUT if isinstance(error, TimedOutError) else ErrorCode.NETWORK_EXCEPTION
    return Failure(code, error.message)


def _raise_if_nothing_was_learnt(results: Mapping[Node, Any], answers: Mapping[Any, Any]) -> None:
    errors = [result for result in results.values() if isinstance(result, KgctlError)]
    transport = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION)
    if errors and all(isinstance(answer, Failure) and answer.code in transport for answer in answers.values()):
        raise errors[0]


def find_coordinators(cluster: Cluster, group_ids: Sequence[str], deadline: Deadline, *, forget: bool = False) -> Route:
    """The coordinator of each group: known from before, unless ``forget``, or asked for."""
    known = {} if forget else cluster.coordinators
    failures = _look_up([group for group in group_ids if group not in known], cluster, deadline)
    by_node: dict[Node, list[str]] = {}
    for group in group_ids:
        if group not in failures:
            by_node.setdefault(cluster.coordinators[group], []).append(group)
    return Route(by_node, failures)


def _look_up(group_ids: Sequence[str], cluster: Cluster, deadline: Deadline) -> dict[str, Failure]:
    """All in one request where the broker can (since Kafka 3.0). What is found is remembered, what is not is returned."""
    if not group_ids:
        return {}
    connection = cluster.any_broker(deadline)
    version = connection.version(FIND_COORDINATOR)
    if version >= _BATCH_VERSION:
        answer = connection.call(FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": list(group_ids)}, deadline)
        found = {each.key: each for each in answer.coordinators}
    else:
        requests = [Request(FIND_COORDINATOR, version, {"key": group, "key_type": 0}) for group in group_ids]
        found = dict(zip(group_ids, connection.call_all(requests, deadline), strict=True))
    failures: dict[str, Failure] = {}
    for group in group_ids:
        each = found.get(group)
        if each is None:
            failures[group] = LEFT_OUT
        elif each.error_code:
            failures[group] = Failure(ErrorCode(each.error_code), getattr(each, "error_message", None))
        else:
            cluster.coordinators[group] = Node(each.node_id, each.host, each.port)
    return failures


def find_leaders(cluster: Cluster, partitions: Sequence[TopicPartition], deadline: Deadline) -> Route:
    """The leader of each partition."""
    return _leaders_in(cluster.layout(sorted({partition.topic for partition in partitions}), deadline), partitions)


def _leaders_in(layout: ClusterLayout, partitions: Sequence[TopicPartition]) -> Route:
    by_node: dict[Node, list[TopicPartition]] = {}
    failures: dict[TopicPartition, Failure] = {}
    for partition in partitions:
        topic = layout.topics.get(partition.topic, _UNKNOWN_TOPIC)
        leader = layout.nodes.get(topic.leaders.get(partition.partition, -1))
        if leader:
            by_node.setdefault(leader, []).append(partition)
        elif topic.error_code:
            failures[partition] = _topic_failure(partition.topic, ErrorCode(topic.error_code))
        elif partition.partition not in topic.leaders:
            why = f"topic '{partition.topic}' has no partition {partition.partition} (it has {len(topic.leaders)})"
            failures[partition] = Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
        else:
            failures[partition] = NO_LEADER
    return Route(by_node, failures)


def _topic_failure(topic: str, code: ErrorCode) -> Failure:
    """Brokers tell topics that are hidden from a user and topics that do not exist with the same error."""
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Failure(code, f"topic '{topic}' does not exist, or this user may not see it")
    return Failure(code)


LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
_ISOLATION_SINCE = 2
_SINCE = {MAX_TIMESTAMP: (7, "the largest timestamp"), -4: (8, "its first local record"), -5: (9, "its last tiered record")}
"""Timestamps that are marks (KIP-734, KIP-405) -> the version that has them, and what is asked for."""
_PARTITIONS_PER_REQUEST = 2_000
_CLIENT = -1  # the replica id of whoever is no broker

Answers = Mapping[TopicPartition, int | Failure]


def list_offsets(
    connection: Connection,
    wanted: Sequence[TopicPartition],
    timestamps: Sequence[int],
    deadline: Deadline,
    *,
    read_committed: bool = False,
) -> list[Answers]:
    """One mapping a timestamp (milliseconds, or `LATEST`, `EARLIEST`, `MAX_TIMESTAMP`); all requests are on their way at once.

    Each has every partition that was asked for: one that the broker's answer leaves out is a failure.
    A request may name a partition only once, so each timestamp has requests of its own.
    """
    version = connection.version(LIST_OFFSETS)
    for since, what in (_SINCE[timestamp] for timestamp in timestamps if timestamp in _SINCE):
        if version < since:
            raise UnsupportedError(f"{connection.address} is too old to be asked for {what}")
    isolation = {"isolation_level": int(read_committed)} if version >= _ISOLATION_SINCE else {}
    batches = [wanted[at : at + _PARTITIONS_PER_REQUEST] for at in range(0, len(wanted), _PARTITIONS_PER_REQUEST)]
    requests = [
        Request(LIST_OFFSETS, version, {"replica_id": _CLIENT, **isolation, "topics": _topics(batch, timestamp)})
        for timestamp in timestamps
        for batch in batches
    ]
    answers: list[dict[TopicPartition, int | Failure]] = [dict.fromkeys(wanted, LEFT_OUT) for _ in timestamps]
    for position, response in enumerate(connection.stream(requests, deadline)):
        found = answers[position // len(batches)]
        for topic in response.topics:
            for each in topic.partitions:
                failure = Failure(ErrorCode(each.error_code)) if each.error_code else None
                found[TopicPartition(topic.name, each.partition_index)] = failure or each.offset
    return list(answers)


def _topics(partitions: Sequence[TopicPartition], timestamp: int) -> list[dict[str, object]]:
    by_topic: dict[str, list[dict[str, int]]] = {}
    for topic, partition in partitions:
        asked = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
        by_topic.setdefault(topic, []).append(asked)
    return [{"name": topic, "partitions": asked} for topic, asked in by_topic.items()]


_CONSUMER = -1
_READ_UNCOMMITTED = 0
_NO_SESSION = {"session_id": 0, "session_epoch": -1}


class FetchLimits(NamedTuple):
    """How much to send, and how long a broker may wait for something to send."""

    max_wait_ms: int = 500
    max_bytes: int = 32 << 20
    max_partition_bytes: int = 8 << 20


class Fetched(NamedTuple):
    """``records`` are batches from the one with the offset asked for on, the last of them perhaps cut off."""

    records: bytes
    high_watermark: int
    log_start_offset: int


def fetch(
    connection: Connection, offsets: Mapping[TopicPartition, int], limits: FetchLimits, deadline: Deadline
) -> dict[TopicPartition, Fetched | Failure]:
    """Ask one broker for what its partitions hold from these offsets on; an answer for each partition that it names."""
    topics: dict[str, list[dict[str, int]]] = {}
    for (topic, partition), offset in offsets.items():
        asked = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": limits.max_partition_bytes,
            "current_leader_epoch": -1,
            "log_start_offset": -1,
        }
        topics.setdefault(topic, []).append(asked)
    values = {
        "replica_id": _CONSUMER,
        "max_wait_ms": limits.max_wait_ms,
        "min_bytes": 1,
        "max_bytes": limits.max_bytes,
        "isolation_level": _READ_UNCOMMITTED,
        **_NO_SESSION,
        "topics": [{"topic": topic, "partitions": asked} for topic, asked in topics.items()],
        "forgotten_topics_data": [],
    }
    answer = connection.call(FETCH, values, deadline)
    code = getattr(answer, "error_code", 0)
    if code:
        return dict.fromkeys(offsets, Failure(ErrorCode(code)))
    return {
        TopicPartition(topic.topic, each.partition_index): Failure(ErrorCode(each.error_code))
        if each.error_code
        else Fetched(bytes(each.records or b""), each.high_watermark, getattr(each, "log_start_offset", -1))
        for topic in answer.responses
        for each in topic.partitions
    }
