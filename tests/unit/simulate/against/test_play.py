"""What a play makes of what a cluster and clients tell, without either."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from kgctl.simulate.against.fleet import HELPER, SPARE, ClientKind, ClientLine, PlayedProcess
from kgctl.simulate.against.play import Play, processes_of
from kgctl.simulate.engine.process import ProcessPhase
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.quantities import UNIT_PR
from tests.support.simulated import S, event, scenario


def play() -> Play:
    return Play(scenario(count=2), 1, cast("Any", SimpleNamespace()), cast("Any", None), ())


def test_a_process_that_died_is_in_the_group_as_long_as_the_coordinator_has_it() -> None:
    made = play()
    pod = made.pods[1]
    process: Any = SimpleNamespace(pod=pod, lost=(), member_id="m-1")
    made.is_gone(process, has_left=False)

    made._compare({"m-0", "m-1"})
    assert made.history.pods[pod.number].in_group.since_us == 0
    made._compare({"m-0"})
    assert made.history.pods[pod.number].in_group.since_us is None
    assert [entry.pod for entry in made.history.detections] == [pod.number]


def running(made: Play, number: int, member_id: str) -> PlayedProcess:
    """A process of the play that the group has under this id, without a client."""
    made.fleet = cast("Any", SimpleNamespace(take=lambda _, **__: None))
    process = PlayedProcess(made.pods[number], made)
    process.phase = ProcessPhase.RUNNING
    made.pods[number].process = process
    process.in_generation(ClientLine(0, "", "generation", ("1", member_id)))
    made._find_kicked({member_id})
    return process


def test_a_member_that_vanishes_from_the_group_while_its_process_lives_was_kicked() -> None:
    made = play()
    process = running(made, 0, "m-0")
    process.read(ClientLine(0, "app-0", "read"))
    made.loop.now_us = 301 * S
    made._find_kicked(set())
    process.lost_some(ClientLine(0, "app-0", "lost", ()))  # what it hears later is the same
    made._find_kicked(set())
    assert [(each.at_us, each.pod) for each in made.history.kicked] == [(301 * S, made.pods[0].number)]

    process.in_generation(ClientLine(0, "", "generation", ("2", "m-9")))
    made._find_kicked({"m-9"})
    made._find_kicked(set())
    assert len(made.history.kicked) == 2


def test_a_member_that_hears_first_that_it_was_out_is_counted_once() -> None:
    made = play()
    process = running(made, 0, "m-0")
    process.lost_some(ClientLine(0, "app-0", "lost", ()))
    made._find_kicked(set())
    assert len(made.history.kicked) == 1


def test_a_member_that_was_to_end_was_not_kicked() -> None:
    made = play()
    process = running(made, 0, "m-0")
    process.stop_wanted = True
    made._find_kicked(set())
    process.lost_some(ClientLine(0, "app-0", "lost", ()))
    assert made.history.kicked == []


def test_a_stall_of_a_play_counts_no_kick_by_itself() -> None:
    made = play()
    process = running(made, 0, "m-0")
    process._is_past_limit(None)
    assert made.history.kicked == []


def test_each_pod_that_may_be_killed_has_a_process_before_the_play_begins() -> None:
    shared, own = (cast("ClientKind", SimpleNamespace(is_shared=each, profile="java")) for each in (True, False))
    calm, rough = scenario(count=4), scenario(event("crash", "app/1", 10), count=4)
    assert [processes_of(given, shared) for given in (calm, rough)] == [(0, SPARE), (4, SPARE)]
    assert processes_of(calm, own) == (4, SPARE)


def test_pods_that_come_at_the_same_time_have_a_process_each_that_is_ready() -> None:
    own = cast("ClientKind", SimpleNamespace(is_shared=False, profile="java"))
    surge = scenario(event("rollout", "app", 10, strategy="blue-green", pause=60 * S), count=4)
    assert processes_of(surge, own) == (4, 4)


def test_what_is_written_read_and_committed_makes_lag_backlog_and_waits() -> None:
    made = play()
    made.loop.now_us = 1_000_000
    made._hear(ClientLine(0, HELPER, "written", (f"{made.prefix}t-0:30", f"{made.prefix}t-1:5")))
    made.loop.now_us = 2_000_000
    made.has_read(0, ClientLine(0, "app-0", "read", (f"{made.prefix}t-0:0-19:40-900",)))
    made.is_committed(0, 10)
    made.loop.now_us = 3_000_000
    made.has_read(1, ClientLine(0, "app-1", "read", (f"{made.prefix}t-0:10-39:0-5",)))
    made.loop.now_us = 4_000_000

    ledger = made.recording.ledger
    assert [ledger.backlog["t"].value(at_us) // UNIT_PR for at_us in (1_500_000, 2_500_000, 3_500_000)] == [35, 15, 5]
    assert [ledger.lag["t"].value(at_us) // UNIT_PR for at_us in (1_500_000, 2_500_000, 3_500_000)] == [35, 25, 35]
    assert [(wait.amount_pr // UNIT_PR, wait.shortest_us, wait.longest_us) for wait in ledger.waits] == [
        (20, 40_000, 900_000),
        (20, 0, 5_000),
    ]
    assert [(each.amount, each.pod) for each in made.history.duplicates] == [(10, 1)]
    assert RunResult(made.recording).metric("processed") == 40


def test_what_the_next_reader_passes_over_is_lost_and_what_the_first_one_does_is_not() -> None:
    made = play()
    for pod, offsets in ((0, "30-39"), (1, "60-69"), (0, "40-49")):  # the last one reads on behind the other one's back
        made.has_read(pod, ClientLine(0, f"app-{pod}", "read", (f"{made.prefix}t-0:{offsets}:0-5",)))
    assert [(each.amount, each.pod) for each in made.history.lost] == [(20, 1)]
    assert metric_kinds()["lost"].is_playable
