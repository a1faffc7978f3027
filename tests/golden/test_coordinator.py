"""Sequences over which the core once differed from Kafka's coordinator, with what Kafka does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.differential.search import GOLDEN
from tests.differential.verdict import verdict


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in sorted(GOLDEN.glob("*.json"))])
def test_golden_sequence_goes_as_in_kafka(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))

    assert verdict(case, case["expect"]) == []
