"""A proxy that loses connections: before each frame that passes, of either side, it may close both ends, by chance."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

_LENGTH = struct.Struct(">i")
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no seconds: closing sends a reset, as a peer that is gone does."""


class LossyProxy:
    """Listens on ``address`` from its making to `close`, and passes Kafka's frames on to what ``target`` tells.

    ``chance`` is that of each frame to close its connection instead of passing, ``delay_s`` what is waited for before each;
    both may be set at any time. ``lost`` counts the connections that were closed. Which frames are lost is drawn with ``seed``.
    """

    def __init__(
        self, target: Callable[[], tuple[str, int]], *, chance: float = 0.0, delay_s: float = 0.0, seed: int = 0
    ) -> None:
        self.chance, self.delay_s, self.lost = chance, delay_s, 0
        self._target = target
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take no more connections, and end those that there are."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_all()

    def break_all(self) -> None:
        """Close every connection now, as a NAT or a load balancer does with idle ones."""
        with self._lock:
            broken = list(self._open)
        for each in broken:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target())
        except OSError:
            client.close()
            return
        pair = (client, server)
        for each in pair:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open.update(pair)
        ways = [threading.Thread(target=self._pass, args=way, daemon=True) for way in (pair, pair[::-1])]
        for way in ways:
            way.start()
        for way in ways:
            way.join()
        with self._lock:
            self._open.difference_update(pair)
        for each in pair:
            each.close()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while frame := _frame(source):
                if self.delay_s:
                    time.sleep(self.delay_s)
                if self._is_lost():
                    for each in (source, sink):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    return
                sink.sendall(frame)
        except OSError:
            pass  # the other side was faster to leave
        finally:
            for each in (source, sink):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _is_lost(self) -> bool:
        with self._lock:
            is_lost = self._random.random() < self.chance
            self.lost += is_lost
            return is_lost


def _frame(source: socket.socket) -> bytes:
    """The next frame with its length; nothing at the end."""
    head = _exactly(source, _LENGTH.size)
    return head + _exactly(source, _LENGTH.unpack(head)[0]) if head else b""


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        data = source.recv(min(count, 1 << 18))
        if not data:
            return b""
        parts.append(data)
        count -= len(data)
    return b"".join(parts)
