"""The fetching half of a share consumer."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.simulate.shared import run_text

BEHIND = "traffic: {orders: {0s: 0/s, 1s: 500/s, 3s: 0/s}}\nduration: 40s\nallow: [timed_out]\n"


def test_poll_returns_so_many_records_at_most_and_the_others_wait_with_their_locks_running() -> None:
    config = "config: {max.poll.records: 100}"
    result = run_text(f"cluster: {{brokers: 3}}\nmembers: {{app: {{count: 1, process_time: 20ms, {config}}}}}\n{BEHIND}")
    assert result.metric("in_flight", ("peak",)) > 200
    assert result.metric("in_flight_time", ("max",)) > 4
    by_poll: Counter[int] = Counter()
    for each in result.share.acknowledged:
        by_poll[each.at_us // 500_000] += each.amount
    assert max(by_poll.values()) == 100


@pytest.mark.parametrize(("mode", "most"), [("record_limit", 20), ("batch_optimized", 20)])
def test_a_fetch_brings_no_more_than_is_asked_for(mode: str, most: int) -> None:
    config = f"config: {{max.poll.records: 20, share.acquire.mode: {mode}}}"
    result = run_text(f"cluster: {{brokers: 1}}\nmembers: {{app: {{count: 2, process_time: 5ms, {config}}}}}\n{BEHIND}")
    share = result.share
    assert max(each.amount for each in share.delivered) == most
    assert result.metric("lag") < 4


def test_an_idle_group_costs_nothing() -> None:
    idle = run_text("members: {app: {count: 4}}\nduration: 1h\n")
    assert idle.tasks < 20_000
    assert idle.metric("without_work") == pytest.approx(1, abs=0.01)
