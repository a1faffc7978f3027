"""One line on stderr that is written over and over, on a terminal; nothing where nobody looks at one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kgctl.cli.environment import Environment

_PAUSE_S = 0.2
_CLEAR = "\r\x1b[K"


@contextmanager
def progress_line(environment: Environment) -> Iterator[Callable[[str], None]]:
    """Gives what takes the line; it is gone at the end."""
    if not environment.stderr.isatty():
        yield lambda _: None
        return
    last_s = 0.0

    def show(line: str) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= _PAUSE_S:
            last_s = time.monotonic()
            environment.stderr.write(f"{_CLEAR}{line}")
            environment.stderr.flush()

    try:
        yield show
    finally:
        environment.stderr.write(_CLEAR)
        environment.stderr.flush()
