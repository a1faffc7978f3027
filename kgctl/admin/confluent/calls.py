"""Waiting for librdkafka without being hung, misled or killed by it.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kgctl.admin.properties import CLIENT_PROPERTIES
from kgctl.admin.results import ItemError, item_error
from kgctl.errors import AuthError, BrokerError, KgctlError, TimedOutError, UnreachableError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.wire.deadline import Deadline

_LOCAL: Mapping[int, ErrorCode] = {
    KafkaError._TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE: ErrorCode.REQUEST_TIMED_OUT,
    KafkaError._WAIT_COORD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    KafkaError._TRANSPORT: ErrorCode.NETWORK_EXCEPTION,
    KafkaError._ALL_BROKERS_DOWN: ErrorCode.NETWORK_EXCEPTION,
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


def client_config(properties: Mapping[str, str]) -> dict[str, str | int]:
    """The configuration of an admin client; the user's values win, and those for consumers and producers are left out."""
    own = {name: value for name, value in properties.items() if name in CLIENT_PROPERTIES}
    log_level = {"log_level": "7"} if "debug" in own else {}
    return {**_DEFAULTS, **log_level, **own}


K = TypeVar("K")
T = TypeVar("T")

LIBRDKAFKA_TIMEOUT_S = 3600.0
_POLL_S = 0.005
_PAUSE_S = 0.05
_ALL_DOWN_GRACE_S = 1.0
_abandoned: list[AdminClient] = []


class AdminCalls:
    """An `AdminClient` whose calls end in time. ``timeout_ms`` covers all that is waited for from one `begin` to the next."""

    def __init__(self, properties: Mapping[str, str], timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
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

    def begin(self, deadline: Deadline | None = None) -> None:
        """Another operation begins; its time is ``deadline``'s where part of the operation has been done elsewhere.

        After one that ran out of time it has a client of its own.
        """
        self._deadline = deadline or Deadline(self._timeout_ms)
        if self._client is None:
            self._open()

    def pause(self) -> bool:
        """A moment before the same thing is asked again; False when there is no time for that."""
        return self._deadline.wait(_PAUSE_S) and not self._deadline.is_over

    def wait(self, futures: Iterable[Future[T]]) -> None:
        """Until all are done. Raises `AuthError` and `UnreachableError` as soon as that is known, else `TimedOutError`."""
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
