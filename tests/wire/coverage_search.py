"""Bytes that grow towards what they have not reached yet: ``python -m tests.wire.coverage_search TARGET [--seconds 60]``.

With atheris (of the extra dev, on Linux), which watches which lines an input reaches and alters those that
reached new ones. ``TARGET`` is one of `tests.support.fuzz_targets.TARGETS`. Ends with 0 when nothing was found; else atheris
prints the traceback, and writes the input to a file ``crash-...``.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

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
    with TemporaryDirectory() as seeds:
        corpus = [options.corpus] if options.corpus else []
        if options.target == "requests":
            _write_requests(Path(seeds))
            corpus = [*(corpus or [seeds]), seeds]
        atheris.Setup([sys.argv[0], *limits, *corpus], TARGETS[options.target])
        atheris.Fuzz()


def _write_requests(folder: Path) -> None:
    """A request of each API and version, with values that nobody would send: what is altered begins deep inside."""
    from kgctl.serde.messages import encode_request
    from kgctl.serde.schemas import load_plan
    from kgctl.server.service import default_registry
    from tests.support.wire.messages import random_values

    rng = random.Random(1)
    for spec in default_registry().specs():
        for version in range(spec.min_version, spec.max_version + 1):
            values = random_values(load_plan(spec.key, version, "request"), rng)
            with suppress(ValueError, OverflowError, struct.error):  # values that cannot be written
                (folder / f"{spec.key}-{version}").write_bytes(encode_request(spec.key, version, 1, "c", values))


if __name__ == "__main__":
    main()
