"""When an application commits decides what a crash costs: a pod reads 100 records a second and polls once a second."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitValue
from kgctl.model.error_codes import ErrorCode
from kgctl.simulate.engine.ownership import Ownership
from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.trace import Committed, TraceEvent
from kgctl.simulate.scenario.fields import Commit, CommitMode, changed
from kgctl.simulate.scenario.model import ONE_PER_SECOND_UHZ, Traffic
from kgctl.simulate.scenario.quantities import Constant, Uniform
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, S, event, scenario


@pytest.mark.parametrize(
    ("commit", "most_repeated", "most_lost"),
    [
        (Commit(mode=CommitMode.AUTO), 500, 0),
        (Commit(mode=CommitMode.EVERY, interval_us=10 * S), 1000, 0),
        (Commit(mode=CommitMode.AFTER_BATCH), 100, 0),
        (Commit(mode=CommitMode.BEFORE_BATCH), 0, 100),
    ],
    ids=["auto", "every", "after", "before"],
)
def test_what_a_crash_costs(commit: Commit, most_repeated: int, most_lost: int) -> None:
    costs = []
    for seed in range(1, 9):
        crash = event("crash", "app/0", at_s=37.3, for_us=S)
        result = run(scenario(crash, count=1, partitions=1, rate=100, poll=Constant(S), commit=commit), seed)
        costs.append((result.metric("duplicates"), result.metric("lost")))
    assert all(0 <= repeated <= most_repeated + 1 and 0 <= lost <= most_lost + 1 for repeated, lost in costs)  # type: ignore[operator]
    assert max(max(cost) for cost in costs) > max(most_repeated, most_lost) / 10  # type: ignore[type-var, operator]


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_last_commit_that_is_refused_leaves_those_of_the_quiet_time(reset: str) -> None:
    """It ends while others are on their way into the generation that it waits for itself: cooperative members give up twice."""
    events = (event("scale", "app", at_s=31, by=1), event("stop", "app/0", at_s=34))
    config = COOPERATIVE | {"auto.offset.reset": reset}
    found = scenario(*events, count=2, partitions=6, rate=60, config=config, duration_s=60, client="librdkafka")
    errors = list[str]()
    result = run(found, 3, observers=[_Refusals(errors)])
    assert errors == [ErrorCode.REBALANCE_IN_PROGRESS.name]
    assert 0 < result.metric("duplicates") <= 60 * 5 + 1  # type: ignore[operator]
    assert result.metric("lost") == 0


class _Refusals:
    def __init__(self, found: list[str]) -> None:
        self._found = found

    def on_trace(self, event: TraceEvent) -> None:
        if isinstance(event, Committed) and event.error != ErrorCode.NONE.name:
            self._found.append(event.error)

    def on_step(self, at_us: int, metrics: object) -> None:
        """Nothing is looked at."""


@pytest.mark.parametrize("mode", [CommitMode.AUTO, CommitMode.EVERY, CommitMode.AFTER_BATCH])
def test_the_log_of_commits_is_whole_on_demand(mode: CommitMode) -> None:
    crash = event("crash", "app/0", at_s=60.3, for_us=S)
    calm = scenario(crash, count=2, partitions=2, rate=100, poll=Constant(S), commit=Commit(mode=mode), duration_s=120)
    short, whole = (run(calm, 1, keeps_records=True), run(calm, 1, keeps_all_commits=True))
    assert short.digest == whole.digest

    log: dict[object, list[tuple[int, int]]] = {}
    for at_us, effect in whole.records():
        if isinstance(effect.record, CoordinatorRecord) and isinstance(effect.record.value, OffsetCommitValue):
            log.setdefault(effect.record.key, []).append((at_us, effect.record.value.offset))
    assert len(log) == 2
    for commits in log.values():
        assert commits == sorted(commits)
        assert [offset for _, offset in commits] == sorted(offset for _, offset in commits)
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(commits)]
        assert sorted(gaps)[len(gaps) // 2] == pytest.approx(S if mode is CommitMode.AFTER_BATCH else 5 * S, rel=0.25)
    stored = {key.partition: commits[-1][1] for key, commits in log.items()}  # type: ignore[attr-defined]
    assert stored == dict(enumerate(whole.recording.ledger.stored))


@pytest.mark.parametrize(("config", "mean_s"), [(RANGE, 5.61), (CONSUMER, 6.19)], ids=["classic", "consumer"])
def test_automatic_commits_wait_for_a_poll(config: dict[str, str], mean_s: float) -> None:
    """As measured: two members of Apache Kafka 4.3.1's client that poll every 0 to 2 s, and commit every 5 s, for 100 s."""
    distances = []
    for seed in range(1, 9):
        calm = scenario(config=config, count=2, partitions=2, rate=100, poll=Uniform(0, 2 * S), duration_s=100)
        at_us: dict[object, list[int]] = {}
        for when_us, effect in run(calm, seed, keeps_all_commits=True).records():
            if isinstance(effect.record, CoordinatorRecord) and isinstance(effect.record.value, OffsetCommitValue):
                at_us.setdefault(effect.record.key, []).append(when_us)
        distances += [later - earlier for times in at_us.values() for earlier, later in pairwise(times[3:])]
    assert sum(distances) / len(distances) == pytest.approx(mean_s * S, rel=0.06)


def test_automatic_commits_of_one_that_polls_like_a_clock_come_with_the_poll_that_is_due() -> None:
    result = run(
        scenario(config=RANGE, count=1, partitions=1, rate=100, poll=Constant(2 * S), duration_s=100), 1, keeps_all_commits=True
    )
    at_us = [
        when_us
        for when_us, effect in result.records()
        if isinstance(effect.record, CoordinatorRecord) and isinstance(effect.record.value, OffsetCommitValue)
    ]
    assert {later - earlier for earlier, later in pairwise(at_us[3:])} == {6 * S}


def test_an_old_commit_on_its_way_does_not_meet_a_newer_one_that_was_never_sent() -> None:
    """Commits that a partition of the network holds up count for when they were made, also when the pod dies right after it."""
    for seed in range(1, 9):
        events = (event("network", "app/0", 20, partition=True, for_us=25 * S), event("crash", "app/0", 47, for_us=S))
        config = {**RANGE, "session.timeout.ms": "60000"}
        result = run(scenario(*events, count=2, partitions=2, rate=100, poll=Constant(S), config=config), seed)
        assert result.stopped == ""


def test_what_an_application_has_read_since_its_last_commit_is_read_again_after_a_handover() -> None:
    """As measured: who commits every 2 s commits nothing as partitions are revoked: here eight, 20/s each.

    A cooperative member reads on while its JoinGroup is parked, and its commits wait behind that.
    """
    commit = Commit(mode=CommitMode.EVERY, interval_us=2 * S)
    scale = event("scale", "app", to=6)
    for config in (CONSUMER, COOPERATIVE):
        given = scenario(scale, config=config, partitions=24, rate=480, poll=Uniform(0, 100_000), commit=commit, duration_s=30)
        repeated = [run(given, seed).metric("duplicates") for seed in range(1, 6)]
        assert all(20 < each < 8 * 20 * 5 for each in repeated), repeated  # type: ignore[operator]


def test_an_eager_member_commits_gives_up_and_joins_in_one_poll_that_waits() -> None:
    """As measured: what it has fetched is dropped as it joins, so that a poll() with a time-out does not return with it."""

    class Watcher:
        """Notes when pods give up partitions for a rebalance, and when they join."""

        def __init__(self) -> None:
            self.at_us: dict[tuple[str, str], int] = {}

        def on_trace(self, each: TraceEvent) -> None:
            line = json.loads(each.line())
            if line["kind"] == "disown" and line["cause"] == "rebalance":
                self.at_us["disown", line["pod"]] = line["at_us"]
            elif line["kind"] == "request" and line["api"] == "JoinGroup":
                self.at_us["join", line["pod"]] = line["at_us"]

        def on_step(self, at_us: int, metrics: object) -> None:
            """Nothing is asked of metrics."""

    watcher = Watcher()
    given = scenario(event("stop", "app/0"), rate=100, poll=Constant(5 * S), poll_timeout_us=100_000, duration_s=40)
    run(given, 1, observers=[watcher])
    waits = [watcher.at_us["join", f"app-{number}"] - watcher.at_us["disown", f"app-{number}"] for number in (1, 2, 3)]
    assert all(0 < wait_us < 100_000 for wait_us in waits), waits


def test_a_clean_restart_costs_nothing() -> None:
    for mode in (CommitMode.AUTO, CommitMode.AFTER_BATCH, CommitMode.BEFORE_BATCH):
        result = run(scenario(event("restart", "app"), config=RANGE, rate=100, commit=Commit(mode=mode)), 1)
        assert (mode, result.metric("lost")) == (mode, 0)
        assert result.metric("duplicates") <= (0 if mode is CommitMode.AUTO else 60)  # type: ignore[operator]


def test_an_application_commits_by_itself_where_its_client_is_told_not_to() -> None:
    config = {**RANGE, "enable.auto.commit": "false"}
    result = run(scenario(event("crash", "app/0", at_s=100, for_us=S), config=config, rate=100, poll=Constant(S)), 1)
    assert 0 <= result.metric("duplicates") <= 26  # type: ignore[operator]
    assert result.metric("lag") < 200  # type: ignore[operator]


@pytest.mark.parametrize("commit", [Commit(), Commit(mode=CommitMode.EVERY, interval_us=5 * S)])
def test_a_change_of_the_traffic_in_a_quiet_time_leaves_no_lag_of_its_own(commit: Commit) -> None:
    """At 1,000 records a second and a commit every 5 s, some 5,000 lie between two commits; smeared over the change: 250,000."""
    plain = scenario(config=COOPERATIVE, rate=1_000, duration_s=2_000, commit=commit)
    steps = ((0, 1_000 * ONE_PER_SECOND_UHZ), (1_000 * S, 10 * ONE_PER_SECOND_UHZ))
    result = run(changed(plain, traffic=(Traffic(topic="t", rate=steps),)), 1)
    assert 1_000 <= result.metric("lag_peak") <= 10_000  # type: ignore[operator]
    assert result.metric("lag") <= 60  # type: ignore[operator]


def test_what_a_member_reads_while_it_joins_cannot_be_committed_and_is_read_again() -> None:
    """A cooperative member reads on between JoinGroup and SyncGroup, where commits are refused (generationIfStable)."""
    restart = event("rolling_restart", "app", settle=10 * S)
    poll, commit = Uniform(0, 100_000), Commit(mode=CommitMode.AFTER_BATCH)
    given = scenario(restart, config=COOPERATIVE, count=6, partitions=24, rate=1200, poll=poll, commit=commit)
    eager = changed(given, members=(changed(given.members[0], config=RANGE),))

    repeated = [run(given, seed).metric("duplicates") for seed in range(1, 4)]
    assert max(repeated) > 20  # type: ignore[type-var, operator]
    assert [run(eager, seed).metric("duplicates") for seed in range(1, 4)] == [0, 0, 0]


@pytest.mark.parametrize(("retention_ms", "is_kept"), [(60_000, False), (7_200_000, True), (-1, True)])
def test_commits_of_kafka_go_are_kept_for_as_long_as_it_asks(retention_ms: int, *, is_kept: bool) -> None:
    """The brokers look for expired offsets every ten minutes; what is gone is read from the start again."""
    away = event("stop", "app", at_s=10, for_us=1800 * S)
    config = {"RetentionTime": str(retention_ms)}
    result = run(scenario(away, client="kafka-go", config=config, rate=40, rate_uhz=None, duration_s=2000), 1)
    duplicates = result.metric("duplicates")
    assert duplicates == 0 if is_kept else duplicates > 1_000  # type: ignore[operator]


@pytest.mark.parametrize(
    ("client", "commit", "most"),
    [
        ("aiokafka", Commit(mode=CommitMode.AFTER_BATCH), 310),
        ("kafka-go", Commit(mode=CommitMode.AFTER_BATCH), 310),
        ("franz-go", Commit(mode=CommitMode.AFTER_BATCH), 310),
        ("kafka-go", Commit(mode=CommitMode.EVERY, interval_us=5 * S), 310),
        ("aiokafka", Commit(mode=CommitMode.EVERY, interval_us=5 * S), 1_820),
        ("java", Commit(mode=CommitMode.AFTER_BATCH), 0),
    ],
)
def test_a_client_that_gives_up_by_itself_has_the_batches_under_way_read_twice(client: str, commit: Commit, most: int) -> None:
    """300 records a second in batches of a second; a third member comes. What was committed before holds, in kafka-go what its
    application has told it, too. Measured (go-rolling, aio-rolling): 1,500 to 2,100 in some 20 handovers of batches of 100.
    """
    scale = event("scale", "app", at_s=60.5, to=3)
    busy = scenario(
        scale, config=RANGE, count=2, partitions=6, rate=300, poll=Constant(S), commit=commit, duration_s=80, client=client
    )
    found = [run(busy, seed).metric("duplicates") for seed in range(1, 7)]
    assert all(0 <= each <= most for each in found), found  # type: ignore[operator]
    assert max(found) > most / 5 or most == 0  # type: ignore[type-var, operator]


def test_fetches_under_way_at_the_end_of_a_generation_of_kafka_go_bring_what_is_read_twice() -> None:
    """Each of 24 partitions brings a record with half a chance; where nothing is written nothing comes. Measured: 24 to 74 in
    four to eight generations of 12 partitions (go-rolling:plain).
    """
    scale = event("scale", "app", at_s=60.5, to=3)
    commit = Commit(mode=CommitMode.EVERY, interval_us=2 * S)
    plain = scenario(scale, config=RANGE, count=2, partitions=24, rate=48, commit=commit, duration_s=80, client="kafka-go")
    found = [run(plain, seed).metric("duplicates") for seed in range(1, 6)]

    assert all(5 <= each <= 24 for each in found), found  # type: ignore[operator]
    assert not run(changed(plain, traffic=()), 1).metric("duplicates")


def test_fetches_under_way_bring_nothing_more_of_partitions_that_are_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a fetch that waits for the next record comes back after the end; what is there already was fetched before."""
    scale = event("scale", "app", at_s=60.5, to=3)
    behind = scenario(
        scale, config=RANGE, count=2, partitions=24, rate=480, rate_uhz=50 * ONE_PER_SECOND_UHZ, duration_s=80, client="kafka-go"
    )
    found = [run(behind, seed).metric("duplicates") for seed in range(1, 4)]
    monkeypatch.setattr(Ownership, "_pass_on", lambda *_: None)
    assert [run(behind, seed).metric("duplicates") for seed in range(1, 4)] == found
