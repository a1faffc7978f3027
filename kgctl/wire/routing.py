"""Who must be asked: the coordinator of a group, the leader of a partition; and when to ask again ("not me", "not yet")."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from kgctl.errors import KgctlError, TimedOutError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node, TopicPartition
from kgctl.wire.apis import FIND_COORDINATOR
from kgctl.wire.cluster import Cluster, TopicLayout
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

_FIRST_WAIT_S = 0.02
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
) -> dict[TopicPartition, R | Failure]:
    """Ask the leader of each partition; as `ask_coordinators`."""

    def find(wanted: list[TopicPartition], *, again: bool) -> Route:
        del again  # leaders are not remembered
        return find_leaders(cluster, wanted, deadline)

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
    pending, wait_s = wanted, _FIRST_WAIT_S
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
        if pending and not until.wait(wait_s):
            break
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
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
    layout = cluster.layout(sorted({partition.topic for partition in partitions}), deadline)
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
            failures[partition] = Failure(ErrorCode.LEADER_NOT_AVAILABLE)
    return Route(by_node, failures)


def _topic_failure(topic: str, code: ErrorCode) -> Failure:
    """Brokers tell topics that are hidden from a user and topics that do not exist with the same error."""
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Failure(code, f"topic '{topic}' does not exist, or this user may not see it")
    return Failure(code)
