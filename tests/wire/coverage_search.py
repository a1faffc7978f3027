"""Bytes that grow towards what they have not reached yet: ``python -m tests.wire.coverage_search TARGET [--seconds 60]``.

With atheris (of the extra dev, on Linux), which watches which lines an input reaches and alters those that
reached new ones. ``TARGET`` is one of `tests.support.fuzz_targets.TARGETS`. Ends with 0 when nothing was found; else atheris
prints the traceback, and writes the input to a file ``crash-...``.
"""

from __future__ import annotations

import argparse
import sys

SLOWEST_S = 5
MOST_BYTES = 4_096


def main() -> None:
    """The command line."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=["kgctl"]):
        from tests.support.fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m tests.wire.coverage_search", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", default="", help="a folder of inputs to begin with")
    options = parser.parse_args()
    limits = [f"-max_total_time={options.seconds}", f"-timeout={SLOWEST_S}", f"-max_len={MOST_BYTES}", "-rss_limit_mb=1024"]
    atheris.Setup([sys.argv[0], *limits, *([options.corpus] if options.corpus else [])], TARGETS[options.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
