"""What becomes of records as the pods of a share group process them, stop, die, stand still and fail."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kgctl.simulate.metrics.troubles import troubles_of
from tests.support.simulate.shared import APP, SharedRun, run_text

EXPLICIT = "share.acknowledgement.mode: explicit"


def figures(result: SharedRun, *names: str) -> dict[str, float]:
    return {name: result.metric(name) for name in names}


def test_what_is_read_in_a_quiet_run_is_acknowledged_once() -> None:
    result = run_text(f"{APP}traffic: {{orders: 60/s}}\nduration: 1m\n")
    asked = ("redelivered", "archived", "lock_timeouts", "refused_acknowledgements", "duplicates", "errors", "most_deliveries")
    assert figures(result, *asked) == {**dict.fromkeys(asked, 0), "most_deliveries": 1}
    assert result.metric("acknowledged") == pytest.approx(60 * 60, abs=4)
    assert result.metric("lag") < 10


def test_a_batch_takes_as_long_as_its_records_do() -> None:
    result = run_text("members: {app: {count: 1, process_time: 500ms}}\ntraffic: {orders: 1/s}\nduration: 5m\n")
    assert result.metric("in_flight_time", ("min",)) == pytest.approx(0.5, abs=0.01)
    assert result.metric("acknowledged") == pytest.approx(300, abs=3)
    busy = run_text("members: {app: {count: 1, process_time: 500ms}}\ntraffic: {orders: 4/s}\nduration: 5m\nallow: [timed_out]\n")
    assert busy.metric("without_work") < 0.001
    assert result.metric("without_work") == pytest.approx(0.5, abs=0.1)


def test_a_crash_gives_back_at_once_what_the_pod_had() -> None:
    text = "events: [{at: 20s, crash: app/1, for: 5s}]\nduration: 1m\ntraffic: {orders: 40/s}\n"
    result = run_text(f"members: {{app: {{count: 4, process_time: 75ms}}}}\n{text}")
    share = result.share
    assert {(each.at_us - result.recording.start_us, each.why.label) for each in share.returned} == {(20_000_000, "crashed")}
    assert (
        result.metric("redelivered")
        == result.metric("redelivered", ("cause crashed",))
        == sum(each.amount for each in share.returned)
        > 0
    )
    assert result.metric("lock_timeouts") == 0


def test_a_lost_machine_tells_nobody_and_the_locks_time_out() -> None:
    text = "events: [{at: 20s, node_down: app/1, for: 5s}]\nduration: 1m\ntraffic: {orders: 40/s}\n"
    result = run_text(f"members: {{app: {{count: 4, process_time: 75ms}}}}\n{text}")
    share = result.share
    assert {each.why.label for each in share.returned} == {"timed_out"}
    assert all(45_000_000 < each.at_us - result.recording.start_us < 50_100_000 for each in share.returned)
    assert [(each.kind, each.number) for each in troubles_of(result)] == [("timed_out", len(share.returned))]


def test_a_pod_that_is_told_to_stop_gives_back_the_batch_that_it_has_not_acknowledged() -> None:
    text = "traffic: {orders: 50/s}\nduration: 40s\nevents: [{at: 20s, stop: app/1, for: 5s}]\n"
    implicit = run_text(f"members: {{app: {{count: 4, process_time: 60ms}}}}\n{text}")
    assert implicit.metric("redelivered") == implicit.metric("redelivered", ("cause closed",)) > 0
    assert implicit.metric("duplicates") == implicit.metric("redelivered")
    for more in (f"config: {{{EXPLICIT}}}", "commit: after-batch"):
        told = run_text(f"members: {{app: {{count: 4, process_time: 60ms, {more}}}}}\n{text}")
        assert figures(told, "redelivered", "duplicates", "errors") == {"redelivered": 0, "duplicates": 0, "errors": 0}
        assert told.metric("acknowledged") == pytest.approx(implicit.metric("acknowledged"), abs=20)


def test_a_stalled_pod_loses_its_records_and_acknowledges_in_vain() -> None:
    text = "traffic: {orders: 50/s}\nduration: 2m\nevents: [{at: 20s, stall: app/0, for: 40s}]\nallow: [timed_out]\n"
    result = run_text(f"members: {{app: {{count: 3, process_time: 40ms}}}}\n{text}")
    assert result.metric("lock_timeouts") == result.metric("lock_timeouts", ("app/0",)) > 0
    assert result.metric("refused_acknowledgements", ("app/0",)) > 0
    assert result.metric("kicked") == 0


@pytest.mark.parametrize("fault", ["pause_process: app/0, for: 40s", "network: app/0, partition: true, for: 40s"])
def test_a_pod_that_stands_or_is_cut_off_loses_its_records(fault: str) -> None:
    text = f"traffic: {{orders: 30/s}}\nduration: 2m\nevents: [{{at: 20s, {fault}}}]\n"
    result = run_text(f"members: {{app: {{count: 3, process_time: 30ms}}}}\n{text}")
    assert result.metric("lock_timeouts", ("app/0",)) > 0
    assert result.metric("lag") < 30


def test_a_pod_past_its_poll_interval_is_out_until_it_polls() -> None:
    config = "config: {max.poll.interval.ms: 20s, max.poll.records: 50}"
    text = f"members: {{app: {{count: 2, process_time: 20ms, {config}}}}}\ntraffic: {{orders: 20/s}}\nduration: 3m\n"
    result = run_text(f"{text}events: [{{at: 20s, stall: app/0, for: 40s}}]\nallow: [kicked, timed_out]\n")
    assert result.metric("kicked") == 1
    assert result.metric("members") == 2


def test_slow_pods_take_longer_for_what_is_left_of_their_batch() -> None:
    text = "members: {app: {count: 1, process_time: 10ms}}\ntraffic: {orders: 20/s}\nduration: 2m\n"
    result = run_text(f"{text}events: [{{at: 30s, slow: app, factor: 4, for: 1m}}]\n")
    assert result.metric("in_flight_time", ("p90", "after 40s", "before 80s")) > 3 * result.metric(
        "in_flight_time", ("p90", "before 30s")
    )
    assert result.metric("lag") < 10


def test_a_bad_record_is_released_until_the_limit_or_rejected_at_once() -> None:
    members = "members: {{app: {{count: 2, process_time: 5ms, on_poison: {}, config: {{{}}}}}}}\n"
    text = "traffic: {orders: 50/s}\nduration: 1m\nevents: [{at: 20s, poison: orders, records: 3}]\nallow: [archived]\n"
    released = run_text(members.format("release", EXPLICIT) + text)
    assert figures(released, "archived", "redelivered", "redeliveries", "most_deliveries") == {
        "archived": 3, "redelivered": 3, "redeliveries": 12, "most_deliveries": 5
    }  # fmt: skip
    rejected = run_text(members.format("reject", EXPLICIT) + text)
    assert figures(rejected, "archived", "redelivered", "most_deliveries") == {
        "archived": 3, "redelivered": 0, "most_deliveries": 1
    }  # fmt: skip


def test_a_bad_record_ends_one_process_after_the_other_where_nobody_catches_it() -> None:
    text = "traffic: {orders: 20/s}\nduration: 3m\nevents: [{at: 20s, poison: orders}]\nallow: [archived, unread, missing]\n"
    result = run_text(f"members: {{app: {{count: 3, process_time: 5ms}}}}\n{text}")
    assert result.metric("errors", ("POISON_RECORD",)) == 5
    assert figures(result, "archived", "most_deliveries") == {"archived": 1, "most_deliveries": 5}
    assert result.metric("archived", ("cause crashed",)) == 1


def test_a_rolling_restart_loses_nothing() -> None:
    text = "traffic: {orders: 30/s}\nduration: 3m\nevents: [{at: 20s, rolling_restart: app, settle: 5s}]\n"
    result = run_text(f"members: {{app: {{count: 4, process_time: 20ms}}}}\n{text}")
    assert result.metric("lag") < 30
    assert result.metric("archived") == result.metric("lock_timeouts") == 0
    assert troubles_of(result) == ()


def test_a_loop_with_pauses_polls_no_more_often() -> None:
    text = "traffic: {orders: 1/s}\nduration: 1m\n"
    result = run_text(f"members: {{app: {{count: 1, poll: {{timeout: 100ms, pause: 900ms}}}}}}\n{text}")
    share = result.share
    times = [at_us for at_us, *_ in share.acknowledged]
    assert all(right - left > 850_000 for left, right in pairwise(dict.fromkeys(times)))
