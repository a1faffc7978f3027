"""``python -m kgctl`` and the console script."""

from __future__ import annotations

import gc
import sys

# Objects that may be made before the collector looks for cycles among them (Python's own: 700, later 2,000). A command makes
# some 50,000 while it imports and asks, nearly all of them for good: looking through them costs a command 4 % of its time.
_COLLECT_AFTER = 50_000


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    from kgctl.cli.app import run_process

    sys.exit(run_process(sys.argv[1:]))


if __name__ == "__main__":
    main()
