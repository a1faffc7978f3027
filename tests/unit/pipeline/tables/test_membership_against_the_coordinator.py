"""Members and assignments at every moment of a run, held against what the coordinator had at that moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kgctl.pipeline.tables.group_history import Cause
from kgctl.pipeline.tables.membership import ASSIGNMENTS, GROUP_GENERATIONS, MEMBERS
from kgctl.simulate.scenario.model import Scenario
from tests.support.pipeline.histories import STABLE, Told, inputs_of, told_by_simulation
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, event, scenario

Row = dict[str, Any]
CHANGES = (
    event("rolling_restart", "app", settle=2_000_000),
    event("crash", "app/1", 100),
    event("scale", "app", 120, to=5),
    event("add_partitions", "t", 150, to=9),
)
RUNS = {
    "range": scenario(*CHANGES, config={**RANGE, "metadata.max.age.ms": "30000"}, duration_s=260),
    "cooperative": scenario(*CHANGES, config=COOPERATIVE, duration_s=260),
    "consumer": scenario(*CHANGES, config=CONSUMER, duration_s=260),
    "static": scenario(*CHANGES[:2], config=RANGE, instance_id="$name", duration_s=200),
    "static consumer": scenario(*CHANGES[:2], config=CONSUMER, instance_id="$name", duration_s=200),
    "one by one": scenario(event("stop", "app", 0), event("start", "app", 60), config=RANGE, duration_s=120),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_members_and_assignments_are_the_coordinators(run: Scenario) -> None:
    told = told_by_simulation(run, 1)
    inputs = inputs_of(told.raw)
    spans = MEMBERS.build(inputs).to_pylist()
    owned = ASSIGNMENTS.build(inputs).to_pylist()

    for moment in told.moments:
        assert {row["member_id"] for row in _at(spans, moment.time_ms)} == set(moment.assignments)
        expected = {member_id: partitions for member_id, partitions in moment.assignments.items() if partitions}
        assert _by_member(_at(owned, moment.time_ms)) == expected


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_generations_are_the_coordinators(run: Scenario) -> None:
    told = told_by_simulation(run, 1)
    rows = GROUP_GENERATIONS.build(inputs_of(told.raw)).to_pylist()
    rebalances = [row for row in rows if row["cause"] != Cause.STATIC_MEMBER_RETURNED]

    following_ms = [row["started_ms"] for row in rebalances[1:]] + [None]
    seen = [
        (row["generation_id"], row["stable_ms"])
        for row, next_ms in zip(rebalances, following_ms, strict=True)
        if row["stable_ms"] is not None and row["stable_ms"] != next_ms  # the watcher looks once a millisecond
    ]
    assert seen == _first_stable(told)
    assert all(row["started_ms"] <= row["stable_ms"] for row in rebalances if row["stable_ms"])
    at = 0
    for row in rows:
        at += len(row["members_joined"]) - len(row["members_left"])
        assert row["members"] == at, "who joined and left adds up to who is there"
    assert Cause.UNKNOWN not in {row["cause"] for row in rows}


def _first_stable(told: Told) -> list[tuple[int, int]]:
    """When each generation was seen to be stable, or empty, for the first time."""
    seen: dict[int, int] = {}
    for moment in told.moments:
        is_settled = moment.state == STABLE or (moment.state == "Empty" and moment.generation > 0)
        if is_settled and (moment.type == "classic" or moment.target_epoch == moment.generation):
            seen.setdefault(moment.generation, moment.time_ms)
    return list(seen.items())


def _at(rows: Iterable[Row], time_ms: int) -> list[Row]:
    return [row for row in rows if row["from_ms"] <= time_ms and (row["to_ms"] is None or time_ms < row["to_ms"])]


def _by_member(rows: Iterable[Row]) -> Mapping[str, frozenset[tuple[str, int]]]:
    found: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in rows:
        found[row["member_id"]].add((row["topic"], row["partition"]))
    return {member_id: frozenset(partitions) for member_id, partitions in found.items()}
