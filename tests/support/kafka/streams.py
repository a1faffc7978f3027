"""A member of a streams group (KIP-1071) without Kafka Streams: the heartbeats of one, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator, Sequence

from tests.support.patience import PATIENCE_S

STREAMS_GROUP_HEARTBEAT = 88
JOIN, LEAVE = 0, -1
SUBTOPOLOGY = "0"
_HEARTBEAT_S = 5.0


class StreamsMember:
    """Joins a streams group with a topology of one subtopology that reads ``topic``, and takes the tasks that it gets."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._group, self._topic = group, topic
        self._owned: tuple[int, ...] = ()
        self._correlation = 0
        self._lock = threading.Lock()
        self._epoch = JOIN
        self.error = 0

    def heartbeat(self, epoch: int | None = None) -> None:
        """Send one, and go by the answer; an error of the broker is ``error``."""
        with self._lock:
            self._send(self._epoch if epoch is None else epoch)
            answer = self._receive()
            self.error = struct.unpack_from(">h", answer, 9)[0]
            at = 11 + max(0, answer[11] - 1) + 1  # the message, then the member id
            at += max(0, answer[at] - 1) + 1
            if not self.error:
                self._epoch = struct.unpack_from(">i", answer, at)[0]

    def owns(self, partitions: Sequence[int]) -> None:
        """Report these tasks as owned from now on."""
        self._owned = tuple(partitions)

    def close(self) -> None:
        """Leave the group."""
        self.heartbeat(LEAVE)
        self._socket.close()

    def _send(self, epoch: int) -> None:
        self._correlation += 1
        header = struct.pack(">hhi", STREAMS_GROUP_HEARTBEAT, 0, self._correlation) + struct.pack(">h", 1) + b"s\0"
        joins = epoch == JOIN
        tasks = _array([_text(SUBTOPOLOGY) + _ints(self._owned) + b"\0"] if self._owned else [])
        body = b"".join((
            _text(self._group),
            _text("member"),
            struct.pack(">ii", epoch, 0),
            b"\0\0",  # neither instance id nor rack
            struct.pack(">i", 60_000),
            b"\1" + self._topology() if joins else b"\xff",
            *(tasks, _array([]), _array([])),
            _text("process") if joins else b"\0",
            b"\xff",  # no endpoint
            _array([]) if joins else b"\0",
            b"\0\0",  # no offsets of tasks
            b"\0",  # no shutdown
            b"\0",
        ))  # fmt: skip
        self._socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)

    def _topology(self) -> bytes:
        subtopology = _text(SUBTOPOLOGY) + _array([_text(self._topic)]) + _array([]) * 5 + b"\0"
        return struct.pack(">i", 0) + _array([subtopology]) + b"\0"

    def _receive(self) -> bytes:
        size = struct.unpack(">i", self._exactly(4))[0]
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return data


def _text(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def _array(items: Sequence[bytes]) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)


def _ints(numbers: Sequence[int]) -> bytes:
    return _array([struct.pack(">i", number) for number in numbers])


@contextlib.contextmanager
def streams_member(bootstrap: str, group: str, topic: str, partitions: int = 1) -> Iterator[StreamsMember]:
    """A member that owns all tasks, and stays in the group by its heartbeats until the end of the block."""
    member = StreamsMember(bootstrap, group, topic)
    member.heartbeat()
    assert not member.error, f"the broker answers a streams heartbeat with error {member.error}"
    member.owns(range(partitions))
    is_over = threading.Event()

    def stay() -> None:
        while not is_over.is_set():
            member.heartbeat()
            is_over.wait(0.2 if member.error else _HEARTBEAT_S / 5)

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    try:
        yield member
    finally:
        is_over.set()
        thread.join()
        member.close()
