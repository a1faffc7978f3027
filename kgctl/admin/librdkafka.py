"""The clients of confluent-kafka (librdkafka): waiting for them without being hung, misled or killed; the producers and consumers
of ``kgctl demo``; the reader of single records. Importing confluent-kafka costs some 60 ms: it is done where a client is needed.

Three things that its users must know (librdkafka 2.16):

- The cause of a failed login or TLS handshake comes only through ``error_cb``, and that runs only inside ``poll()``: a plain
  wait for the future ends in a time-out. So futures are waited for by polling, and such an error ends the wait at once.
- A request that times out inside librdkafka while it still looks for a group's coordinator, and is answered later, aborts the
  whole process (librdkafka#4605). So no request is ever let time out there: each has librdkafka's longest time-out, the
  deadline is kept here, and a client whose call ran out of time is abandoned, not destroyed: destroying it would end its
  requests.
- A broker that is away is reported once, while other addresses of the same host may still be tried: only after a moment is it
  final.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient

from kgctl.admin import ItemError, Record, Results, Span, item_error
from kgctl.errors import AuthError, BrokerError, KgctlError, TimedOutError, UnreachableError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.settings import CLIENT_PROPERTIES, OWN_PROPERTIES, librdkafka_properties

K = TypeVar("K")
T = TypeVar("T")

_LOCAL: Mapping[int, ErrorCode] = {
    KafkaError._TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE: ErrorCode.REQUEST_TIMED_OUT,
    KafkaError._WAIT_COORD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    KafkaError._TRANSPORT: ErrorCode.NETWORK_EXCEPTION,
    KafkaError._ALL_BROKERS_DOWN: ErrorCode.NETWORK_EXCEPTION,
    **dict.fromkeys(
        (KafkaError._DESTROY, KafkaError._BAD_MSG, KafkaError._PURGE_INFLIGHT, KafkaError._OUTDATED, KafkaError._RESOLVE),
        ErrorCode.NETWORK_EXCEPTION,
    ),
    -137: ErrorCode.NETWORK_EXCEPTION,  # _DESTROY_BROKER, since 2.12: its handle is given up, and nobody knows what arrived
    KafkaError._UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._UNKNOWN_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._NOENT: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._UNSUPPORTED_FEATURE: ErrorCode.UNSUPPORTED_VERSION,
    KafkaError._AUTHENTICATION: ErrorCode.SASL_AUTHENTICATION_FAILED,
}


def error_code(error: KafkaError) -> ErrorCode:
    """Kafka's code; librdkafka's own errors become the nearest one."""
    number = error.code()
    if number in _LOCAL:
        return _LOCAL[number]
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def explained(
    error: KafkaError, *, group: str | None = None, partition: TopicPartition | None = None, detail: str | None = None
) -> ItemError:
    """Return the failure with one sentence of explanation."""
    return item_error(error_code(error), group=group, partition=partition, detail=detail or error.str())


def results_of_calls(
    futures: Mapping[K, Future[T]], named: Callable[[K], Mapping[str, Any]]
) -> tuple[dict[K, T], dict[K, ItemError]]:
    """What calls that have ended answered, and what failed; ``named``: whose error it is, as `explained` takes it."""
    values: dict[K, T] = {}
    errors: dict[K, ItemError] = {}
    for key, future in futures.items():
        try:
            values[key] = future.result()
        except KafkaException as error:
            errors[key] = explained(error.args[0], **named(key))
    return values, errors


def connection_error(error: KafkaError, *, because: KafkaError | None = None) -> KgctlError:
    """The exception for an error that concerns the whole cluster. ``because`` was seen before it and says more."""
    message = _told(because or error)
    match error.code():
        case KafkaError._AUTHENTICATION:
            return AuthError(message, code=ErrorCode.SASL_AUTHENTICATION_FAILED.name)
        case KafkaError._TIMED_OUT | KafkaError._TIMED_OUT_QUEUE:
            return TimedOutError(message)
        case KafkaError._INVALID_ARG:
            return UsageError(message)
        case code if code < 0:
            return UnreachableError(message)
        case _:
            found = explained(error)
            return found.to_exception() if found.message != found.code.name else BrokerError(message, code=found.code.name)


def _told(error: KafkaError) -> str:
    """librdkafka begins its texts with the thread's name and ends them with how often it tried."""
    text = error.str()
    _, separator, rest = text.partition("/bootstrap: ")
    return (rest if separator else text).partition(" (after ")[0]


_DEFAULTS: Mapping[str, str | int] = {
    "client.id": "kgctl",
    "reconnect.backoff.ms": 1,  # the first connection to a broker already counts as a reconnect: saves some 40 ms
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,  # what goes wrong is said once, by kgctl
    "enable.metrics.push": "false",
}


def client_config(properties: Mapping[str, str]) -> dict[str, Any]:
    """The configuration of an admin client; the user's values win, and those for consumers and producers are left out.

    Raises:
        UsageError: an IAM login of Amazon MSK that cannot be.
        AuthError: AWS has no credentials for it.
    """
    own = {name: value for name, value in properties.items() if name in CLIENT_PROPERTIES or name in OWN_PROPERTIES}
    log_level = {"log_level": "7"} if "debug" in own else {}
    return {**_DEFAULTS, **log_level, **librdkafka_properties(own)}


LIBRDKAFKA_TIMEOUT_S = 3600.0
_POLL_S = 0.005
_PAUSE_S = 0.05
_ALL_DOWN_GRACE_S = 1.0
_abandoned: list[AdminClient] = []


class AdminCalls:
    """An `AdminClient` whose calls end in time: one deadline covers all that is waited for from one `begin` to the next."""

    def __init__(self, properties: Mapping[str, str], timeout_ms: int) -> None:
        self._deadline = Deadline(timeout_ms)
        self._properties = properties
        self._open()

    def _open(self) -> None:
        self._fatal: KgctlError | None = None
        self._all_down: KafkaError | None = None
        self._last_cause: KafkaError | None = None
        try:
            config: dict[str, Any] = {**client_config(self._properties), "error_cb": self._on_error}
            self._client: AdminClient | None = AdminClient(config)
        except (KafkaException, ValueError, TypeError) as error:
            raise UsageError(f"librdkafka does not take these properties: {_reason(error)}") from None

    @property
    def client(self) -> AdminClient:
        """The client, to start calls on. Raises `TimedOutError` after a call that ran out of time, until `begin`."""
        if self._client is None:
            raise TimedOutError("this connection was given up after a call that ran out of time")
        return self._client

    def begin(self, deadline: Deadline) -> None:
        """Another operation begins. After one that ran out of time it has a client of its own."""
        self._deadline = deadline
        if self._client is None:
            self._open()

    def pause(self) -> bool:
        """A moment before the same thing is asked again; False when there is no time for that."""
        return self._deadline.wait(_PAUSE_S) and not self._deadline.is_over

    def wait(self, futures: Iterable[Future[T]]) -> None:
        """Wait until all are done. Raises `AuthError` and `UnreachableError` once that is known, else `TimedOutError`."""
        for _ in self.as_completed(dict(enumerate(futures))):
            pass

    def as_completed(self, futures: Mapping[K, Future[Any]]) -> Iterator[K]:
        """The keys of the futures, each when it is done. Raises as `wait`."""
        pending = dict(futures)
        started = time.monotonic()
        try:
            while True:
                for key in [key for key, future in pending.items() if future.done()]:
                    del pending[key]
                    yield key
                if not pending:
                    return
                self.client.poll(_POLL_S)
                self._check_unless(pending, time.monotonic() - started)
        except BaseException:
            self._abandon()  # a signal: requests are under way, and destroying the client would end them
            raise

    def _check_unless(self, pending: Mapping[Any, Future[Any]], waited_s: float) -> None:
        """What has been answered is told before anything that goes wrong."""
        if not any(future.done() for future in pending.values()):
            self._check(waited_s)

    def result(self, future: Future[T]) -> T:
        """The one result. Raises as `wait`, and `KafkaException` for the call's own failure."""
        self.wait([future])
        return future.result()

    def blocking(self, call: Callable[[float], T]) -> T:
        """A call of librdkafka that blocks for at most the seconds it is given. Raises as `wait`."""
        started = time.monotonic()
        while True:
            try:
                return call(min(0.5, self._deadline.seconds_left()))
            except KafkaException as error:
                self.client.poll(0)
                if error.args[0].code() not in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
                    raise
                self._check(time.monotonic() - started)

    def close(self) -> None:
        """Safe to call twice."""
        self._client = None

    def _check(self, waited_s: float) -> None:
        if self._fatal:
            self._abandon()
            raise self._fatal
        if self._all_down and waited_s > _ALL_DOWN_GRACE_S:
            self._abandon()
            raise connection_error(self._all_down, because=self._last_cause)
        if self._deadline.is_over:
            self._abandon()
            raise self._deadline.timed_out("the cluster")

    def _abandon(self) -> None:
        """Keep the client alive for the rest of the process, also while the interpreter shuts down."""
        import ctypes

        if self._client is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._client))
            _abandoned.append(self._client)
            self._client = None

    def _on_error(self, error: KafkaError) -> None:
        code = error.code()
        if code in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._fatal = connection_error(error)
        elif code == KafkaError._ALL_BROKERS_DOWN:
            self._all_down = error
        else:
            self._last_cause = error


def _reason(error: Exception) -> str:
    first: Any = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)


_QUIET: Mapping[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 200}
_MEMBER_POLL_S = 0.01


def produce(bootstrap: str, topic: str, records: int, partition_count: int, *, timeout_ms: int = 30_000) -> None:
    """``records`` records, dealt out to the partitions in turn, all acknowledged when this returns.

    Raises `TimedOutError` when they are not within the time, `BrokerError` with the broker's own error for one of them.
    """
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({**_QUIET, "bootstrap.servers": bootstrap, "linger.ms": 1, "message.timeout.ms": timeout_ms})
    for number in range(records):
        producer.produce(topic, f"record {number}".encode(), partition=number % partition_count, on_delivery=on_delivery)
    left = producer.flush(timeout_ms / 1000)
    if failed:
        raise BrokerError(f"cannot produce to topic '{topic}': {failed[0].str()}", topic=topic)
    if left:
        raise TimedOutError(f"{left} of {records} records to topic '{topic}' were not acknowledged in time", topic=topic)


class ConsumerTeam:
    """The members of one group in this process. Leaving the ``with`` block makes them leave the group.

    They are polled by whoever calls `consume`; in between librdkafka sends their heartbeats, so the group stays as it is. They
    take part in a rebalance only while `consume` runs.
    """

    def __init__(
        self,
        bootstrap: str,
        group_id: str,
        topics: Sequence[str],
        size: int,
        *,
        static: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """``size`` members that subscribe to ``topics``; ``static`` gives them group instance ids (``GROUP-1`` and on)."""
        self._members: list[Consumer] = []
        for number in range(1, size + 1):
            name = f"{group_id}-{number}"
            own = {"group.instance.id": name} if static else {}
            config = {**_CONSUMER, **own, "bootstrap.servers": bootstrap, "group.id": group_id, "client.id": name}
            member = Consumer({**config, **(properties or {})})
            member.subscribe(list(topics))
            self._members.append(member)

    def consume(self, records: int, *, timeout_ms: int = 60_000) -> None:
        """Poll until every member has its assignment and the topics' first ``records`` records are read, then commit that.

        What a member has read of a partition that then went to another one counts no more: it was not committed, and comes
        again. Raises `TimedOutError`.
        """
        end = time.monotonic() + timeout_ms / 1000
        while (read := sum(map(_position, self._members))) < records or not all(self.assignments()):
            if time.monotonic() > end:
                raise TimedOutError(f"the group read {read} of {records} records in {timeout_ms / 1000:g} s")
            for member in self._members:
                self._poll(member)
        for member in self._members:
            _commit(member)

    def assignments(self) -> list[tuple[TopicPartition, ...]]:
        """What each member owns, by the order of the members."""
        return [
            tuple(sorted(TopicPartition(each.topic, each.partition) for each in member.assignment())) for member in self._members
        ]

    def leave(self) -> None:
        """All members leave the group; safe to call twice."""
        while self._members:
            self._members.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.leave()

    @staticmethod
    def _poll(member: Consumer) -> None:
        for message in member.consume(500, _MEMBER_POLL_S):
            error = message.error()
            if error is not None and error.fatal():
                raise BrokerError(error.str())


_CONSUMER: Mapping[str, Any] = {
    **_QUIET,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "fetch.wait.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 50,
}


def _position(member: Consumer) -> int:
    """How far it is in its partitions together; one that it has read nothing of counts nothing."""
    return sum(max(each.offset, 0) for each in member.position(member.assignment()))


def _commit(member: Consumer) -> None:
    """A member that read nothing has nothing to commit, which librdkafka takes for an error."""
    try:
        member.commit(asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._NO_OFFSET:
            raise BrokerError(f"cannot commit: {error.args[0].str()}") from None


_RECORD_POLL_S = 0.05
_FATAL = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN)
_SMALL_BYTES = 65_536

_OUTSIDE: Mapping[str, Any] = {
    "group.id": "kgctl",  # the library wants one; nothing is joined or committed where partitions are assigned by hand
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 50,
}
_RECORDS: Mapping[str, Any] = {
    "isolation.level": "read_uncommitted",
    "queued.min.messages": 1,
    "fetch.message.max.bytes": _SMALL_BYTES,
}


class OutsideReader:
    """A consumer that is in no group. ``failure`` concerns the whole cluster; the caller closes it."""

    def __init__(self, properties: Mapping[str, str], how: Mapping[str, Any]) -> None:
        self.failure: KgctlError | None = None
        self._consumer = Consumer({**client_config(properties), **_OUTSIDE, **how, "error_cb": self._on_error})

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _FATAL:
            self.failure = connection_error(error)

    def close(self) -> None:
        """Leave the brokers; no group was joined."""
        self._consumer.unassign()
        self._consumer.close()


def read_spans(properties: Mapping[str, str], spans: Sequence[Span], deadline: Deadline) -> Results[Span, tuple[Record, ...]]:
    """The records of each span, fewer than asked for where the log has no more.

    Each partition is read in one span at a time: as many rounds as there are spans in one partition. What is not read in time is
    REQUEST_TIMED_OUT.

    Raises:
        KgctlError: no broker takes the connection.
    """
    waiting: dict[TopicPartition, deque[Span]] = {}
    for span in dict.fromkeys(spans):
        waiting.setdefault(span.partition, deque()).append(span)
    reader = _SpanReader(properties)
    try:
        while waiting and not deadline.is_over and reader.failure is None:
            reader.read({partition: left.popleft() for partition, left in waiting.items()}, deadline)
            waiting = {partition: left for partition, left in waiting.items() if left}
    finally:
        reader.close()
    if reader.failure and not reader.values:
        raise reader.failure
    late = ItemError(ErrorCode.REQUEST_TIMED_OUT, "the record was not read in time")
    errors = {span: late for span in spans if span not in reader.values}
    return Results(reader.values, errors | reader.errors)


class _SpanReader(OutsideReader):
    """Reads one span of each partition of a round."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(properties, _RECORDS)
        self.values: dict[Span, tuple[Record, ...]] = {}
        self.errors: dict[Span, ItemError] = {}

    def read(self, wanted: Mapping[TopicPartition, Span], deadline: Deadline) -> None:
        """Read until all records are there, or the time is up."""
        assigned = [ConfluentPartition(*span.partition, span.start) for span in wanted.values()]
        self._consumer.assign(assigned)
        self._consumer.resume(assigned)  # those of the round before are still paused
        pending = dict(wanted)
        found: dict[Span, list[Record]] = {span: [] for span in wanted.values()}
        while pending and self.failure is None and not deadline.is_over:
            for message in self._consumer.consume(len(pending), _RECORD_POLL_S):
                self._take(message, pending, found)

    def _take(self, message: Any, pending: dict[TopicPartition, Span], found: Mapping[Span, list[Record]]) -> None:
        partition = TopicPartition(message.topic(), message.partition())
        span, error = pending.get(partition), message.error()
        if span is None:
            return
        is_beyond = error is None and span.before is not None and message.offset() >= span.before
        if error is None and not is_beyond:
            found[span].append(_record(message))
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            self.errors[span] = explained(error, partition=partition)
        elif error is not None or is_beyond or len(found[span]) == span.most:
            self.values[span] = tuple(found[span])
        else:
            return
        del pending[partition]
        self._consumer.pause([ConfluentPartition(*partition)])


def _record(message: Any) -> Record:
    kind, time_ms = message.timestamp()
    timestamp_ms = None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms
    return Record(message.offset(), timestamp_ms, message.key(), message.value(), tuple(message.headers() or ()))
