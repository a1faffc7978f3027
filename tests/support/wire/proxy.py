"""A proxy between a client and a server that delays what passes, and cuts the connection in the midst of a frame."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no seconds: closing sends a reset, as a peer that is gone does."""
_LOOK_S = 0.1


class Proxy:
    """Listens on ``address`` for as long as the block. Both ways are cut after as many bytes as are said, of each connection.

    ``cut_requests`` counts what clients send, ``cut_answers`` what the server does; None: never. ``delay_s`` is waited for
    before each piece of at most ``piece_bytes``. ``with_reset`` ends with a reset and not with a farewell.
    """

    def __init__(
        self,
        target: str,
        *,
        cut_requests: int | None = None,
        cut_answers: int | None = None,
        delay_s: float = 0.0,
        piece_bytes: int = 65_536,
        with_reset: bool = False,
    ) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self.cut_requests, self.cut_answers = cut_requests, cut_answers
        self._delay_s, self._piece_bytes, self._with_reset = delay_s, piece_bytes, with_reset
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._has_ended = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._has_ended.set()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        """Pass both ways until one is cut or somebody leaves; then end both connections."""
        server = socket.create_connection(self._target)
        left = {client: self.cut_requests, server: self.cut_answers}
        other = {client: server, server: client}
        try:
            while not self._has_ended.is_set() and all(each is None or each > 0 for each in left.values()):
                ready, _, _ = select.select([client, server], [], [], _LOOK_S)
                for source in ready:
                    room = left[source]
                    data = source.recv(self._piece_bytes if room is None else min(self._piece_bytes, room))
                    if not data:
                        return
                    time.sleep(self._delay_s)
                    other[source].sendall(data)
                    if room is not None:
                        left[source] = room - len(data)
        except OSError:
            pass  # somebody was faster to leave
        finally:
            for each in (client, server):
                if self._with_reset:
                    with suppress(OSError):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.close()
