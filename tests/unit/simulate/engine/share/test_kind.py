"""A share group beside others, and through failovers of its coordinator."""

from __future__ import annotations

import pytest

from tests.support.simulate.shared import run_text, scenario_of

GROUPS = """groups: {one: {type: share}, two: {}}
members:
  a: {group: one, count: 2, process_time: 10ms, on_poison: reject, config: {share.acknowledgement.mode: explicit}}
  b: {group: two, count: 2, process_time: 10ms}
traffic: {orders: 20/s}
duration: 1m
events: [{at: 10s, poison: orders}]
allow: [archived, no_effect]
"""


def test_a_share_group_and_a_group_of_consumers_read_the_same_topic() -> None:
    from kgctl.simulate.metrics.result import run
    from kgctl.simulate.scenario.load import load
    from kgctl.yaml_files import read_yaml
    from tests.support.simulate.shared import HEAD

    one, two = (run(each.scenario, 1) for each in load(read_yaml(HEAD + GROUPS, "f.yaml")).variants)
    assert one.metric("acknowledged") == pytest.approx(20 * 60, abs=10)
    assert "acknowledged" not in two.summary()
    assert "moves" not in one.summary()
    assert "moves" in two.summary()
    assert (one.recording.share is None, two.recording.share is None) == (False, True)


def test_the_groups_own_settings_are_those_of_its_coordinator_after_a_failover_too() -> None:
    group = "group: {type: share, config: {share.delivery.count.limit: 2, share.record.lock.duration.ms: 15s}}\n"
    text = "members: {app: {count: 2, process_time: 10ms, on_poison: release, config: {share.acknowledgement.mode: explicit}}}\n"
    events = "events: [{at: 5s, coordinator_move: coordinator}, {at: 30s, poison: orders}]\n"
    result = run_text(f"{group}{text}{events}traffic: {{orders: 10/s}}\nduration: 1m\nallow: [archived]\n")
    assert (result.metric("most_deliveries"), result.metric("archived")) == (2, 1)
    assert scenario_of(f"{group}{text}").members[0].config == {"share.acknowledgement.mode": "explicit"}


def test_a_run_is_the_same_each_time() -> None:
    text = "members: {app: {count: 3, process_time: 10ms}}\ntraffic: {orders: 30/s}\nduration: 30s\n"
    chaos = "events: [{at: 5s, crash: app/1, for: 5s}]\n"
    first, second = run_text(text + chaos), run_text(text + chaos)
    assert (first.digest, first.summary()) == (second.digest, second.summary())
    assert first.digest != run_text(text + chaos, seed=2).digest
