"""When an application commits decides what a crash costs: a pod reads 100 records a second and polls once a second."""

from __future__ import annotations

import pytest

from kgctl.simulate.engine.run import run
from kgctl.simulate.scenario.distributions import Constant
from kgctl.simulate.scenario.model import Commit, CommitMode
from tests.support.simulated import RANGE, S, event, scenario


@pytest.mark.parametrize(
    ("commit", "most_repeated", "most_lost"),
    [
        (Commit(mode=CommitMode.AUTO), 500, 0),
        (Commit(mode=CommitMode.EVERY, interval_us=10 * S), 1000, 0),
        (Commit(mode=CommitMode.AFTER_BATCH), 100, 0),
        (Commit(mode=CommitMode.BEFORE_BATCH), 0, 100),
    ],
    ids=["auto", "every", "after", "before"],
)
def test_what_a_crash_costs(commit: Commit, most_repeated: int, most_lost: int) -> None:
    costs = []
    for seed in range(1, 9):
        crash = event("crash", "app/0", at_s=37.3, for_us=S)
        result = run(scenario(crash, count=1, partitions=1, rate=100, poll=Constant(S), commit=commit), seed)
        costs.append((result.metric("duplicates"), result.metric("lost")))
    assert all(0 <= repeated <= most_repeated + 1 and 0 <= lost <= most_lost + 1 for repeated, lost in costs)  # type: ignore[operator]
    assert max(max(cost) for cost in costs) > max(most_repeated, most_lost) / 10  # type: ignore[type-var, operator]


def test_a_clean_restart_costs_nothing() -> None:
    for mode in (CommitMode.AUTO, CommitMode.AFTER_BATCH, CommitMode.BEFORE_BATCH):
        result = run(scenario(event("restart", "app"), config=RANGE, rate=100, commit=Commit(mode=mode)), 1)
        assert (mode, result.metric("lost")) == (mode, 0)
        assert result.metric("duplicates") <= (0 if mode is CommitMode.AUTO else 60)  # type: ignore[operator]


def test_an_application_commits_by_itself_where_its_client_is_told_not_to() -> None:
    config = {**RANGE, "enable.auto.commit": "false"}
    result = run(scenario(event("crash", "app/0", at_s=100, for_us=S), config=config, rate=100, poll=Constant(S)), 1)
    assert 0 <= result.metric("duplicates") <= 26  # type: ignore[operator]
    assert result.metric("lag") < 200  # type: ignore[operator]
