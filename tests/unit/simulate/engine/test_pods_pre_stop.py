"""preStop: a container runs on until the hook is over, its grace period counts from the hook's beginning."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.trace import PodChanged, TraceEvent
from tests.support.simulated import RANGE, S, event, scenario


class Log:
    """Keeps what happened to pods."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    def on_trace(self, event: TraceEvent) -> None:
        if isinstance(event, PodChanged) and event.pod == "app-1":
            self.events.append((event.what, event.at_us))

    def on_step(self, at_us: int, metrics: object) -> None:
        """Do nothing."""


@pytest.mark.parametrize(("pre_stop_s", "told_s"), [(0, 10), (5, 15), (30, 40), (60, 40)])
def test_sigterm_comes_when_pre_stop_or_the_grace_period_is_over(pre_stop_s: int, told_s: int) -> None:
    log = Log()
    stop = event("stop", "app/1", 10)
    run(scenario(stop, config=RANGE, warmup_s=0, duration_s=90, pre_stop_us=pre_stop_s * S, count=3), 1, observers=(log,))
    at_s = {name: at_us / S for name, at_us in log.events if at_us >= 10 * S}
    assert at_s["stop"] == told_s
    assert told_s <= at_s["stopped"] < told_s + 1


def test_a_batch_that_outlasts_what_pre_stop_left_is_cut_short() -> None:
    """Ten seconds of batch, 29 of 30 gone: killed after the least that a container has, two seconds."""
    log = Log()
    slow: dict[str, Any] = {"rate": 100, "rate_uhz": 1 * S, "partitions": 6, "poll_timeout_us": 100_000}
    config = {**RANGE, "auto.offset.reset": "earliest", "max.poll.records": "60"}
    given = scenario(event("stop", "app/1", 30), config=config, warmup_s=0, duration_s=120, pre_stop_us=29 * S, count=3, **slow)
    run(given, 1, observers=(log,))
    assert ("killed", 61 * S) in log.events


def test_a_pod_reads_on_while_its_pre_stop_sleeps() -> None:
    stop = event("stop", "app/1", 10)
    gaps = [
        run(scenario(stop, config=RANGE, warmup_s=30, duration_s=60, pre_stop_us=pre_stop_s * S, count=3), 1)
        for pre_stop_s in (0, 8)
    ]
    assert [found.metric("rebalances", ("before 17s",)) for found in gaps] == [1, 0]
    assert [found.metric("rebalances") for found in gaps] == [1, 1]
