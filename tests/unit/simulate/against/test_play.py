"""What a play makes of what a cluster and clients tell, without either."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from kgctl.simulate.against.fleet import SPARE, ClientKind
from kgctl.simulate.against.play import Play, processes_of
from tests.support.simulated import event, scenario


def play() -> Play:
    return Play(scenario(count=2), 1, cast("Any", SimpleNamespace(profile="librdkafka")), cast("Any", None), ())


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


def test_each_pod_that_may_be_killed_has_a_process_before_the_play_begins() -> None:
    shared, own = (cast("ClientKind", SimpleNamespace(is_shared=each)) for each in (True, False))
    calm, rough = scenario(count=4), scenario(event("crash", "app/1", 10), count=4)
    assert [processes_of(given, shared) for given in (calm, rough)] == [SPARE, 4 + SPARE]
    assert processes_of(calm, own) == 4 + SPARE
