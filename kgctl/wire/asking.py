"""Who of a cluster must be asked: the coordinator of each group, the leader of each partition; all of them at the same time, and
again where a connection was lost, or the answer was "not me" or "not yet"."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kgctl.errors import KgctlError, TimedOutError, UnreachableError, UnsupportedError
from kgctl.model.error_codes import UNSETTLED, ErrorCode
from kgctl.model.groups import Node, TopicPartition, new_partition
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient, ClusterLayout, TopicLayout
from kgctl.wire.connection import FIND_COORDINATOR, Api, Connection, Request

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
T = TypeVar("T")

_ELECTION_S = 0.2
"""After so long a partition without a leader is looked at once more: a new leader is there by then, where there can be one."""
_BATCH_VERSION = 4  # FindCoordinator takes several keys from here on (KIP-699)
_COORDINATOR_PATIENCE = 0.5
_LEADER_PATIENCE = 0.2
"""How much of the time left goes into asking again, before the error is the answer: a leader that is away costs one row."""

_UNKNOWN_TOPIC = TopicLayout(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})


class Failure(NamedTuple):
    """An error of Kafka's for one thing that was asked, with the broker's own words where it had any.

    ``nothing_sent``: the request for it surely never left.
    """

    code: ErrorCode
    message: str | None = None
    nothing_sent: bool = False


NO_LEADER = Failure(ErrorCode.LEADER_NOT_AVAILABLE)
"""By the cluster's own word: none of those in sync is there, and only an operator can tell when one will be."""

LEFT_OUT = Failure(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer leaves it out")


def failure_in(answer: Any) -> Failure | None:
    """The error that an answer, or a part of one, says; None where it says none."""
    return Failure(ErrorCode(answer.error_code), getattr(answer, "error_message", None)) if answer.error_code else None


def by_topic(
    said: Iterable[tuple[TopicPartition, T]], *, name: str = "name", partitions: str = "partitions"
) -> list[dict[str, Any]]:
    """What a request says of partitions, topic by topic, in the order given. ``name``, ``partitions``: of those fields."""
    topics: dict[str, list[T]] = {}
    for (topic, _), each in said:
        topics.setdefault(topic, []).append(each)
    return [{name: topic, partitions: of_topic} for topic, of_topic in topics.items()]


def topics_to_commit(commits: Iterable[tuple[TopicPartition, Any]]) -> list[dict[str, Any]]:
    """The topics of an OffsetCommit, of whatever has ``offset``, ``leader_epoch`` and ``metadata``."""
    return by_topic(
        (
            place,
            {
                "partition_index": place.partition,
                "committed_offset": each.offset,
                "committed_leader_epoch": each.leader_epoch,
                "committed_metadata": each.metadata,
            },
        )
        for place, each in commits
    )


def partitions_in(topics: Any, *, name: str = "name") -> Iterator[tuple[TopicPartition, Any]]:
    """Yield what the topics of an answer say of each partition."""
    for topic in topics:
        named = getattr(topic, name)
        for each in topic.partitions:
            yield new_partition((named, each.partition_index)), each


class Route(NamedTuple):
    """Where each key must go, and the keys that can go nowhere."""

    by_node: Mapping[Node, list[Any]]
    failures: Mapping[Any, Failure]


Ask = Callable[[Connection, list[K]], Iterator[Mapping[K, R | Failure]]]
"""Asks one broker for its keys and yields answers as they come: what came before the connection broke is not asked again."""


def ask_coordinators(
    cluster: ClusterClient, group_ids: Iterable[str], ask: Ask[str, R], deadline: Deadline, *, is_idempotent: bool = True
) -> dict[str, R | Failure]:
    """Ask the coordinator of each group, all coordinators at the same time; one answer a group, in the order given.

    A coordinator that has moved is looked up again, and one whose connection was lost is asked again as long as there is time;
    where the request is not ``is_idempotent`` only if nothing of it can have arrived. What is left is REQUEST_TIMED_OUT or
    NETWORK_EXCEPTION; when no group has another answer, the error is raised.
    """

    def find(groups: list[str], *, again: bool) -> Route:
        return find_coordinators(cluster, groups, deadline, forget=again)

    return _Asking(cluster, find, ask, deadline, is_idempotent=is_idempotent).answers(group_ids, _COORDINATOR_PATIENCE)


def ask_coordinator(cluster: ClusterClient, group_id: str, api: Api, values: Mapping[str, Any], deadline: Deadline) -> Any:
    """Ask the coordinator of one group for a change: its answer, or the failure that it is as a whole."""

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Any]]:
        answer = connection.call(api, values, deadline)
        yield dict.fromkeys(groups, failure_in(answer) or answer)

    return ask_coordinators(cluster, [group_id], ask, deadline, is_idempotent=False)[group_id]


def ask_a_group_each(
    cluster: ClusterClient,
    group_ids: Iterable[str],
    api: Api,
    values: Callable[[str], Mapping[str, Any]],
    deadline: Deadline,
    *,
    failure: Callable[[Any], Failure | None] = failure_in,
) -> dict[str, Any]:
    """Ask for a change of each group by a request of its own, all under way at once; as `ask_coordinator` for each."""

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Any]]:
        version, unsent = connection.version(api), list(groups)

        def requests() -> Iterator[Request]:
            for group in groups:
                unsent.remove(group)
                yield Request(api, version, values(group))

        try:
            for group, answer in zip(groups, connection.stream(requests(), deadline), strict=True):
                yield {group: failure(answer) or answer}
        except UnreachableError as error:
            error.unsent = unsent
            raise

    return ask_coordinators(cluster, group_ids, ask, deadline, is_idempotent=False)


def ask_leaders(
    cluster: ClusterClient,
    partitions: Iterable[TopicPartition],
    ask: Ask[TopicPartition, R],
    deadline: Deadline,
    *,
    known: ClusterLayout | None = None,
) -> dict[TopicPartition, R | Failure]:
    """Ask the leader of each partition; as `ask_coordinators`. ``known`` is where to go first, where it names all leaders."""

    def find(wanted: list[TopicPartition], *, again: bool) -> Route:
        route = Route({}, {}) if known is None or again else leaders_in(known, wanted)
        return route if route.by_node and not route.failures else find_leaders(cluster, wanted, deadline)

    return _Asking(cluster, find, ask, deadline, is_idempotent=True).answers(partitions, _LEADER_PATIENCE)


class _Find(Protocol):
    """Finds out where to go; ``again`` says that the last answer was wrong."""

    def __call__(self, keys: list[Any], /, *, again: bool) -> Route: ...


class _Asking(Generic[K, R]):
    """Rounds of asking: in each, every broker of the route is asked for what is still open."""

    def __init__(self, cluster: ClusterClient, find: _Find, ask: Ask[K, R], deadline: Deadline, *, is_idempotent: bool) -> None:
        self._cluster = cluster
        self._find = find
        self._ask = ask
        self._deadline = deadline
        self._is_idempotent = is_idempotent
        self._answers: dict[K, R | Failure] = {}
        self._errors: list[KgctlError] = []

    def answers(self, keys: Iterable[K], patience: float) -> dict[K, R | Failure]:
        """One answer a key. Errors that pass are waited for with this share of the time, lost connections with all of it."""
        until = self._deadline.part(patience)
        wanted = list(dict.fromkeys(keys))
        noun = "partitions" if wanted and isinstance(wanted[0], TopicPartition) else "groups"
        self._cluster.answered, self._cluster.wanted, self._cluster.noun = 0, len(wanted), noun
        after_loss, after_answer = self._cluster.settings.reconnect.waits_s(), self._cluster.settings.retry.waits_s()
        pending, is_second_look = wanted, False
        while pending:
            lost = self._round(pending)
            if lost is None:
                break
            passing = [key for key in pending if key not in lost and is_passing(self._answers.setdefault(key, LEFT_OUT))]
            if is_second_look:
                passing = [key for key in passing if self._answers[key] is not NO_LEADER]
            if until.is_over:
                passing = []
            if len(lost) + len(passing) < len(pending):
                after_loss = self._cluster.settings.reconnect.waits_s()
            pending = [key for key in pending if key in lost or key in passing]
            has_election = NO_LEADER in (self._answers[key] for key in passing)
            wait_s = next(after_loss) if lost else _ELECTION_S if has_election else next(after_answer)
            if pending and not self._deadline.wait(wait_s):
                break
            is_second_look = True
        self._raise_if_nothing_was_learnt()
        return {key: self._answers[key] for key in wanted}

    def _round(self, pending: list[K]) -> Collection[K] | None:
        """Ask for these keys, and return those that were lost on the way; None where nobody can tell where to go."""
        try:
            route = self._find(pending, again=bool(self._answers))
        except UnreachableError as error:
            if self._answers:
                return None
            error.nothing_sent = True
            raise
        self._answers.update(route.failures)
        found: dict[K, R | Failure] = {}

        def work(connection: Connection, keys: list[K]) -> None:
            for part in self._ask(connection, keys):
                found.update(part)
                self._cluster.answered += len(part)

        results = self._cluster.on_each(route.by_node, work, self._deadline)
        lost: dict[K, None] = {}
        for node, result in results.items():
            if isinstance(result, KgctlError):
                self._errors.append(result)
                left = [key for key in route.by_node[node] if key not in found]
                unsent = _unsent(result, left)
                found |= dict.fromkeys(left, _transport_failure(result))
                found |= dict.fromkeys(unsent, _transport_failure(result, nothing_sent=True))
                if is_worth_asking(result):
                    lost |= dict.fromkeys(left if self._is_idempotent else unsent)
        self._answers.update(found)
        return lost.keys()

    def _raise_if_nothing_was_learnt(self) -> None:
        transport = (*_CODES.values(), ErrorCode.NETWORK_EXCEPTION)
        answers = self._answers.values()
        if self._errors and all(isinstance(answer, Failure) and answer.code in transport for answer in answers):
            raise self._errors[0]


def is_worth_asking(error: KgctlError) -> bool:
    """Whether a broker with this error may answer another time: not one that took all the time there was."""
    return isinstance(error, UnreachableError) and not isinstance(error, TimedOutError) and not error.is_lasting


def is_passing(answer: object) -> bool:
    """Whether it is an error that says "not yet" or "not me": nothing was done, and it may be asked again."""
    return isinstance(answer, Failure) and answer.code in UNSETTLED


def _unsent(error: KgctlError, keys: Sequence[K]) -> Sequence[K]:
    if isinstance(error, UnsupportedError):
        return keys
    if not isinstance(error, UnreachableError):
        return ()
    return keys if error.nothing_sent else [key for key in keys if key in error.unsent]


_CODES: Mapping[type[KgctlError], ErrorCode] = {
    TimedOutError: ErrorCode.REQUEST_TIMED_OUT,
    UnsupportedError: ErrorCode.UNSUPPORTED_VERSION,
}
"""Of what keeps a request from being answered; anything else is NETWORK_EXCEPTION."""


def _transport_failure(error: KgctlError, *, nothing_sent: bool = False) -> Failure:
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), ErrorCode.NETWORK_EXCEPTION)
    return Failure(code, error.message, nothing_sent)


def find_coordinators(cluster: ClusterClient, group_ids: Sequence[str], deadline: Deadline, *, forget: bool = False) -> Route:
    """The coordinator of each group: known from before, unless ``forget``, or asked for."""
    known = {} if forget else cluster.coordinators
    failures = _look_up([group for group in group_ids if group not in known], cluster, deadline)
    by_node: dict[Node, list[str]] = {}
    for group in group_ids:
        if group not in failures:
            by_node.setdefault(cluster.coordinators[group], []).append(group)
    return Route(by_node, failures)


def _look_up(group_ids: Sequence[str], cluster: ClusterClient, deadline: Deadline) -> dict[str, Failure]:
    """All in one request where the broker can (since Kafka 3.0). What is found is remembered, what is not is returned."""
    if not group_ids:
        return {}

    def ask(connection: Connection) -> dict[str, Any]:
        version = connection.version(FIND_COORDINATOR)
        if version >= _BATCH_VERSION:
            answer = connection.call(FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": list(group_ids)}, deadline)
            return {each.key: each for each in answer.coordinators}
        requests = [Request(FIND_COORDINATOR, version, {"key": group, "key_type": 0}) for group in group_ids]
        return dict(zip(group_ids, connection.call_all(requests, deadline), strict=True))

    found = cluster.ask(ask, deadline)
    failures: dict[str, Failure] = {}
    for group in group_ids:
        each = coordinator_in(found[group], group) if group in found else LEFT_OUT
        if isinstance(each, Failure):
            failures[group] = each
        else:
            cluster.coordinators[group] = each
    return failures


def find_leaders(cluster: ClusterClient, partitions: Sequence[TopicPartition], deadline: Deadline) -> Route:
    """The leader of each partition."""
    return leaders_in(cluster.layout(sorted({partition.topic for partition in partitions}), deadline), partitions)


def coordinator_question(group_id: str, version: int) -> dict[str, Any]:
    """The fields of a FindCoordinator for one group."""
    key = {"coordinator_keys": [group_id]} if version >= _BATCH_VERSION else {"key": group_id}
    return {"key_type": 0, **key}


def coordinator_in(answer: Any, group_id: str) -> Node | Failure:
    """What the answer to it says."""
    each = next((each for each in getattr(answer, "coordinators", (answer,)) if getattr(each, "key", group_id) == group_id), None)
    if each is None:
        return LEFT_OUT
    return failure_in(each) or Node(each.node_id, each.host, each.port)


def leaders_in(layout: ClusterLayout, partitions: Sequence[TopicPartition]) -> Route:
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
