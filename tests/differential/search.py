"""Many generated sequences through Kafka's coordinator and the core: ``python -m tests.differential.search 20000``.

Prints how many were run and what differs. A sequence that differs is made smaller and kept in tests/golden/coordinator, with what
Kafka does; tests/golden/test_coordinator.py replays those without Kafka.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.differential.choices import Choice
from tests.differential.oracle import KafkaCoordinator
from tests.differential.sequences import SequenceBuilder
from tests.differential.verdict import Verdict
from tests.support.maven import digest

GOLDEN = Path(__file__).parents[1] / "golden" / "coordinator"
LONGEST = 24


@dataclass
class Tally:
    """What a run has seen."""

    sequences: int = 0
    steps: int = 0
    known: Counter[str] = field(default_factory=Counter)
    differing: list[Path] = field(default_factory=list)


def compare(kafka: KafkaCoordinator, data: DataObject, tally: Tally) -> tuple[dict[str, Any], list[str]]:
    """Build a sequence and compare: the sequence, and what differs."""
    builder = SequenceBuilder(Choice(data))
    try:
        case = builder.build(data.draw(st.integers(3, LONGEST)))
    except Exception:  # noqa: BLE001  # the core must not fail, whatever it is asked
        return {**builder.case, "end": builder.now}, [f"the core failed: {traceback.format_exc()}"]
    tally.sequences += 1
    tally.steps += len(case["steps"])
    return case, judge(kafka, case, tally)


def judge(kafka: KafkaCoordinator, case: dict[str, Any], tally: Tally) -> list[str]:
    """What differs over a sequence that is there already."""
    expected = kafka.expect(case)
    try:
        verdict = Verdict(case, expected)
    except Exception:  # noqa: BLE001
        return [f"the core failed: {traceback.format_exc()}"]
    tally.known.update(verdict.known)
    return verdict.differences


def shrink(kafka: KafkaCoordinator, case: dict[str, Any]) -> dict[str, Any]:
    """The sequence without the steps and settings that the difference does not need."""
    place = len(case["steps"]) - 1
    while place >= 0:
        steps = case["steps"][:place] + case["steps"][place + 1 :]
        smaller = {**case, "steps": steps}
        if steps and judge(kafka, smaller, Tally()):
            case = smaller
        place -= 1
    for name in list(case["given"].get("config", {})):
        config = {key: value for key, value in case["given"]["config"].items() if key != name}
        smaller = {**case, "given": {**case["given"], "config": config}}
        if judge(kafka, smaller, Tally()):
            case = smaller
    return case


def keep(kafka: KafkaCoordinator, case: dict[str, Any]) -> Path:
    """Writes a golden file: a sequence and what Kafka does with it."""
    text = json.dumps({**case, "expect": kafka.expect(case)}, ensure_ascii=False, separators=(",", ":"))
    path = GOLDEN / f"{digest(text)[:10]}.json"
    path.write_text(json.dumps({**json.loads(text), "id": path.stem}, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def run(kafka: KafkaCoordinator, examples: int, start: int) -> Tally:
    """So many sequences; the first that differs in a batch is shrunk and kept, and the run goes on."""
    tally = Tally()

    @seed(start)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def search(data: DataObject) -> None:
        case, found = compare(kafka, data, tally)
        if found:
            tally.differing.append(keep(kafka, shrink(kafka, case)))
            print(tally.differing[-1].name, found[0][:500], flush=True)

    search()
    return tally


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.search", description=__doc__)
    parser.add_argument("examples", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kafka = KafkaCoordinator()
    tally = run(kafka, options.examples, options.seed)
    kafka.close()
    print(f"{tally.sequences} sequences of {tally.steps} steps; {len(tally.differing)} differ")
    for name, count in tally.known.items():
        print(f"{count} times known: {name}")
    return 1 if tally.differing else 0


if __name__ == "__main__":
    sys.exit(main())
