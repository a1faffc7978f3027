"""``python -m kgctl`` and the console script."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C. Python remembers a plain `KeyboardInterrupt` that comes out of an ``exec``, which dataclasses are made by, even
    when it is caught: ``python -m`` then ends by the signal instead of by its exit code.
    """


def main() -> None:
    """Run the command line of this process and leave with its exit code.

    The search for reference cycles is off from the first import on: nearly all that a command makes it keeps until it ends, and
    looking through it costs more than half of the time that 100,000 rows take. Commands that live long turn it on again.
    """
    gc.disable()
    if hasattr(signal, "pthread_sigmask"):  # Ctrl-C waits until somebody can tell of it: kgctl.cli.app lets it through
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a process in the background ignores it
        signal.signal(signal.SIGINT, _interrupt)
    from kgctl.cli.app import run_process

    atexit.register(_on_signals, signal.SIG_IGN)  # registered first, it is called last: then libraries are unloaded
    code = run_process(sys.argv[1:])
    _on_signals(lambda *_: os._exit(code))
    sys.exit(code)


def _on_signals(handler: Callable[[int, object], object] | signal.Handlers) -> None:
    """For the time after all has been told: a signal then does not change the exit code, which says what was done."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(_: int, __: object) -> NoReturn:
    raise _Interrupted


if __name__ == "__main__":
    main()
