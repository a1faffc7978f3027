"""What the engine records of waits: what made the group change, how a member went, what it waited for of its application."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.coordinator.timers import TimerKind
from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.trace import GroupChanged, Removed, TraceEvent
from kgctl.simulate.scenario.application import Callbacks
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.model import AssignTime, Scenario
from kgctl.simulate.scenario.quantities import Constant, Uniform
from kgctl.simulate.scenario.vocabulary import WaitedFor
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario

STUCK = event("stall", "app/1", 5, for_us=10 * S)


class Watcher:
    """Keeps what has changed the group and taken members out since the end of the warm-up."""

    def __init__(self) -> None:
        self.changed: list[GroupChanged] = []
        self.removed: list[Removed] = []

    def on_trace(self, event: TraceEvent) -> None:
        if event.at_us > 0 and isinstance(event, GroupChanged):
            self.changed.append(event)
        elif event.at_us > 0 and isinstance(event, Removed):
            self.removed.append(event)

    def on_step(self, at_us: int, metrics: object) -> None: ...


def watched(given: Scenario) -> Watcher:
    watcher = Watcher()
    run(given, 1, observers=(watcher,))
    return watcher


def test_each_change_of_the_group_says_what_made_it() -> None:
    slow = Callbacks(revoked=Constant(2 * S))
    given = scenario(STUCK, event("scale", "app", 8, by=1), callbacks=slow, config=COOPERATIVE, duration_s=60)
    told = [(each.state, each.trigger, each.begins, each.reason) for each in watched(given).changed]
    assert told == [
        ("PreparingRebalance", "JoinGroup app-4", True, ""),
        ("CompletingRebalance", "JoinGroup app-1", True, "group is already rebalancing"),
        ("Stable", "SyncGroup app-1", False, ""),
        ("PreparingRebalance", "JoinGroup app-2", True, "need to revoke partitions and re-join"),
        ("CompletingRebalance", "JoinGroup app-4", True, "group is already rebalancing"),
        ("Stable", "SyncGroup app-1", False, ""),
    ]


def test_the_delay_for_the_first_members_ends_by_a_timer() -> None:
    changes = watched(scenario(event("stop", "app", 5), event("start", "app", 15), duration_s=40)).changed
    assert [(each.state, each.trigger, each.reason) for each in changes][-2:] == [
        ("CompletingRebalance", "timer", ""),
        ("Stable", "SyncGroup app-0", ""),
    ]


def test_what_a_timer_changes_has_nobodys_reason() -> None:
    changes = watched(scenario(event("crash", "app/1", 10), event("stop", "app/2", 12), duration_s=80)).changed
    assert [(each.state, each.trigger, each.reason) for each in changes if each.begins] == [
        ("PreparingRebalance", "LeaveGroup app-2", ""),
        ("CompletingRebalance", "timer", ""),
    ]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ((event("stop", "app/1", 10),), ("left", True)),
        ((event("stall", "app/1", 5, for_us=120 * S), event("stop", "app/1", 10)), ("left", False)),
        ((event("crash", "app/1", 10),), ("expired", False)),
    ],
)
@pytest.mark.parametrize(("config", "session"), [(RANGE, TimerKind.SESSION), (CONSUMER, TimerKind.CONSUMER_SESSION)])
def test_who_is_taken_out_had_closed_its_consumer_or_not(
    events: Any, told: tuple[str, bool], config: dict[str, str], session: TimerKind
) -> None:
    given = scenario(*events, config={**config, "max.poll.interval.ms": "20000"}, duration_s=80)
    timer = session if told[0] == "expired" else ""
    assert [(each.why, each.has_closed, each.timer) for each in watched(given).removed] == [(*told, timer)]


def test_a_static_member_is_taken_out_for_what_it_owes_before_its_session_is_over() -> None:
    config = {**RANGE, "session.timeout.ms": "100000", "max.poll.interval.ms": "20000"}
    down, grows = event("crash", "app/1", 1, for_us=100 * S), event("scale", "app", 5, by=1)
    removed = watched(scenario(down, grows, instance_id="$name", config=config, duration_s=60)).removed
    assert [(each.pod, each.why, each.timer) for each in removed] == [("app-1", "expired", TimerKind.SYNC)]


def waits(given: Scenario) -> list[tuple[float, int, str, float]]:
    recording = run(given, 1).recording
    found = [(each.at_us - recording.start_us, each.pod, each.what, each.amount) for each in recording.history.waits]
    return [(at_us / S, pod, what, amount / S) for at_us, pod, what, amount in found if at_us >= 0]


def test_callbacks_stalls_and_assignors_are_waited_for() -> None:
    slow = Callbacks(revoked=Constant(2 * S))
    given = scenario(STUCK, event("stop", "app/2", 20), callbacks=slow, config=COOPERATIVE, duration_s=60)
    found = waits(changed(given, assign_time=AssignTime.model_validate({"base": 3_000 * S})))
    assert [(round(at), *told) for at, *told in found] == [
        (5, 1, WaitedFor.STALL, 10),
        (20, 2, WaitedFor.REVOKED, 2),
        (23, 1, WaitedFor.ASSIGNOR, 3.000046),
    ]


LONG_PAUSES = [(10, 1, WaitedFor.POLL, 2.692973), (13.884865, 3, WaitedFor.POLL, 3.354896)]
LONG_BATCHES = [(10, 1, WaitedFor.BATCH, 9.398203), (20.68639, 0, WaitedFor.BATCH, 9.711813)]


@pytest.mark.parametrize(("rate_uhz", "pause_s", "told"), [(100 * S, 4, LONG_PAUSES), (S, 1, LONG_BATCHES)])
def test_a_poll_is_waited_for_in_the_pause_or_in_the_batch(
    rate_uhz: int, pause_s: int, told: list[tuple[float, int, str, float]]
) -> None:
    pause, config = Constant(pause_s * S), {**RANGE, "max.poll.records": "10"}
    given = scenario(event("stop", "app/1", 10), poll=pause, rate=8, rate_uhz=rate_uhz, config=config, duration_s=60)
    assert waits(given)[:2] == told


def test_a_stall_makes_a_poll_that_is_awaited_later_and_what_is_short_is_not_told() -> None:
    pauses, grows = Constant(4 * S), event("scale", "app", 8, by=1)
    stuck = event("stall", "app/3", 14, for_us=10 * S)
    found = waits(scenario(grows, stuck, poll=pauses, rate=8, rate_uhz=100 * S, config=RANGE, duration_s=30))
    assert [each[1:] for each in found if each[2] == WaitedFor.STALL] == [(3, WaitedFor.STALL, 10)]
    assert waits(scenario(grows, poll=Constant(S // 20), duration_s=30)) == []


def test_what_comes_in_a_loop_that_is_watched_waits_for_its_next_call() -> None:
    """Each poll() of a loop whose pauses may be longer than the limit is an event, be it wanted or not."""
    config = {**RANGE, "max.poll.interval.ms": "10000"}
    found = waits(scenario(event("stop", "app/1", 10), poll=Uniform(S, 12 * S), count=2, config=config, duration_s=20))
    assert found == [
        (2.310089, 1, WaitedFor.POLL, 6.859614),
        (9.171703, 1, WaitedFor.POLL, 7.834131),
        (10.620368, 0, WaitedFor.POLL, 3.475562),
        (14.09593, 0, WaitedFor.POLL, 11.020124),
    ]
