"""Many generated sequences through Kafka's SharePartition and the core: python -m tests.differential.share_partition.search 5000

Prints how many were run, what they reached and what differs; of what differs, the sequence without the steps that the difference
does not need. Number N of a seed is always the same sequence.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.differential.choices import Choice
from tests.differential.java_partner import JavaFailedError, JavaPartner
from tests.differential.share_partition.sequences import ShareSequence
from tests.differential.share_partition.world import Entry, ShareWorld

SOURCES = Path(__file__).parents[2] / "java" / "share_partition"
MAIN = "kafka.server.share.Oracle"
RECORDED = Path(__file__).parents[2] / "conformance" / "cases" / "share_partition_generated.jsonl.gz"
"""Sequences with what Kafka did, for those who have no Java (``120 --seed 3 --record``)."""
SHORTEST, LONGEST = 5, 40
Case = dict[str, Any]


def kafka_share_partition() -> JavaPartner:
    """Kafka's own SharePartition, in virtual time."""
    return JavaPartner(SOURCES, MAIN)


def generated(seed: int, number: int) -> ShareSequence:
    """One sequence of a seed, with what the core did."""
    return built(Choice(random.Random(f"{seed}/{number}").randint))


def built(choice: Choice) -> ShareSequence:
    """A sequence of these choices, with what the core did."""
    sequence = ShareSequence(choice)
    sequence.build(choice.number(SHORTEST, LONGEST))
    return sequence


def difference(case: Case, own: list[Entry], expected: list[Entry]) -> str | None:
    """What differs first."""
    for number, (step, got, wanted) in enumerate(zip(case["steps"], own, expected, strict=True)):
        if got != wanted:
            parts = [f"{part}: {got[part]}, expected {wanted[part]}" for part in wanted if got.get(part) != wanted[part]]
            return f"step {number} {step}: {'; '.join(parts) or got}"
    return None


def seen(case: Case, expected: list[Entry]) -> Iterator[str]:
    """What a sequence reached, so that a generator that no longer gets there is noticed."""
    for step, entry in zip(case["steps"], expected, strict=True):
        yield f"step {step['op']}"
        for event in entry["events"]:
            told = event[2:4] if event[0] == "done" else ()
            yield f"{step['op']}: {event[0]} {' '.join(map(str, told)).partition(': ')[0]}".strip()
        result = entry.get("result")
        if isinstance(result, dict):
            yield f"acquire: {'thrown ' + str(result['thrown']) if 'thrown' in result else 'some' if result['count'] else 'none'}"
        if "gap" in entry["state"]:
            yield f"{step['op']}: with a gap"


def own_of(case: Case) -> list[Entry]:
    """What the core does with a sequence that is there already."""
    world = ShareWorld(case["given"])
    return [world.take(step) for step in case["steps"]]


def shrink(case: Case, differs: Callable[[Case], bool]) -> Case:
    """The sequence without the steps that the difference does not need."""
    place = len(case["steps"]) - 1
    while place >= 0:
        smaller = {**case, "steps": case["steps"][:place] + case["steps"][place + 1 :]}
        if differs(smaller):
            case = smaller
        place -= 1
    return case


def judged(kafka: JavaPartner, case: Case) -> bool:
    """Whether Kafka and the core differ over it; not where it cannot be run without what was taken out."""
    try:
        expected = kafka.ask(case)
        return difference(case, own_of(case), expected) is not None
    except (JavaFailedError, KeyError, ValueError, AssertionError):
        return False


def run(kafka: JavaPartner, count: int, seed: int, first: int = 0) -> tuple[Counter[str], list[str]]:
    """So many sequences: what they reached, and what differs."""
    reached: Counter[str] = Counter()
    differing = []
    for number in range(first, first + count):
        sequence = generated(seed, number)
        try:
            expected = kafka.ask(sequence.case)
        except JavaFailedError as failure:
            found: str | None = f"Kafka cannot follow: {failure}"
        else:
            reached.update(seen(sequence.case, expected))
            found = difference(sequence.case, sequence.own, expected)
        if found is not None:
            differing.append(f"sequence {number} of seed {seed}: {found}")
    return reached, differing


def record(kafka: JavaPartner, count: int, seed: int, file: Path) -> None:
    """Write so many sequences with what Kafka does, for those who have no Java."""
    with gzip.GzipFile(file, "wb", mtime=0) as packed:
        for number in range(count):
            case = generated(seed, number).case
            line = json.dumps({"id": f"{seed}/{number}", **case, "expect": kafka.ask(case)}, separators=(",", ":"))
            packed.write(f"{line}\n".encode())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.share_partition.search", description=__doc__)
    parser.add_argument("examples", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with this number of the seed's sequences")
    parser.add_argument("--shrink", action="store_true", help="make the first sequence smaller")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the sequences with what Kafka does, packed")
    options = parser.parse_args()
    kafka = kafka_share_partition()
    if options.record is not None:
        record(kafka, options.examples, options.seed, options.record)
        return 0
    if options.shrink:
        small = shrink(generated(options.seed, options.first).case, lambda case: judged(kafka, case))
        print(*map(json.dumps, small["steps"]), sep="\n")
        print(small["given"], difference(small, own_of(small), kafka.ask(small)))
        return 0
    reached, differing = run(kafka, options.examples, options.seed, options.first)
    kafka.close()
    print(*(f"{count:8} {what}" for what, count in sorted(reached.items())), *differing, sep="\n")
    print(f"{options.examples} sequences, {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
