"""A batch takes as long as its records: what follows for max.poll.interval.ms, rebalances, close() and commits."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.recording.trace import Disowned, Owned, PodChanged, TraceEvent
from kgctl.simulate.scenario.application import USUAL_LOOP
from kgctl.simulate.scenario.fields import Commit, CommitMode, changed
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.quantities import Constant, Uniform
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario

PROTOCOLS = pytest.mark.parametrize("config", [RANGE, COOPERATIVE, CONSUMER], ids=["range", "cooperative", "consumer"])


class Log:
    """Keeps what happened."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def on_trace(self, event: TraceEvent) -> None:
        self.events.append(event)

    def on_step(self, at_us: int, metrics: object) -> None:
        """Do nothing: the events are all."""


def behind(*events: Any, rate: int = 5, written: int = 300, config: dict[str, str] = RANGE, **more: Any) -> Scenario:
    """Four pods that are given more than they process, from the first record on."""
    config = {"auto.offset.reset": "earliest", **config}
    given = {"partitions": 12, "warmup_s": 0, "duration_s": 180, **more}
    return scenario(*events, config=config, rate=written, rate_uhz=rate * S, poll_timeout_us=100_000, **given)


def watched(given: Scenario, seed: int = 1) -> tuple[RunResult, list[TraceEvent]]:
    log = Log()
    return run(given, seed, observers=(log,)), log.events


@pytest.mark.parametrize("config", [RANGE, COOPERATIVE], ids=["range", "cooperative"])
def test_a_backlog_makes_batches_that_end_the_membership(config: dict[str, str]) -> None:
    """500 records at 5/s are 100 s, and max.poll.interval.ms 30 s: with Kafka all four left 30 s after their first full batch."""
    result, events = watched(behind(config={**config, "max.poll.interval.ms": "30000"}))
    first = [each for each in events if isinstance(each, Disowned) and each.cause == "stall"][:4]
    assert {each.pod for each in first} == {"app-0", "app-1", "app-2", "app-3"}
    assert all(36 * S < each.at_us < 45 * S for each in first)
    assert result.metric("kicked") >= 4  # type: ignore[operator]
    assert result.metric("unavailable", ("cause stall",)) > 12 * 60  # type: ignore[operator]


@PROTOCOLS
def test_who_takes_fewer_records_at_once_stays(config: dict[str, str]) -> None:
    few = {**config, "max.poll.interval.ms": "30000", "max.poll.records": "50"}
    assert run(behind(config=few), 1).metric("kicked") == 0


def test_who_keeps_up_has_no_long_batches_however_many_records_it_may_take() -> None:
    config = {**RANGE, "max.poll.interval.ms": "30000"}
    result = run(behind(config=config, rate=100, written=300), 1)
    assert (result.metric("kicked"), result.metric("rebalances")) == (0, 1)


@PROTOCOLS
def test_who_keeps_up_finds_no_more_after_a_quiet_time(config: dict[str, str]) -> None:
    """A poll() that waits for records when the group rebalances has waited for milliseconds, and finds what came in these."""
    scale = event("scale", "app", 150, by=1)
    given = scenario(scale, config=config, rate=150, rate_uhz=50 * S, partitions=12, warmup_s=60, duration_s=240)
    runs = [run(given, seed) for seed in range(1, 7)]
    beat_s = 5.0 if config == CONSUMER else 3.0
    assert max(each.metric("rebalance_time", ("max",)) for each in runs) < 2 * beat_s + 0.5  # type: ignore[type-var, operator]


def test_a_slow_application_is_out_once_what_has_piled_up_is_a_batch() -> None:
    slow = event("slow", "app", 10, factor=20_000_000)
    result = run(behind(slow, rate=100, written=300, warmup_s=60, config={**RANGE, "max.poll.interval.ms": "30000"}), 1)
    assert result.metric("kicked") >= 4  # type: ignore[operator]


def test_members_that_began_together_end_their_batches_together() -> None:
    """As measured (63 partition-seconds, a gap of 5.4 s): only what the restarted pod had waits for the others' batches."""
    rolling = event("rolling_restart", "app", settle=8 * S)
    given = behind(rolling, count=6, rate=100, written=2000, warmup_s=40, duration_s=120, boot_s=2)
    result = run(given, 1)
    assert result.metric("generations") == 6
    assert 50 <= result.metric("unavailable") <= 75  # type: ignore[operator]
    assert 4.9 <= result.metric("max_gap") <= 5.5  # type: ignore[operator]


@PROTOCOLS
def test_a_rebalance_waits_for_the_batches_of_those_who_read_on(config: dict[str, str]) -> None:
    scale = event("scale", "app", 10, by=1)
    quick, slow = (
        run(behind(scale, rate=100, written=2000, warmup_s=60, config={**config, "max.poll.records": records}), 1)
        for records in ("10", "500")
    )
    assert slow.metric("rebalance_time", ("max",)) > quick.metric("rebalance_time", ("max",)) + 0.5  # type: ignore[operator]


def test_a_pod_that_is_told_to_end_ends_its_batch_first() -> None:
    _, events = watched(behind(event("stop", "app/1", 31), rate=100, written=2000))
    told, ended = (each.at_us for each in events if isinstance(each, PodChanged) and each.what in ("stop", "stopped"))
    assert told == 31 * S
    assert 0.2 * S < ended - told < 5 * S


def test_a_batch_that_is_longer_than_the_grace_period_is_cut_short() -> None:
    _, events = watched(behind(event("stop", "app/1", 20), rate=10, written=2000))
    assert [each.at_us for each in events if isinstance(each, PodChanged) and each.what == "killed"] == [50 * S]


def test_who_commits_after_each_batch_loses_up_to_one() -> None:
    def repeated(records: int) -> float:
        config = {**RANGE, "enable.auto.commit": "false", "max.poll.records": str(records)}
        given = behind(event("crash", "app/1", 50), rate=100, written=2000, config=config, partitions=4)
        given = changed(given, members=tuple(changed(each, commit=Commit(mode=CommitMode.AFTER_BATCH)) for each in given.members))
        return sum(float(run(given, seed).metric("duplicates") or 0) for seed in range(1, 6)) / 5

    assert repeated(50) < 60
    assert 60 < repeated(500) < 600


def test_the_rest_of_a_batch_is_processed_by_who_is_out_already() -> None:
    """Each works on 500 records, and others begin anew with them."""
    result = run(behind(config={**RANGE, "max.poll.interval.ms": "30000"}, duration_s=130), 1)
    assert 1900 <= result.metric("duplicates") <= 2000  # type: ignore[operator]


def test_an_application_with_few_records_waits_in_poll() -> None:
    """With a record a minute it sits in poll(), and answers at once; with many it is on its way between two calls."""
    scale = event("scale", "app", 10, by=1)

    def lasts(written: int) -> float:
        given = scenario(scale, config=COOPERATIVE, poll=Constant(2 * S), rate=written, duration_s=60)
        return sum(float(run(given, seed).metric("rebalance_time", ("max",)) or 0) for seed in range(1, 6)) / 5

    assert lasts(1) + 1 < lasts(1000)


def test_the_usual_loop_is_poll_of_a_tenth_of_a_second_again_and_again() -> None:
    members = scenario().members[0]
    assert changed(members, poll_loop=USUAL_LOOP).poll_loop.timeout_us == 100_000
    assert type(members).model_fields["poll_loop"].default is USUAL_LOOP


@pytest.mark.parametrize("pause_us", [100_000, 4 * S])
def test_a_newcomer_of_the_consumer_protocol_looks_ten_times_a_second_at_what_it_got(pause_us: int) -> None:
    """AsyncKafkaConsumer#poll waits for records for retry.backoff.ms at a time: what a newcomer gets it has that much later,
    however long its application pauses between two calls.
    """
    waits_us = []
    for seed in range(1, 9):
        _, events = watched(scenario(count=1, config=CONSUMER, poll=Uniform(0, pause_us), warmup_s=0, duration_s=20), seed)
        start_us = next(each.at_us for each in events if isinstance(each, PodChanged) and each.what == "start")
        waits_us.append(next(each.at_us for each in events if isinstance(each, Owned)) - start_us)

    assert max(waits_us) - min(waits_us) > 40_000, waits_us
    assert all(5_000 < each < 150_000 for each in waits_us), waits_us
