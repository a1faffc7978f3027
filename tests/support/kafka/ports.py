"""Loopback ports for servers that a test starts."""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator
from functools import cache

# Below the range from which Linux takes the ports of outgoing connections, so that no client of a test takes one in between.
_FIRST, _LAST = 20_000, 32_000


@cache
def _steps_of(pid: int) -> Iterator[int]:
    """Where a process goes on looking. Each has its own place: processes that are forked would all begin at one."""
    return itertools.count(random.Random(pid).randrange(_LAST - _FIRST))


def free_ports(count: int) -> list[int]:
    """``count`` different loopback ports that nobody listens on now; a later call in this process gives others."""
    found: list[int] = []
    for step in itertools.islice(_steps_of(os.getpid()), _LAST - _FIRST):
        port = _FIRST + step % (_LAST - _FIRST)
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"no {count} free loopback ports between {_FIRST} and {_LAST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
