"""The coordinator against Kafka's: cases written by hand from Kafka's own tests, and sequences recorded from its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.replay import load, main, replay
from tests.conformance.world import Case

CASES = Path(__file__).with_name("cases")

LEFT_OUT = {"A-W01": "tells of another server's sweep of sessions, not of Kafka"}


def _selected(file: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in load(CASES / file) if case["id"] not in LEFT_OUT]


@pytest.mark.parametrize("case", _selected("coordinator.yaml"))
def test_written_case_is_as_in_kafka(case: Case) -> None:
    assert replay(case) == []


@pytest.mark.parametrize("case", _selected("coordinator_generated.jsonl.gz"))
def test_recorded_sequence_is_as_in_kafka(case: Case) -> None:
    assert replay(case) == []


def test_the_command_says_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sequence that agrees, and the same with another answer."""
    file = tmp_path / "two.jsonl"
    step = '{"step": 1, "at": 5, "op": "heartbeat", "member": "m", "generation": 1}'
    for error in ("UNKNOWN_MEMBER_ID", "NONE"):
        expected = f'{{"step": 1, "at": 5, "reply": {{"error": "{error}"}}}}'
        line = f'{{"id": "{error}", "given": {{}}, "steps": [{step}], "end": 9, "expect": [{expected}]}}\n'
        file.write_text((file.read_text() if file.exists() else "") + line)

    code = main([str(file)])

    assert code == 1
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2 sequences agree",
        "NONE: 1 differences, first: step 1: answered {'error': 'UNKNOWN_MEMBER_ID'}, expected {'error': 'NONE'}",
    ]
    assert main([str(file), "--only", "UNKNOWN"]) == 0
