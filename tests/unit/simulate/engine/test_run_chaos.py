"""Faults of every kind at random: the invariants hold all the time, and when the faults are over the group gets well."""

from __future__ import annotations

import pytest

from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.fields import Commit, CommitMode, changed
from kgctl.simulate.scenario.model import Nemesis
from kgctl.simulate.scenario.quantities import Uniform
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, scenario

FAULTS = tuple(name for name, kind in EVENT_KINDS.items() if kind.fault is not None)
SETTINGS = [RANGE, COOPERATIVE, CONSUMER, {"partition.assignment.strategy": "sticky"}]


@pytest.mark.parametrize("seed", [1, 5, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (2, 3, 4))])
@pytest.mark.parametrize("config", SETTINGS, ids=["range", "cooperative", "consumer", "sticky"])
@pytest.mark.parametrize("instance_id", [None, "$name"], ids=["dynamic", "static"])
def test_a_group_survives_a_quarter_of_an_hour_of_faults(config: dict[str, str], instance_id: str | None, seed: int) -> None:
    mode = list(CommitMode)[seed % 4]
    calm = scenario(
        config=config,
        count=5,
        partitions=12,
        rate=100,
        rate_uhz=100 * S,
        poll=Uniform(0, 200_000),
        instance_id=instance_id,
        commit=Commit(mode=mode),
    )
    result = run(changed(calm, nemesis=Nemesis(mean_interval_us=15 * S, of=FAULTS, until_us=900 * S)), seed)
    # A static member of the consumer protocol that comes back before its crash is noticed is refused, and its client gives up.
    refused = result.metric("errors", ("UNRELEASED_INSTANCE_ID",)) if instance_id and "group.protocol" in config else 0
    assert (result.stopped, result.metric("state")) == ("", "Stable")
    assert 5 - (refused or 0) <= result.metric("members") <= 5  # type: ignore[operator]
    causes = ("rebalance", "handover", "detection", "static_wait", "boot", "stall", "discovery", "coordinator", "fetch", "broker")
    total = sum(result.metric("unavailable", (f"cause {cause}",)) or 0 for cause in causes)  # type: ignore[misc]
    assert total == pytest.approx(result.metric("unavailable"))  # I8
    assert result.metric("owners") == 1
    written = sum(result.recording.ledger.arrivals.total_pr(number, result.recording.now_us) for number in range(12))
    waiting = sum(result.recording.ledger.backlog_pr(number, result.recording.now_us) for number in range(12))
    assert result.metric("processed") == (written - waiting) // 10**12  # I9
