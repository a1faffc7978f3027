"""Replays recorded sequences against the coordinator: ``python -m tests.conformance.replay FILE.jsonl.gz``.

The format is described in cases/FORMAT-coordinator.md. Prints how many sequences agree and the first differences; exits with 1
if one differs. Cases that tell of another server than Kafka (``flavour``) are left out, and said to be.
"""

from __future__ import annotations

import gzip
import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from traceback import format_exc

from tests.conformance.comparison import differences
from tests.conformance.world import Case, World

_SHOWN = 10


def load(path: Path) -> Iterator[Case]:
    """The cases of a file: JSON lines, also packed, or YAML."""
    if path.suffix in (".yaml", ".yml"):
        import yaml

        yield from yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def is_of_kafka(case: Case) -> bool:
    """Whether the case tells what Kafka does, not another server that speaks its protocol."""
    return "flavour" not in case["given"]


def replay(case: Case, *, checked: bool = True) -> list[str]:
    """What differs from the case's expectations; empty when nothing does."""
    try:
        world = World(case, checked=checked)
        world.run()
    except Exception:  # noqa: BLE001  # whatever it is, the other cases are still of interest
        return [f"failed: {format_exc().strip()}"]
    return list(differences(case, world))


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = ArgumentParser(prog="python -m tests.conformance.replay", description=__doc__)
    parser.add_argument("file", type=Path, help="cases as JSON lines (.jsonl or .jsonl.gz) or YAML")
    parser.add_argument("--only", default="", help="only cases whose id begins with this")
    parser.add_argument("--show", type=int, default=_SHOWN, help="how many sequences that differ to show")
    options = parser.parse_args(arguments)
    chosen = [case for case in load(options.file) if case["id"].startswith(options.only)]
    cases = [case for case in chosen if is_of_kafka(case)]
    failed = {case["id"]: found for case in cases if (found := replay(case))}
    print(f"{len(cases) - len(failed)} of {len(cases)} sequences agree")
    for case in chosen:
        if not is_of_kafka(case):
            print(f"{case['id']}: left out, it tells of another server than Kafka ({case['given']['flavour']})")
    for case_id, found in list(failed.items())[: options.show]:
        print(f"{case_id}: {len(found)} differences, first: {found[0]}")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
