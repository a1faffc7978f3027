"""A session with ZooKeeper: many reads in few requests, all of them in flight together; changes as transactions; one clear error.

Reads of many nodes go as ``multiRead`` (ZooKeeper 3.6), 500 nodes a request, which kazoo has no call for: its request is defined
here in the form in which kazoo keeps its own. Older servers answer it with "unimplemented" and close the connection, which
costs no session; from then on the reads are kazoo's plain ones, a thousand in flight at a time.

A connection that is lost is waited for until the deadline: reads begin again. A change that was sent and not answered raises
`Unanswered`: whoever made it reads back what became of it. Nothing here knows of consumer groups.
"""

from __future__ import annotations

import logging
import ssl
import struct
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from kgctl.admin.zookeeper import SessionLostError, ZooKeeperSettings
from kgctl.errors import AuthError, ClosedError, KgctlError, NotFoundError, TimedOutError, UnreachableError
from kgctl.extras import require
from kgctl.model.values import frozen_in_order
from kgctl.wire import Deadline

try:
    from kazoo import exceptions
    from kazoo.client import KazooClient
    from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
    from kazoo.protocol.serialization import GetChildren, GetData, multiheader_struct, read_buffer, stat_struct
    from kazoo.protocol.states import KeeperState
except ModuleNotFoundError:
    require("a connection to ZooKeeper", "kazoo")
    raise

DEFAULT_TIMEOUT_MS = 10_000
SESSION_MS = 10_000
NODES_A_REQUEST = 500
REQUESTS_IN_FLIGHT = 32
READS_IN_FLIGHT = 1_000
_RETRY_S = 0.05
_CLOSE_S = 2.0
_FAREWELL_S = 0.5

T = TypeVar("T")
R = TypeVar("R")


class NodeData(NamedTuple):
    """What a node holds, and how often that was changed."""

    data: bytes
    version: int


@dataclass(frozen=True)
class Answers(Generic[T]):
    """What was read, by path. A node that is not there is in neither mapping; ``denied`` may not be read."""

    values: Mapping[str, T] = field(default_factory=dict)
    denied: frozenset[str] = frozenset()


class Operation(NamedTuple):
    """One part of a transaction: ``create``, ``set``, ``delete`` or ``check``; ``version`` -1 stands for any."""

    kind: str
    path: str
    data: bytes = b""
    version: int = -1
    acl: Any = None


class Unanswered(UnreachableError):  # noqa: N818 - says what became of a change
    """A change was sent and the connection was lost before its answer: it may have been made or not."""

    slug = "REQUEST_TIMED_OUT"


class RefusedOperation(Exception):  # noqa: N818 - says which operation of a transaction stood against it
    """A transaction was not made, as a whole; ``reason`` is no_node, node_exists, not_empty, bad_version or no_auth."""

    def __init__(self, operation: Operation, reason: str) -> None:
        super().__init__(f"{operation.kind} {operation.path}: {reason}")
        self.operation = operation
        self.reason = reason


_REASONS: Mapping[type[Exception], str] = {
    exceptions.NoNodeError: "no_node",
    exceptions.NodeExistsError: "node_exists",
    exceptions.NotEmptyError: "not_empty",
    exceptions.BadVersionError: "bad_version",
    exceptions.NoAuthError: "no_auth",
}
_NOT_THIS_ONE = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""What the other operations of a transaction that failed carry."""
_LOST = (
    exceptions.ConnectionLoss,
    exceptions.ConnectionClosedError,
    exceptions.OperationTimeoutError,
    exceptions.SessionExpiredError,
)


@frozen_in_order
class _MultiRead:
    """org.apache.zookeeper.ZooDefs.OpCode#multiRead: several reads in one request, each answered for itself."""

    operations: Sequence[Any]

    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """Return the request in the form of kazoo's Transaction."""
        parts = [multiheader_struct.pack(each.type, False, -1) + each.serialize() for each in self.operations]  # noqa: FBT003
        return b"".join((*parts, multiheader_struct.pack(-1, True, -1)))  # noqa: FBT003

    @classmethod
    def deserialize(cls, buffer: bytes, offset: int) -> list[Any]:
        """A `NodeData`, a list of names or a number of an error for each read."""
        answers: list[Any] = []
        while True:
            kind, done, _ = multiheader_struct.unpack_from(buffer, offset)
            offset += multiheader_struct.size
            if done:
                return answers
            if kind == GetData.type:
                data, offset = read_buffer(buffer, offset)
                answers.append(NodeData(data or b"", stat_struct.unpack_from(buffer, offset)[4]))
                offset += stat_struct.size
            elif kind == GetChildren.type:
                names, offset = _names(buffer, offset)
                answers.append(names)
            else:
                answers.append(struct.unpack_from("!i", buffer, offset)[0])
                offset += 4


def _names(buffer: bytes, offset: int) -> tuple[list[str], int]:
    count = struct.unpack_from("!i", buffer, offset)[0]
    offset += 4
    names = []
    for _ in range(max(count, 0)):
        name, offset = read_buffer(buffer, offset)
        names.append((name or b"").decode("utf-8", "replace"))
    return names, offset


class ZooKeeperSession:
    """One session, begun at the first call. The caller closes it.

    ``timeout_ms`` covers one call of this class, or all that are made inside of `within`; several have together the ``limit``
    that they are given (`kgctl.admin.LimitsTime`). Errors of every method:
    `UnreachableError` (no answer in time), `AuthError` (the login is refused), `NotFoundError` (the chroot does not exist).
    """

    def __init__(
        self, settings: ZooKeeperSettings, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, session_ms: int = SESSION_MS
    ) -> None:
        self.settings = settings
        self.timeout_ms = timeout_ms
        self.limit: Deadline | None = None
        self._limits = threading.local()
        self._log = _Remembering()
        self._client = _client(settings, session_ms, self._log)
        self._started = False
        self._is_closed = False
        self._failed = False
        self._answered = False
        self._has_multi_read = True
        self._lock = threading.RLock()

    @property
    def session_id(self) -> int:
        """The session's number, by which ephemeral nodes belong to it."""
        return int((self._client.client_id or (0, b""))[0])

    @property
    def is_connected(self) -> bool:
        """Return whether the server answers at this moment."""
        return bool(self._client.connected)

    @contextmanager
    def within(self, timeout_ms: int | None = None) -> Iterator[Deadline]:
        """All calls of this thread in the block share one deadline; a block inside of a block shares the outer one's."""
        outer: Deadline | None = getattr(self._limits, "deadline", None)
        if outer is not None:
            yield outer
            return
        self._limits.deadline = Deadline.of_call(self.limit, timeout_ms or self.timeout_ms)
        try:
            yield self._limits.deadline
        finally:
            self._limits.deadline = None

    def get(self, path: str) -> NodeData | None:
        """Return one node, or None where it is not there."""
        answers = self.get_many([path])
        if path in answers.denied:
            raise denied(path)
        return answers.values.get(path)

    def children(self, path: str) -> list[str] | None:
        """The names below a node, sorted; None where it is not there."""
        answers = self.children_many([path])
        if path in answers.denied:
            raise denied(path)
        return answers.values.get(path)

    def get_many(self, paths: Sequence[str]) -> Answers[NodeData]:
        """Return what these nodes hold."""
        return self._read(paths, GetData, self._client.get_async, lambda found: NodeData(found[0], found[1].version))

    def children_many(self, paths: Sequence[str]) -> Answers[list[str]]:
        """Return the names below these nodes, sorted."""
        answers = self._read(paths, GetChildren, self._client.get_children_async, list)
        return Answers({path: sorted(names) for path, names in answers.values.items()}, answers.denied)

    def acl(self, path: str) -> Any:
        """A node's access control list; None where it is not there."""
        try:
            return self._answer(lambda: self._client.get_acls_async(path))[0]
        except exceptions.NoNodeError:
            return None
        except exceptions.NoAuthError:
            raise denied(path) from None

    def owner(self, path: str) -> int | None:
        """The session that an ephemeral node belongs to, 0 for one that stays; None where there is no node."""
        stat = self._answer(lambda: self._client.exists_async(path))
        return None if stat is None else int(stat.ephemeralOwner)

    def transact(self, operations: Sequence[Operation]) -> None:
        """Make all of these changes, or none.

        Raises:
            RefusedOperation: none was made; says which stood against it.
            Unanswered: sent, and not answered.
        """
        with self._errors():
            self._ensure_started()
            request = self._client.transaction()
            for operation in operations:
                _add(request, operation)
            results = self._sent(request.commit_async)
        failed = [(number, found) for number, found in enumerate(results) if isinstance(found, Exception)]
        for number, found in failed:
            if not isinstance(found, _NOT_THIS_ONE):
                raise _refused(operations[number], found)
        if failed:
            raise KgctlError(f"ZooKeeper refused a change and did not say why: {failed[0][1]!r}")

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, parents: bool = True) -> None:
        """Make a node, and those above it.

        Raises:
            RefusedOperation: it is there already, or may not be made.
            Unanswered: sent, and not answered.
        """
        operation = Operation("create", path, data)
        try:
            with self._errors():
                self._ensure_started()
                self._sent(lambda: self._client.create_async(path, data, ephemeral=ephemeral, makepath=parents))
        except tuple(_REASONS) as error:
            raise _refused(operation, error) from None

    def ensure(self, path: str) -> None:
        """Make a node without data, and those above it, where they are not there yet.

        Raises:
            AuthError: it may not be made.
        """
        try:
            self._answer(lambda: self._client.ensure_path_async(path))
        except exceptions.NoAuthError:
            raise denied(path) from None

    def watch_children(self, path: str, changed: Callable[[list[str]], bool]) -> None:
        """Call ``changed`` with the names below a node now and at each change, from another thread, until it answers False."""
        with self._errors():
            self._ensure_started()
            self._client.ChildrenWatch(path, lambda names: None if changed(sorted(names)) else False)

    def watch_data(self, path: str, changed: Callable[[bytes | None], bool]) -> None:
        """Call ``changed`` with what a node holds (None: it is not there) now and at each change, until it answers False."""
        with self._errors():
            self._ensure_started()
            self._client.DataWatch(path, lambda data, stat: None if changed(None if stat is None else data) else False)

    def children_watched(self, paths: Sequence[str], changed: Callable[[str], None]) -> Answers[list[str]]:
        """The names below these nodes; ``changed`` is called once with a path, from another thread, when its names are others.

        It is called too when a node comes or goes, and when the connection is lost, with which the watch ends. A node that may
        not be read is not watched.
        """

        def missing(path: str) -> None:
            if self._answer(lambda: self._client.exists_async(path, watch=lambda _: changed(path))) is not None:
                changed(path)  # it came between the two requests

        def names(path: str) -> Any:
            return self._client.get_children_async(path, watch=lambda _: changed(path))

        with self._errors():
            self._ensure_started()
            answers = self._plain_reads(list(paths), names, sorted) if paths else Answers()
            for path in paths:
                if path not in answers.values and path not in answers.denied:
                    missing(path)
        return answers

    def on_state(self, told: Callable[[str], None]) -> None:
        """Call ``told`` with ``CONNECTED``, ``SUSPENDED`` (connection lost) or ``LOST`` (session ended) when that changes."""
        self._client.add_listener(told)

    def close(self) -> None:
        """End the session for good: what is ephemeral goes with it. Safe to call twice; a server that hangs is not waited for."""
        self._is_closed = True
        self._stop()

    def _stop(self) -> None:
        with self._lock:
            if not self._started:
                return
            self._started = False
        ending = threading.Thread(target=self._end, daemon=True)
        ending.start()
        ending.join(0.0 if self._failed else _CLOSE_S)

    def _end(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception:  # noqa: BLE001 - kazoo's threads may still be at work; there is nobody to tell
            self._log.remembered = ""

    def _read(
        self, paths: Sequence[str], kind: Callable[[str, None], Any], plain: Callable[[str], Any], value: Callable[[Any], T]
    ) -> Answers[T]:
        """Read nodes, each path once; begins again where the connection is lost in between."""
        wanted = list(dict.fromkeys(paths))
        if not wanted:
            return Answers()
        while True:
            try:
                with self._errors():
                    self._ensure_started()
                    if self._has_multi_read:
                        return self._multi_read(wanted, kind)
                    return self._plain_reads(wanted, plain, value)
            except exceptions.UnimplementedError:
                self._has_multi_read = False
                self._await_farewell()

    def _await_farewell(self) -> None:
        """ZooKeeper before 3.6 closes the connection behind that answer: a change that was sent meanwhile would be lost."""
        until_s = time.monotonic() + _FAREWELL_S
        while self._client.connected and time.monotonic() < until_s:
            time.sleep(0.005)

    def _multi_read(self, paths: Sequence[str], kind: Callable[[str, None], Any]) -> Answers[Any]:
        root = self._client.chroot
        chunks = [paths[start : start + NODES_A_REQUEST] for start in range(0, len(paths), NODES_A_REQUEST)]
        requests = [_MultiRead([kind((root + path).rstrip("/") or "/", None) for path in chunk]) for chunk in chunks]
        found = self._retried(lambda: self._pipelined(requests, self._send, REQUESTS_IN_FLIGHT))
        return _sorted_out(zip(paths, (answer for answers in found for answer in answers), strict=True))

    def _plain_reads(self, paths: Sequence[str], plain: Callable[[str], Any], value: Callable[[Any], T]) -> Answers[T]:
        found = self._retried(lambda: self._pipelined(paths, plain, READS_IN_FLIGHT, missing=tuple(_REASONS)))
        answers = [each.code if isinstance(each, exceptions.ZookeeperError) else value(each) for each in found]
        return _sorted_out(zip(paths, answers, strict=True))

    def _send(self, request: _MultiRead) -> Any:
        answer = self._client.handler.async_result()
        self._client._call(request, answer)
        return answer

    def _pipelined(
        self, requests: Sequence[R], send: Callable[[R], Any], in_flight: int, missing: tuple[type[Exception], ...] = ()
    ) -> list[Any]:
        """The answers to all requests, in order; so many are under way at a time. ``missing`` errors are answers too."""
        found: list[Any] = []
        sent = [send(request) for request in requests[:in_flight]]
        for number in range(len(requests)):
            try:
                found.append(self._wait(sent[number]))
            except missing as error:
                found.append(error)
            if number + in_flight < len(requests):
                sent.append(send(requests[number + in_flight]))
        return found

    def _answer(self, send: Callable[[], Any]) -> Any:
        """The answer to one read, or to a change that may be repeated."""
        with self._errors():
            self._ensure_started()
            return self._retried(lambda: self._wait(send()))

    def _sent(self, send: Callable[[], Any]) -> Any:
        """The answer to a change that must not be repeated in ignorance."""
        try:
            return self._wait(send())
        except (*_LOST, KazooTimeoutError, TimedOutError):
            message = f"ZooKeeper at {self.settings} did not answer: whether the change was made is not known"
            raise Unanswered(message) from None

    def _retried(self, ask: Callable[[], T]) -> T:
        while True:
            try:
                return ask()
            except exceptions.ConnectionClosedError:
                raise
            except _LOST as lost:
                if not self._left().wait(_RETRY_S):
                    raise KazooTimeoutError from lost

    def _wait(self, answer: Any) -> Any:
        found = answer.get(timeout=self._left().seconds_left(f"ZooKeeper at {self.settings}"))
        self._answered = True
        return found

    def _left(self) -> Deadline:
        deadline: Deadline | None = getattr(self._limits, "deadline", None)
        return deadline or Deadline.of_call(self.limit, self.timeout_ms)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """kazoo's errors of the whole connection as kgctl's; those of one node pass."""
        try:
            with self.within():
                yield
        except exceptions.AuthFailedError:
            self._failed = True
            raise AuthError(f"ZooKeeper at {self.settings} refuses the login") from None
        except exceptions.ConnectionClosedError:
            if self.settings.sasl and not self._answered:  # the login comes after the connection, which its failure ends
                self._failed = True
                raise AuthError(f"ZooKeeper at {self.settings} refuses the login") from None
            raise UnreachableError(f"the connection to ZooKeeper at {self.settings} is closed") from None
        except exceptions.SessionExpiredError:
            raise SessionLostError(f"ZooKeeper at {self.settings} ended the session") from None
        except (exceptions.ConnectionLoss, KazooTimeoutError):
            self._failed = True
            raise TimedOutError(f"ZooKeeper at {self.settings} did not answer in time{self._log.because}") from None

    def _ensure_started(self) -> None:
        with self._lock:
            if self._is_closed:
                raise ClosedError("this connection to ZooKeeper is closed: connect again")
            if self._started:
                return
            self._start()
            self._started = True
        if self.settings.chroot and self.owner("/") is None:
            raise NotFoundError(f"ZooKeeper at {','.join(self.settings.hosts)} has no node {self.settings.chroot}")

    def _start(self) -> None:
        connected = self._client.start_async()
        limit = self._left()
        while not connected.wait(min(_RETRY_S, limit.seconds_left() if not limit.is_over else _RETRY_S)):
            refused = self._client.client_state == KeeperState.AUTH_FAILED
            if refused or limit.is_over:
                self._failed = self._started = True
                self._stop()
                raise self._not_started(limit, refused=refused)

    def _not_started(self, limit: Deadline, *, refused: bool) -> KgctlError:
        where = f"ZooKeeper at {self.settings}"
        if refused:
            return AuthError(f"{where} refuses the login")
        error = UnreachableError(f"{where} cannot be reached within {limit}{self._log.because}")
        error.nothing_sent = True
        return error


def denied(path: str) -> AuthError:
    """The error of a node that may not be read or written."""
    return AuthError(f"not authorised for {path} in ZooKeeper")


def _client(settings: ZooKeeperSettings, session_ms: int, log: _Remembering) -> KazooClient:
    if settings.sasl:
        require("a SASL login to ZooKeeper", "puresasl")
    return KazooClient(
        ",".join(settings.hosts) + settings.chroot,
        timeout=session_ms / 1000,
        auth_data=[("digest", settings.digest)] if settings.digest else None,
        sasl_options=dict(settings.sasl) if settings.sasl else None,
        connection_retry={"max_tries": -1, "delay": _RETRY_S, "max_delay": 1.0},
        logger=log.logger,
        handler=_QuietThreads(),
        **(settings.tls or {}),
    )


class _QuietThreads(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads; one that ends by an error ends the connection, which whoever waits is told, and prints no traceback."""

    def spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> threading.Thread:
        """Start a thread that does not print its error."""

        def run() -> None:
            with suppress(Exception):
                func(*args, **kwargs)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """kazoo's connection; a socket whose handshake failed, which kazoo leaves open, is closed."""
        try:
            return super().create_connection(*args, **kwargs)
        except Exception as error:
            found = [value for frame, _ in traceback.walk_tb(error.__traceback__) for value in frame.f_locals.values()]
            for value in found:
                if isinstance(value, ssl.SSLSocket):
                    value.close()
            raise


def _add(request: Any, operation: Operation) -> None:
    match operation.kind:
        case "create":
            request.create(operation.path, operation.data, acl=operation.acl)
        case "set":
            request.set_data(operation.path, operation.data, operation.version)
        case "delete":
            request.delete(operation.path, operation.version)
        case _:
            request.check(operation.path, operation.version)


def _refused(operation: Operation, error: Exception) -> Exception:
    reason = next((word for kind, word in _REASONS.items() if isinstance(error, kind)), None)
    if reason is None:
        return KgctlError(f"ZooKeeper refused {operation.kind} of {operation.path}: {type(error).__name__}")
    return RefusedOperation(operation, reason)


def _sorted_out(found: Iterable[tuple[str, Any]]) -> Answers[Any]:
    """Values apart from what is not there and what may not be read."""
    values: dict[str, Any] = {}
    refused = set()
    for path, answer in found:
        if not isinstance(answer, int):
            values[path] = answer
        elif answer == exceptions.NoAuthError.code:
            refused.add(path)
        elif answer != exceptions.NoNodeError.code:
            raise KgctlError(f"ZooKeeper refused to read {path}: {exceptions.EXCEPTIONS[answer].__name__}")
    return Answers(values, frozenset(refused))


class _Remembering(logging.Handler):
    """Keeps kazoo's last warning, which says why there is no connection, and lets nothing else out."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.remembered = ""
        self.logger = logging.Logger("kgctl.zookeeper", logging.WARNING)
        self.logger.addHandler(self)

    @property
    def because(self) -> str:
        """Return the remembered reason as the end of a message."""
        return f": {self.remembered}" if self.remembered else ""

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the reason at the end of the line."""
        text = record.getMessage()
        if text.startswith(("Connection dropped", "Connection time-out", "Cannot resolve")):
            self.remembered = text.rpartition(": ")[2] if text.startswith("Connection") else text
