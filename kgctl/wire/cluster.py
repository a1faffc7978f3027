"""The brokers of a cluster: found through the bootstrap servers, connected once each, asked in parallel; and what any of them
knows, asked again where a connection is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar
from uuid import UUID

from kgctl.errors import KgctlError, TimedOutError, UnreachableError
from kgctl.model.groups import Node
from kgctl.model.values import frozen_in_order
from kgctl.wire import Deadline
from kgctl.wire.connection import METADATA, Api, Connection, open_connection
from kgctl.wire.settings import Address, WireSettings

T = TypeVar("T")
R = TypeVar("R")


@frozen_in_order
class TopicLayout:
    """A topic's partitions, who leads each (-1: nobody) and who has it. ``error_code`` is Kafka's, 0 for none.

    ``topic_id`` is None where the broker tells none (before Kafka 2.8).
    """

    error_code: int
    leaders: Mapping[int, int]
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    topic_id: UUID | None = None


@frozen_in_order
class ClusterLayout:
    """Metadata's answer: the brokers by id, the topics that were asked for, and the cluster's id where it has one."""

    nodes: Mapping[int, Node]
    topics: Mapping[str, TopicLayout] = field(default_factory=dict)
    cluster_id: str | None = None


FIRST_PATIENCE_S = 2.0
"""So long a cluster that has not answered yet is asked again where it closes connections: a listener that wants a login does so
each time."""

_WANTS_LOGIN = " (does this listener want SASL? set security.protocol)"


class ClusterClient:
    """Connections are made when they are first needed and kept until `close`. For one thread; `on_each` brings its own.

    Errors of one broker are its own: only what concerns the whole cluster is raised. ``coordinators`` remembers who coordinates
    which group, for `kgctl.wire.asking.find_coordinators`.
    """

    def __init__(self, settings: WireSettings) -> None:
        self.settings = settings
        self.coordinators: dict[str, Node] = {}
        self.answered, self.wanted, self.noun = 0, 0, ""
        """How far the question that is asked of several brokers is, and what it is about."""
        self._connections: dict[Address, Connection] = {}
        self._known: dict[Address, None] = dict.fromkeys(settings.bootstrap)
        self._has_answered = False

    def ask(self, task: Callable[[Connection], R], deadline: Deadline) -> R:
        """Return what ``task`` answers with a connection to some broker; it may be done again, with another.

        As long as there is time a lost connection is one more try; so is a broker that takes none, once the cluster has answered
        anything. A cluster that has not is given `FIRST_PATIENCE_S`.

        Raises `UnreachableError` (`TimedOutError`) with the reason of the last try, `AuthError`.
        """
        waits, tries = self.settings.reconnect.waits_s(), 0
        first = deadline.within(FIRST_PATIENCE_S)
        last: UnreachableError | None = None
        while True:
            tries += 1
            try:
                answer = task(self._any_broker(deadline))
            except UnreachableError as error:
                if isinstance(error, TimedOutError):
                    raise last or error from None
                last = told_last(error, tries, has_answered=self._has_answered)
                is_worth_it = not error.is_lasting and (error.is_lost or self._has_answered)
                if not (is_worth_it and (deadline if self._has_answered else first).wait(next(waits))):
                    raise last from None
            else:
                self._has_answered = True
                return answer

    def call(self, api: Api, values: Mapping[str, Any], deadline: Deadline) -> Any:
        """`ask` for the answer to one request, which changes nothing."""
        return self.ask(lambda connection: connection.call(api, values, deadline), deadline)

    def _any_broker(self, deadline: Deadline) -> Connection:
        """A connection that is open, else one to the first that answers: of the bootstrap servers and the brokers known since."""
        for connection in self._connections.values():
            if connection.is_usable:
                return connection
        failures: list[UnreachableError] = []
        for position, address in enumerate(self._known):
            left = len(self._known) - position
            try:
                return self._connect(address, deadline.part(1 / left))
            except UnreachableError as error:
                failures.append(error)
        raise no_bootstrap_server(failures)

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
            except TimedOutError as error:
                deadline.note_silence(node)
                results[node] = error
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
        """`broker`, whose failure says that no request has been sent: none is to one that did not answer before (`Deadline`)."""
        try:
            if not deadline.expects(node):
                raise TimedOutError(f"{node.host}:{node.port} has not answered, and is not asked again")
            return self.broker(node, deadline)
        except UnreachableError as error:
            error.nothing_sent = True
            raise

    def layout(self, topics: list[str] | None, deadline: Deadline) -> ClusterLayout:
        """The brokers, and the partitions of these topics; None asks for all, an empty list for none."""
        asked = None if topics is None else [{"name": topic} for topic in topics]
        layout = layout_of(self.call(METADATA, {"topics": asked, "allow_auto_topic_creation": False}, deadline))
        self._known |= dict.fromkeys(Address(node.host, node.port) for node in layout.nodes.values())
        return layout

    def close(self) -> None:
        """Close all connections. Safe to call twice."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connect(self, address: Address, deadline: Deadline) -> Connection:
        connection = open_connection(address, self.settings, deadline)
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


def told_last(error: UnreachableError, tries: int, *, has_answered: bool) -> UnreachableError:
    """Return the error as it is said where it is the last."""
    told = f"{error.message}{_WANTS_LOGIN if error.may_want_login and not has_answered else ''}"
    return UnreachableError(f"{told}; asked {tries} times" if tries > 1 else told)


def no_bootstrap_server(failures: list[UnreachableError]) -> UnreachableError:
    """One server: its own error. Several: all of them, and a time-out only when that is all there was."""
    if len(failures) == 1:
        return failures[0]
    message = "no bootstrap server answers: " + "; ".join(failure.message for failure in failures)
    is_slow = all(isinstance(failure, TimedOutError) for failure in failures)
    error = (TimedOutError if is_slow else UnreachableError)(message)
    error.is_lost = any(failure.is_lost for failure in failures)
    error.is_lasting = all(failure.is_lasting for failure in failures)
    error.may_want_login = all(failure.may_want_login for failure in failures)
    return error
