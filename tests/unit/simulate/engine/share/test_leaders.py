"""What brokers do for a share group: where it begins, how much is in flight, who gets the next record, what is forgotten."""

from __future__ import annotations

import pytest

from tests.support.simulate.shared import run_text

BEHIND = "traffic: {orders: {0s: 100/s, 10s: 0/s}}\nduration: 1m\n"


@pytest.mark.parametrize(
    ("reset", "low", "high"), [("latest", 100, 700), ("earliest", 2_900, 4_600), ("by_duration:PT10S", 1_100, 1_700)]
)
def test_a_group_begins_where_its_settings_say(reset: str, low: int, high: int) -> None:
    group = f"group: {{type: share, config: {{share.auto.offset.reset: '{reset}'}}}}\n"
    result = run_text(f"{group}members: {{app: {{count: 2, start: 20s, boot: 0s}}}}\n{BEHIND}")
    share = result.share
    assert low <= sum(each.amount for each in share.delivered) <= high
    assert result.metric("lag") < 4


def test_no_more_is_in_flight_than_the_group_may_lock() -> None:
    config = "{type: share, config: {share.partition.max.record.locks: 100, share.auto.offset.reset: earliest}}"
    members = "members: {app: {count: 8, process_time: 200ms}}\n"
    text = f"group: {config}\n{members}traffic: {{orders: 400/s}}\nduration: 30s\nallow: [timed_out]\n"
    assert run_text(text).metric("in_flight", ("peak",)) == 400
    assert run_text(text.replace("100,", "2000,")).metric("in_flight", ("peak",)) > 1_000


def test_who_waits_longest_gets_the_next_record() -> None:
    result = run_text("members: {app: {count: 8}}\ntraffic: {orders: 8/s}\nduration: 2m\n")
    share = result.share
    start_us = result.recording.start_us
    given = [sum(each.amount for each in share.delivered if each.pod == pod and each.at_us > start_us) for pod in range(8)]
    assert sum(given) == pytest.approx(8 * 120, abs=5)
    assert max(given) - min(given) <= 2


def test_a_dead_leader_forgets_who_has_what() -> None:
    text = "cluster: {brokers: 3}\nmembers: {app: {count: 4, process_time: 100ms}}\ntraffic: {orders: 20/s}\nduration: 2m\n"
    result = run_text(f"{text}events: [{{at: 30s, broker_down: 2, for: 30s}}]\n")
    assert result.metric("redelivered") == result.metric("redelivered", ("cause broker",)) > 0
    assert result.metric("lock_timeouts") == 0
    assert result.metric("unavailable", ("cause broker",)) > 0
    assert result.metric("lag") < 40


def test_topics_come_grow_and_go() -> None:
    text = "members: {app: {count: 2}}\ntraffic: {orders: 10/s}\nduration: 3m\n"
    grown = run_text(f"{text}events: [{{at: 20s, add_partitions: orders, to: 8}}]\n")
    assert grown.metric("lag") < 20
    gone = run_text(f"{text}events: [{{at: 20s, delete_topic: orders}}]\n")
    assert gone.metric("acknowledged") < 220
