"""The members' lines to the cluster, each with a thread of its own, so that no driver waits for a socket: one to its coordinator
for each member, and those to any broker and to leaders for all members of a process.

A line takes what is to be done in order, one after the other: a broker reads the next request of a connection only when it has
answered the one before, and the member counts on it (`kgctl.member.runtime`).
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, TypeVar

from kgctl.errors import AuthError, KgctlError, UnreachableError
from kgctl.group.requests import CODECS
from kgctl.model.access import NOT_TOLD, AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, MetadataImage, Node, TopicMetadata, TopicPartition
from kgctl.model.requests import Request, Result
from kgctl.wire import Deadline
from kgctl.wire.asking import Failure, ask_leaders, find_coordinators
from kgctl.wire.cluster import ClusterClient, ClusterLayout, layout_of
from kgctl.wire.connection import METADATA, Connection, given_up, open_connection
from kgctl.wire.connection import Request as WireRequest
from kgctl.wire.logs import EARLIEST, LATEST, list_offsets
from kgctl.wire.settings import Address, WireSettings

NO_LIMIT_MS = 24 * 60 * 60 * 1000
"""The time limit of a coordinator's connection: the member has time-outs of its own, and closes the line when one is over."""

CONNECT_MS = 10_000


T = TypeVar("T")
Job = Callable[[], None]


class JobLine:
    """A thread that does jobs in order until it is closed. A job that raises ends it, and ``on_bug`` is told."""

    def __init__(self, name: str, on_bug: Callable[[BaseException], None]) -> None:
        self._on_bug = on_bug
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._put = self._done = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Do this after all that was put before."""
        self._put += 1
        self._jobs.put(job)

    @property
    def is_idle(self) -> bool:
        """Whether all that was put has been done; for the one thread that puts."""
        return self._put == self._done

    def close(self) -> None:
        """Take no more; what was put before is still done."""
        self._jobs.put(None)

    def _run(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                job()
                self._done += 1
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits for answers
            self._on_bug(error)


class CoordinatorConnection:
    """One connection to one coordinator, opened with the first request. For one thread at a time, but `abort`."""

    def __init__(self, node: Node, settings: WireSettings) -> None:
        self._address = Address(node.host, node.port)
        self._settings = settings
        self._connection: Connection | None = None
        self._is_aborted = False

    def ask(self, request: Request, timeout_ms: int = NO_LIMIT_MS) -> Result:
        """Send one request and wait for its answer.

        Raises:
            UnreachableError: the connection broke, could not be opened, or the answer did not come in time.
            AuthError: the broker refuses the login.
        """
        codec = CODECS[type(request)]
        deadline = Deadline(timeout_ms)
        connection = self._open()
        version = connection.version(codec.api)
        answer = connection.call(codec.api, codec.encode(request, version), deadline, version=version)
        return codec.decode(request, answer)

    def ask_at_once(self, request: Request, within_s: float) -> Result | Callable[[], Result] | None:
        """Send a request that is answered at once, and return the answer, or what waits for it where it takes longer than that.

        Saves the way to another thread and back, most of what a heartbeat costs. None: nothing was sent, since there is no open
        connection, or one of TLS, whose bytes can be there without an answer in them. Raises as `ask`.
        """
        connection = self._connection
        if self._is_aborted or connection is None or not connection.is_plain or not connection.is_usable:
            return None
        codec = CODECS[type(request)]
        version = connection.version(codec.api)
        asked = WireRequest(codec.api, version, codec.encode(request, version))
        number = connection.send(asked, Deadline(CONNECT_MS))

        def answer() -> Result:
            return codec.decode(request, connection.receive(asked, number, Deadline(NO_LIMIT_MS)))

        return answer() if connection.has_answer(within_s) else answer

    def abort(self) -> None:
        """Break the connection for good, from any thread: whoever waits for an answer on it waits no longer."""
        self._is_aborted = True
        if self._connection is not None:
            self._connection.shut_down()

    def close(self) -> None:
        """Give the connection back; in the thread that asks. Safe to call twice."""
        self._is_aborted = True
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> Connection:
        if self._is_aborted:
            raise given_up(self._address)
        if self._connection is None or not self._connection.is_usable:
            if self._connection is not None:
                self._connection.close()
            self._connection = open_connection(self._address, self._settings, Deadline(CONNECT_MS))
            if self._is_aborted:
                self._connection.shut_down()
        return self._connection


class ClusterLine:
    """A line to any broker of a cluster, for all members of this process that have the same settings.

    Members that begin together ask the same: who coordinates the group, which partitions there are. An answer is for everybody
    who had asked before the request for it was sent; and so is an error that no broker answers, since whoever waited for a
    silent cluster would else wait once more for each of the others.
    """

    def __init__(self, name: str, settings: WireSettings) -> None:
        self._line = JobLine(name, _never)
        self._cluster = ClusterClient(settings)
        self._kept: dict[Hashable, _Outcome] = {}

    def put(self, job: Job) -> None:
        """Do this after all that was put before; a job does not raise."""
        self._line.put(job)

    def ask(self, key: Hashable, since_s: float, request: Callable[[ClusterClient], T]) -> T:
        """Return what ``request`` answers, or answered to another job with this key that began after ``since_s``. In a job.

        Raises what it raised.
        """
        for kept in (self._kept.get(_SILENCE), self._kept.get(key)):
            if kept is not None and kept.begun_s >= since_s:
                shared: T = kept.take()
                return shared
        outcome = _Outcome(time.monotonic())
        try:
            outcome.answer = request(self._cluster)
        except KgctlError as error:
            outcome.error = error
            if isinstance(error, UnreachableError):
                self._kept[_SILENCE] = outcome
        self._kept.pop(key, None)
        self._kept[key] = outcome
        while len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        answer: T = outcome.take()
        return answer

    def close(self) -> None:
        """Give the connections back, after all that was put before."""
        self._line.put(self._cluster.close)
        self._line.close()


_SILENCE = object()
_KEPT = 16
"""So many different questions' last answers are kept: members of a process ask about the same few groups and topics."""


@dataclass(slots=True)
class _Outcome:
    begun_s: float
    answer: Any = None
    error: KgctlError | None = None

    def take(self) -> Any:
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.answer


def _never(error: BaseException) -> None:
    raise error


class Desk:
    """The lines of all members with the same settings: one for what any broker knows, one for what leaders are asked.

    Two, since a leader that is silent keeps its line waiting, and nobody who looks for a coordinator may wait for that.
    """

    _all: ClassVar[list[Desk]] = []
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, settings: WireSettings) -> None:
        self.any_broker = ClusterLine("kgctl-group-errands", settings)
        self.metadata: Metadata | None = None
        self.version = 0
        self._settings = settings
        self._process = os.getpid()
        self._members = 0
        self._leaders: ClusterLine | None = None

    @property
    def leaders(self) -> ClusterLine:
        """The line to leaders, made for the first member that needs it; most never do."""
        with self._lock:
            if self._leaders is None:
                self._leaders = ClusterLine("kgctl-group-offsets", self._settings)
            return self._leaders

    @classmethod
    def enter(cls, settings: WireSettings) -> Desk:
        """Return the desk for these settings, made for the first member in this process (a fork has no threads)."""
        with cls._lock:
            known = (desk for desk in cls._all if desk._process == os.getpid() and desk._settings == settings)
            desk = next(known, None)
            if desk is None:
                desk = cls(settings)
                cls._all.append(desk)
            desk._members += 1
            return desk

    def leave(self) -> None:
        """The last member gives the connections back."""
        with self._lock:
            self._members -= 1
            if self._members:
                return
            self._all.remove(self)
        self.any_broker.close()
        if self._leaders is not None:
            self._leaders.close()


class Metadata:
    """An answer about topics: as members see it, and for whoever looks for leaders."""

    def __init__(self, answer: Any, version: int) -> None:
        racks = {broker.node_id: getattr(broker, "rack", None) for broker in answer.brokers}
        found = (_topic(topic, racks) for topic in answer.topics if not topic.error_code)
        self.image = MetadataImage({topic.name: topic for topic in found}, version)
        self.unreadable = frozenset(topic.name for topic in answer.topics if _may_not_read(topic))
        self._answer = answer

    @cached_property
    def layout(self) -> ClusterLayout:
        """Who leads what."""
        return layout_of(self._answer)


class Errands:
    """What one member asks any broker, in the threads of its `Desk`. ``since_s`` is when it asked, which `put` tells."""

    def __init__(self, group_id: str, settings: WireSettings, timeout_ms: int) -> None:
        self._group_id = group_id
        self._settings = settings
        self._timeout_ms = timeout_ms
        self._desk = Desk.enter(settings)

    def put(self, work: Callable[[float], None], *, to_leaders: bool = False) -> None:
        """Do this on one of the desk's lines."""
        line = self._desk.leaders if to_leaders else self._desk.any_broker
        line.put(partial(work, time.monotonic()))

    def find_coordinator(self, since_s: float) -> Node | ErrorCode:
        """Return the group's coordinator, or the error that the broker gave. Raises `KgctlError` where no broker answers."""
        named = [self._group_id]
        route = self._desk.any_broker.ask(
            ("coordinator", self._group_id),
            since_s,
            lambda cluster: find_coordinators(cluster, named, self._deadline(), forget=True),
        )
        failure = route.failures.get(self._group_id)
        if failure is not None and failure.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise denied(failure.code, self._settings, self._group_id)
        return failure.code if failure is not None else next(iter(route.by_node))

    def metadata(self, since_s: float, own: Sequence[str] | None = None, others: Iterable[str] = ()) -> MetadataImage:
        """Return a member's own topics and others (all for None), with their replicas' racks, but for those that do not exist.

        Raises:
            AuthError: this user may not see one of its own, or not read it. Nothing else would say so before the first commit:
                a group is joined by whoever may read the group, and this member fetches nothing.
        """
        topics = None if own is None else tuple(sorted({*own, *others}))

        def ask(cluster: ClusterClient) -> Metadata:
            asked = None if topics is None else [{"name": topic} for topic in topics]
            values = {"topics": asked, "allow_auto_topic_creation": False, "include_topic_authorized_operations": own is not None}
            answer = cluster.call(METADATA, values, self._deadline())
            self._desk.version += 1
            return Metadata(answer, self._desk.version)

        found = self._desk.any_broker.ask(("topics", topics), since_s, ask)
        check_readable(found, own or (), self._settings, self._group_id)
        self._desk.metadata = found
        return found.image

    def list_offsets(
        self, since_s: float, partitions: Sequence[TopicPartition], strategy: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        """Return where these partitions begin or end; those that could not be asked are left out."""
        deadline = self._deadline()
        timestamp = EARLIEST if strategy == "earliest" else LATEST
        known = self._desk.metadata

        def ask(connection: Connection, wanted: list[TopicPartition]) -> Iterator[dict[TopicPartition, Any]]:
            for part in list_offsets(connection, wanted, [timestamp], deadline):
                yield {partition: offset for partition, (offset,) in part.items()}

        layout = known.layout if known is not None else None
        found: dict[TopicPartition, int] = {}
        try:
            answers: dict[TopicPartition, Any] = self._desk.leaders.ask(
                object(), since_s, lambda cluster: ask_leaders(cluster, partitions, ask, deadline, known=layout)
            )
            found = {partition: answer for partition, answer in answers.items() if not isinstance(answer, Failure)}
        finally:
            if len(found) < len(partitions):
                self._desk.metadata = None  # a leader that is gone is not asked twice
        return found

    def close(self) -> None:
        """Leave the desk."""
        self._desk.leave()

    def _deadline(self) -> Deadline:
        return Deadline(self._timeout_ms)


def check_readable(found: Metadata, own: Iterable[str], settings: WireSettings, group_id: str) -> None:
    """Raise `AuthError` for a topic of the member's own that it may not read."""
    for topic in own:
        if topic in found.unreadable:
            raise denied(ErrorCode.TOPIC_AUTHORIZATION_FAILED, settings, group_id, topic)


def denied(code: ErrorCode, settings: WireSettings, group_id: str, topic: str | None = None) -> AuthError:
    """Return what says which right this user lacks: READ, on the group or on a topic that it reads."""
    what, name = ("group", group_id) if topic is None else ("topic", topic)
    user = f"user '{settings.sasl.username}'" if settings.sasl is not None and settings.sasl.username else "this user"
    return AuthError(
        f"not authorised for {what} '{name}': {user} lacks the right READ on the {what} "
        f"(kafka-acls --add --allow-principal User:NAME --operation Read --{what} '{name}')",
        code=code.name,
        group=group_id,
        topic=topic,
    )


def _may_not_read(topic: Any) -> bool:
    """Brokers before Kafka 2.3 do not say what the user may do; Metadata's error then speaks of DESCRIBE alone."""
    if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return True
    operations: int = getattr(topic, "topic_authorized_operations", NOT_TOLD)
    return not topic.error_code and operations != NOT_TOLD and not operations & AclOperation.READ.bit


def _topic(topic: Any, racks: dict[int, str | None]) -> TopicMetadata:
    by_number = sorted(topic.partitions, key=lambda each: each.partition_index)
    replica_racks = tuple(
        tuple(rack for node in each.replica_nodes if (rack := racks.get(node)) is not None) for each in by_number
    )
    has_racks = any(replica_racks)
    topic_id = getattr(topic, "topic_id", None) or ZERO_UUID
    return TopicMetadata(topic.name, topic_id, len(by_number), replica_racks if has_racks else ())
