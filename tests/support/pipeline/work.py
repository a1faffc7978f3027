"""Functions that tests give to engines: of a module, so that other processes find them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgctl.errors import InvariantViolation, UnreachableError


def square(number: int) -> int:
    """The square; 13 is refused, and 14 is a mistake of whoever wrote this."""
    if number == 13:
        raise InvariantViolation("thirteen is not squared")
    if number == 14:
        raise ZeroDivisionError("14")
    return number * number


def away(_: object) -> Iterator[Any]:
    """A cluster that is not there."""
    raise UnreachableError("nobody is there")


def kill_at_five(number: int) -> int:
    """Five takes its process with it."""
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def kill_at_five_from(now: Path, number: int) -> int:
    """The same, not before there is a file ``now``."""
    while number == 5 and not now.exists():
        time.sleep(0.01)
    return kill_at_five(number)
