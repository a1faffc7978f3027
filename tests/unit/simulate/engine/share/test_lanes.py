"""A partition of a share group is without a consumer when none of its members goes on."""

from __future__ import annotations

from tests.support.simulate.shared import run_text

TEXT = "traffic: {orders: 4/s}\nduration: 2m\nallow: [unread, timed_out]\n"


def test_another_member_takes_the_place_of_one_that_is_gone() -> None:
    result = run_text(f"members: {{app: {{count: 8}}}}\n{TEXT}events: [{{at: 20s, crash: app/0, for: 60s}}]\n")
    assert result.metric("unavailable") == 0
    assert result.metric("kicked") == 0


def test_a_partition_that_one_member_alone_had_is_read_when_its_session_is_over() -> None:
    result = run_text(f"members: {{app: {{count: 4}}}}\n{TEXT}events: [{{at: 20s, crash: app/0}}]\n")
    assert result.metric("unavailable", ("cause detection",)) > 35
    assert 40 < result.metric("max_gap") < 60


def test_members_that_stand_or_are_cut_off_read_nothing() -> None:
    for fault in ("pause_process: app, for: 10s", "network: app, partition: true, for: 10s"):
        result = run_text(f"members: {{app: {{count: 2}}}}\n{TEXT}events: [{{at: 20s, {fault}}}]\n")
        assert 9.9 < result.metric("max_gap") < 10.5
