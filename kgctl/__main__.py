"""``python -m kgctl`` and the console script."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line of this process and leave with its exit code.

    The search for reference cycles is off from the first import on: nearly all that a command makes it keeps until it ends, and
    looking through it costs more than half of the time that 100,000 rows take. Commands that live long turn it on again.
    """
    gc.disable()
    from kgctl.cli.app import run_process

    sys.exit(run_process(sys.argv[1:]))


if __name__ == "__main__":
    main()
