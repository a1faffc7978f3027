"""Many generated scripts to Apache Kafka and to kgctl's server: ``python -m tests.wire.generated.search 20000``.

Prints how many were run and what differs. A script that differs is made smaller and kept in tests/golden/wire, which
tests/wire/test_generated_same_as_kafka.py plays again.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support.maven import digest
from tests.wire.generated.compare import Server, compare, signature
from tests.wire.generated.servers import both_servers
from tests.wire.generated.steps import Step, scripts

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"


@dataclass
class Tally:
    """What a run has seen: scripts, their steps, and each difference with the script it was found by."""

    scripts: int = 0
    steps: int = 0
    differing: dict[str, list[Step]] = field(default_factory=dict)


def shrink(kafka: Server, kgctl: Server, script: list[Step], seen: str) -> list[Step]:
    """The script without the steps that the difference does not need."""
    place = len(script) - 1
    while place >= 0:
        smaller = script[:place] + script[place + 1 :]
        if smaller and signature(compare(kafka, kgctl, smaller, 1)) == seen:
            script = smaller
        place -= 1
    return script


def run(kafka: Server, kgctl: Server, examples: int, start: int, budget_s: float = float("inf"), fewest: int = 0) -> Tally:
    """So many scripts, as far as the time allows, but ``fewest`` at least; the first of each kind of difference is shrunk."""
    tally = Tally()
    deadline = time.monotonic() + budget_s

    @seed(start)
    @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
    @given(scripts())
    def search(script: list[Step]) -> None:
        if time.monotonic() > deadline and tally.scripts >= fewest:
            return
        tally.scripts += 1
        tally.steps += len(script)
        found = compare(kafka, kgctl, script)
        seen = signature(found)
        if found and seen not in {signature(key.split("\n")) for key in tally.differing}:
            tally.differing["\n".join(found)] = shrink(kafka, kgctl, script, seen)

    search()
    return tally


def keep(script: list[Step]) -> Path:
    """Write a golden file: a script, a step a line."""
    text = "".join(f"{json.dumps(step)}\n" for step in script)
    path = GOLDEN / f"{digest(text)[:10]}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.wire.generated.search", description=__doc__)
    parser.add_argument("examples", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="S", help="stop after so many seconds")
    options = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory() as folder, both_servers(Path(folder) / "kafka") as (kafka, kgctl):
        tally = run(kafka, kgctl, options.examples, options.seed, options.budget)
    print(f"{tally.scripts} scripts of {tally.steps} steps; {len(tally.differing)} differ")
    for found, script in tally.differing.items():
        print(keep(script).name, found[:1_500], flush=True)
    return 1 if tally.differing else 0


if __name__ == "__main__":
    sys.exit(main())
