"""``python -m kgctl`` and the console script."""

from __future__ import annotations

import gc
import os
import signal
import sys
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

    code = run_process(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):  # all has been told: a signal from here on does not change what it means
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(code))
    sys.exit(code)


def _interrupt(_: int, __: object) -> NoReturn:
    raise _Interrupted


if __name__ == "__main__":
    main()
