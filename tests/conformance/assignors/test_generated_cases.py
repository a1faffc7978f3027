"""400 generated groups with the answers of Apache Kafka 4.3.1's own assignors (FORMAT-assignors.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kgctl.assignors import get_assignor
from kgctl.simulate.assign.groups import parse_document

CASES_FILE = Path(__file__).parent / "assignors_generated.jsonl.gz"

Owners = dict[str, dict[str, list[int]]]


def _cases() -> list[Any]:
    with gzip.open(CASES_FILE, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return [
        pytest.param(case["input"], name, expected, id=f"{case['id']}-{case['tag']}-{name}")
        for case in cases
        for name, expected in case["expected"].items()
    ]


def _ascending(assignment: Owners) -> Owners:
    return {member: {topic: sorted(partitions) for topic, partitions in topics.items()} for member, topics in assignment.items()}


@pytest.mark.parametrize(("document", "name", "expected"), _cases())
def test_generated_case_gives_kafkas_answer(document: dict[str, Any], name: str, expected: Owners) -> None:
    group = parse_document(document, 1).group(name)

    assignment = get_assignor(name).assign(group)

    assert {member: dict(topics) for member, topics in assignment.items()} == _ascending(expected)
