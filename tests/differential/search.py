"""Many generated sequences through Kafka's coordinator and the core: ``python -m tests.differential.search 20000``.

Prints how many were run, what they reached and what differs. A sequence that differs is made smaller and kept in
tests/golden/coordinator, with what Kafka does; tests/golden/test_coordinator.py replays those without Kafka. Number N of a seed
is always the same sequence (``--first N`` starts there).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kgctl.coordinator.config import BROKER_VERSION
from kgctl.coordinator.profile import LATEST, Profile, profile_of
from tests.conformance.world import World
from tests.differential.choices import Choice
from tests.differential.coverage import Coverage
from tests.differential.oracle import VERSIONS, Expectations, KafkaCoordinator, KafkaFailedError
from tests.differential.sequences import KINDS, THEMES, NextStep, SequenceBuilder
from tests.differential.verdict import verdict
from tests.support.maven import digest

GOLDEN = Path(__file__).parents[1] / "golden" / "coordinator"
SHORTEST, LONGEST = 3, 30
AHEAD = 16
"""So many sequences wait for Kafka, or for being compared, at one time."""
Case = dict[str, Any]
_FAILED = "the core failed"


@dataclass
class Tally:
    """What a run has seen."""

    sequences: int = 0
    steps: int = 0
    differing: list[Path] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)


class Built(NamedTuple):
    """A sequence, and what the core did with it; or how it failed."""

    case: Case
    world: World
    failure: str | None


def build(choice: Choice, themes: Sequence[tuple[NextStep, ...]] = THEMES, profile: Profile = LATEST) -> Built:
    """A sequence of some steps about one of ``themes``, for a coordinator of this version."""
    builder = SequenceBuilder(choice, themes, profile)
    failure = None
    try:
        builder.build(choice.number(SHORTEST, LONGEST))
    except Exception:  # noqa: BLE001  # the core must not fail, whatever it is asked
        builder.case["end"] = builder.now
        failure = _failure()
    return Built(builder.case, builder.world, failure)


def _failure() -> str:
    return f"{_FAILED}: {traceback.format_exc()[-400:]}"


def differences(built: Built, expected: Expectations, tally: Tally) -> list[str]:
    """What differs."""
    tally.sequences += 1
    tally.steps += len(built.case["steps"])
    if built.failure is not None:
        return [built.failure]
    tally.coverage.see(built.case, expected, built.world)
    return verdict(built.case, expected, built.world)


def judge(kafka: KafkaCoordinator, case: Case) -> list[str]:
    """What differs over a sequence that is there already."""
    expected = kafka.expect(case)
    try:
        return verdict(case, expected)
    except Exception:  # noqa: BLE001
        return [_failure()]


def shrink(kafka: KafkaCoordinator, case: Case) -> Case:
    """The sequence without the steps and settings that the difference does not need."""
    failed = _has_failed(judge(kafka, case))
    place = len(case["steps"]) - 1
    while place >= 0:
        steps = case["steps"][:place] + case["steps"][place + 1 :]
        smaller = {**case, "steps": steps}
        if steps and _still(kafka, smaller, failed=failed):
            case = smaller
        place -= 1
    for name in set(case["given"].get("config", {})) - {BROKER_VERSION}:
        config = {key: value for key, value in case["given"]["config"].items() if key != name}
        case = _with(kafka, case, {"config": config}, failed=failed)
    return _with(kafka, case, {"records": {}}, failed=failed)


def _with(kafka: KafkaCoordinator, case: Case, given: dict[str, Any], *, failed: bool) -> Case:
    """The sequence with these things given instead, if it still differs."""
    smaller = {**case, "given": {**case["given"], **given}}
    return smaller if _still(kafka, smaller, failed=failed) else case


def _still(kafka: KafkaCoordinator, case: Case, *, failed: bool) -> bool:
    """Whether it differs in the same way; one that cannot be run without what was taken out does not."""
    try:
        found = judge(kafka, case)
    except KafkaFailedError:
        return False
    return bool(found) and _has_failed(found) == failed


def _has_failed(found: list[str]) -> bool:
    return bool(found) and found[0].startswith(_FAILED)


def keep(kafka: KafkaCoordinator, case: Case, folder: Path = GOLDEN) -> Path:
    """Writes a golden file: a sequence and what Kafka does with it."""
    text = json.dumps({**case, "expect": kafka.expect(case)}, ensure_ascii=False, separators=(",", ":"))
    path = folder / f"{digest(text)[:10]}.json"
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps({**json.loads(text), "id": path.stem}, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def generated(
    start: int, first: int, count: int, themes: Sequence[tuple[NextStep, ...]] = THEMES, profile: Profile = LATEST
) -> Iterator[Built]:
    """The sequences of a seed from one number on."""
    for number in range(first, first + count):
        yield build(Choice(random.Random(f"{start}/{number}").randint), themes, profile)


def run(
    kafka: KafkaCoordinator,
    examples: int,
    start: int,
    first: int = 0,
    folder: Path = GOLDEN,
    themes: Sequence[tuple[NextStep, ...]] = THEMES,
) -> Tally:
    """So many sequences, both sides at work at the same time; those that differ are shrunk and kept after the others."""
    tally = Tally()
    waiting: deque[Built] = deque()
    differing: list[Case] = []

    def compare_one() -> None:
        built = waiting.popleft()
        found = differences(built, kafka.receive(), tally)
        if found:
            differing.append(built.case)
            print(f"sequence {first + tally.sequences - 1}: {found[0][:500]}", flush=True)

    for built in generated(start, first, examples, themes, profile_of(kafka.version)):
        kafka.submit(built.case)
        waiting.append(built)
        if len(waiting) == AHEAD:
            compare_one()
    while waiting:
        compare_one()
    tally.differing.extend(keep(kafka, shrink(kafka, case), folder) for case in differing)
    return tally


def record(kafka: KafkaCoordinator, built: Iterator[Built], path: Path) -> None:
    """Write sequences down with what Kafka does, a line each, for those who have no Kafka."""
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for number, one in enumerate(built):
            case = {**one.case, "id": f"{number}", "expect": kafka.expect(one.case)}
            file.write(json.dumps(case, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.search", description=__doc__)
    parser.add_argument("examples", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=GOLDEN, metavar="FOLDER", help="where to keep what differs")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with this number of the seed's sequences")
    parser.add_argument("--about", choices=KINDS, default="anything", help="what the sequences are mostly about")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write them down with what Kafka does, and compare nothing")
    parser.add_argument("--broker-version", choices=VERSIONS, default=LATEST.version, help="whose coordinator")
    options = parser.parse_args()
    kafka = KafkaCoordinator(options.broker_version)
    if options.record is not None:
        record(kafka, generated(options.seed, options.first, options.examples, KINDS[options.about]), options.record)
        return 0
    tally = run(kafka, options.examples, options.seed, options.first, options.keep, KINDS[options.about])
    kafka.close()
    print(f"{tally.sequences} sequences of {tally.steps} steps; {len(tally.differing)} differ")
    for path in tally.differing:
        print(f"kept: {path.name}")
    print(tally.coverage.table())
    return 1 if tally.differing else 0


if __name__ == "__main__":
    sys.exit(main())
