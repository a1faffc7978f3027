"""The coordinator against Kafka's: cases written by hand from Kafka's own tests, and sequences recorded from its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.comparison import differences
from tests.conformance.replay import is_of_kafka, load, main, replay
from tests.conformance.world import Case, World
from tests.differential.verdict import verdict

CASES = Path(__file__).with_name("cases")


def _selected(file: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in load(CASES / file) if is_of_kafka(case)]


@pytest.mark.parametrize("case", _selected("coordinator.yaml"))
def test_written_case_is_as_in_kafka(case: Case) -> None:
    assert replay(case) == []


def test_recorded_sequences_are_as_in_kafka() -> None:
    found = {case["id"]: replay(case) for case in load(CASES / "coordinator_generated.jsonl.gz") if is_of_kafka(case)}

    assert {name: differences for name, differences in found.items() if differences} == {}
    assert len(found) == 400


def test_recorded_sequences_of_share_groups_are_as_in_kafka() -> None:
    """Records byte by byte. Made by ``python -m tests.differential.search 80 --about share --seed 9 --record ...``."""
    found = {case["id"]: verdict(case, case["expect"]) for case in load(CASES / "coordinator_share_generated.jsonl.gz")}

    assert {name: differences for name, differences in found.items() if differences} == {}
    assert len(found) == 80


def test_recorded_sequences_of_streams_groups_are_as_in_kafka() -> None:
    """Records byte by byte. Made by ``python -m tests.differential.search 100 --about streams --seed 9 --record ...``."""
    found = {case["id"]: verdict(case, case["expect"]) for case in load(CASES / "coordinator_streams_generated.jsonl.gz")}

    assert {name: differences for name, differences in found.items() if differences} == {}
    assert len(found) == 100


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


def test_a_change_at_time_0_of_a_group_that_is_given_is_compared() -> None:
    """A member that leaves at once: its group is another one from time 0 on, and a change that is not expected is told."""
    member = {"id": "m", "topics": ["t"], "assignment": ["t-0"]}
    group = {"type": "classic", "state": "Stable", "generation": 1, "protocol": "range", "leader": "m", "members": [member]}
    leave = {"step": 1, "at": 0, "op": "leave", "members": [{"member": "m"}]}
    case = {"id": "0", "given": {"group": group}, "steps": [leave], "expect": [], "end": 0}
    world = World(case)
    world.run()

    told = [line for line in differences(case, world) if line.startswith("group g")]

    assert len(told) == 1
    assert told[0].startswith("group g: (0, {'exists': True, 'type': 'classic', 'state': 'Empty'")
    assert told[0].endswith("expected None")


def test_the_command_leaves_other_servers_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not without saying so, and not to the last one: of nothing replayed nothing can be said."""
    file = tmp_path / "two.jsonl"
    agreeing = '{"id": "ours", "given": {}, "steps": [], "end": 9, "expect": []}\n'
    file.write_text(agreeing + '{"id": "theirs", "given": {"flavour": "seaweed"}, "steps": [], "end": 9, "expect": []}\n')

    assert main([str(file)]) == 0
    said = ["1 of 1 sequences agree", "theirs: left out, it tells of another server than Kafka (seaweed)"]
    assert capsys.readouterr().out.splitlines() == said
    assert main([str(file), "--only", "theirs"]) == 1
