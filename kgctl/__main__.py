"""``python -m kgctl`` and the console script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    from kgctl.cli.app import run_process

    sys.exit(run_process(sys.argv[1:]))


if __name__ == "__main__":
    main()
