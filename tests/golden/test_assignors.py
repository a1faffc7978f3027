"""Small groups over which kgctl's assignors once differed from Kafka's, with Kafka's answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.assignor_differential import GOLDEN, own_answer


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in sorted(GOLDEN.glob("*.json"))])
def test_golden_group_gets_kafkas_answer(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))

    assert {name: own_answer(case["input"], name) for name in case["expected"]} == case["expected"]
