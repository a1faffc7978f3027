"""Many generated sequences through Kafka's share coordinator and ours: ``python -m tests.differential.share_state.search 5000``.

Prints how many were run, what Kafka did in them and what differs; then as many lists of batches to combine. Number N of a seed is
always the same sequence.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from kgctl.model.share import StateBatch
from kgctl.share.state.combining import combined
from tests.differential.java_partner import JavaPartner
from tests.differential.share_state.play import Entry, Play, rows
from tests.differential.share_state.sequences import Sequence, batch_lists, sequence

SOURCES = Path(__file__).parents[2] / "java" / "share_coordinator"
MAIN = "org.apache.kafka.coordinator.share.ShareOracle"
RECORDED = Path(__file__).parents[2] / "conformance" / "cases" / "share_state_generated.jsonl.gz"
"""Sequences with what Kafka did, for those who have no Java (``120 --seed 3 --record``)."""


def kafkas_share_coordinator() -> JavaPartner:
    """Kafka's ShareCoordinatorShard and its log, in virtual time."""
    return JavaPartner(SOURCES, MAIN)


def generated(seed: int, number: int) -> Sequence:
    """One sequence of a seed."""
    return sequence(random.Random(f"{seed}-{number}"))


def own_of(case: Sequence) -> list[Entry]:
    """What ours does with a sequence."""
    return Play(case).run(case["steps"])


def sequences_that_differ(kafka: JavaPartner, count: int, seed: int, seen: Counter[str]) -> list[Any]:
    """The first few of so many, with the step that differs; ``seen`` counts what Kafka did."""
    differing: list[Any] = []
    for number in range(count):
        case = generated(seed, number)
        theirs, ours = kafka.ask(case), own_of(case)
        _count(case, theirs, seen)
        if theirs != ours and len(differing) < 3:
            place = next(at for at, (their, our) in enumerate(zip(theirs, ours, strict=True)) if their != our)
            differing.append((f"{seed}-{number}", case["steps"][: place + 1], theirs[place], ours[place]))
    return differing


def _count(case: Sequence, theirs: list[Entry], seen: Counter[str]) -> None:
    for step, entry in zip(case["steps"], theirs, strict=True):
        answer = entry.get("answer")
        seen[f"{step['op']}: {answer['error'] if isinstance(answer, dict) and 'error' in answer else 'NONE'}"] += 1
        for key, value in entry["records"]:
            seen["tombstone" if value is None else ("snapshot", "update")[int(key[:4], 16)]] += 1


def lists_that_differ(kafka: JavaPartner, count: int, seed: int) -> list[Any]:
    """The first few of so many lists of batches whose combination differs."""
    differing: list[Any] = []
    for number in range(count):
        lists = batch_lists(random.Random(f"{seed}-{number}"))
        together = [StateBatch(*each) for each in (*lists["before"], *lists["after"])]
        theirs, ours = kafka.ask(lists), rows(combined(together, lists["start"]))
        if theirs != ours and len(differing) < 3:
            differing.append((lists, theirs, ours))
    return differing


def record(kafka: JavaPartner, count: int, seed: int, file: Path) -> None:
    """Write so many sequences with what Kafka does, for those who have no Java."""
    lines = []
    for number in range(count):
        case = generated(seed, number)
        lines.append(json.dumps({"id": f"{seed}-{number}", **case, "expect": kafka.ask(case)}))
    file.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help=f"write them to {RECORDED.name}")
    arguments = parser.parse_args()
    kafka = kafkas_share_coordinator()
    try:
        if arguments.record:
            record(kafka, arguments.count, arguments.seed, RECORDED)
            return 0
        seen: Counter[str] = Counter()
        differing = [
            *sequences_that_differ(kafka, arguments.count, arguments.seed, seen),
            *lists_that_differ(kafka, arguments.count, arguments.seed),
        ]
    finally:
        kafka.close()
    print(f"{arguments.count} sequences, {arguments.count} lists of batches: {len(differing)} shown that differ")
    print(*(f"{times:8} {what}" for what, times in sorted(seen.items())), *differing, sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
