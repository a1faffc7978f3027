"""400 generated groups with the answers of Apache Kafka 4.3.1's own assignors (FORMAT-assignors.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from kgctl.assignors import get_assignor
from kgctl.simulate.assign.groups import parse_document

CASES_FILE = Path(__file__).parent / "assignors_generated.jsonl.gz"

Owners = dict[str, dict[str, list[int]]]


def _ascending(assignment: Owners) -> Owners:
    return {member: {topic: sorted(partitions) for topic, partitions in topics.items()} for member, topics in assignment.items()}


def test_generated_cases_give_kafkas_answers() -> None:
    with gzip.open(CASES_FILE, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    differing, count = {}, 0
    for case in cases:
        for name, expected in case["expected"].items():
            assignment = get_assignor(name).assign(parse_document(case["input"], 1).group(name))
            found = {member: dict(topics) for member, topics in assignment.items()}
            count += 1
            if found != _ascending(expected):
                differing[f"{case['id']}-{case['tag']}-{name}"] = found

    assert differing == {}
    assert count == 959
