"""What instances of a Kafka Streams application restore, keep on their disks and lose, in runs that are short."""

from __future__ import annotations

import pytest

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml

FILE = """
kgctl: 1
name: app
topics: {orders: 4}
members:
  app: {count: 2, boot: 1s, streams: {store: 400000, restore: 20000/s}, config: {session.timeout.ms: 10s}}
warmup: 60s
duration: 200s
"""


def played(more: str, *settings: str) -> RunResult:
    (variant,) = load(read_yaml(FILE + more, "s.yaml"), settings=settings).variants
    return run(variant.scenario, 1)


def said(result: RunResult, *names: str) -> list[float | str | None]:
    return [result.metric(name) for name in names]


def test_a_restart_restores_what_its_disk_does_not_have() -> None:
    restart = "events: [{at: 5s, restart: app/0}]"
    kept = played(restart)
    lost = played(restart, "members.app.streams.disk=lost")

    assert said(kept, "restored", "restored_bytes") == [0, 0]
    assert kept.metric("restore_time") == pytest.approx(2 * 0.1, abs=0.02)  # poll.ms passes before each task sees that it has all
    # Two tasks of 100,000 records each, at 20,000 a second.
    assert said(lost, "restored", "restored_bytes") == [200_000, 200_000_000]
    assert lost.metric("restore_time") == pytest.approx(20, abs=0.1)
    assert lost.metric("max_gap") == pytest.approx(float(kept.metric("max_gap") or 0) + 10, abs=1)


def test_tasks_that_are_restored_together_share_the_rate() -> None:
    """A pod that comes back alone, without a disk, restores all four: each is there after as long as all need."""
    result = played("events: [{at: 5s, crash: app, for: 5s}]", "members.app.streams.disk=lost", "members.app.count=1")
    assert result.metric("restored") == 400_000
    assert result.metric("restore_time") == pytest.approx(4 * 20, abs=0.1)
    assert [round(length) for length in result.longest_gaps().values()] == [round(result.metric("max_gap"))] * 4  # type: ignore[arg-type]


def test_the_warm_up_is_over_with_every_state_in_place() -> None:
    result = played("")
    assert said(result, "restored", "task_downtime", "copied") == [0, 0, 0]


def test_without_a_warm_up_the_states_are_restored() -> None:
    result = played("", "warmup=0s")
    assert result.metric("restored") == 400_000
    assert result.metric("restore_time") == pytest.approx(40, abs=0.1)  # two instances, each its own two tasks


def test_bytes_are_records_of_the_size_that_is_said() -> None:
    more = "events: [{at: 5s, restart: app/0}]"
    settings = ("members.app.streams.store=40MB", "members.app.streams.record=100B", "members.app.streams.restore=2MB/s")
    result = played(more, *settings, "members.app.streams.disk=lost")
    assert said(result, "restored", "restored_bytes") == [200_000, 20_000_000]
    assert result.metric("restore_time") == pytest.approx(20, abs=0.1)


CRASH = "traffic: {orders: 4000/s}\nevents: [{at: 35s, crash: app/0, for: 2s}]"


def test_after_a_crash_what_no_checkpoint_has_is_restored() -> None:
    """Commits come every 30 s, and each with more than 10,000 new records writes a checkpoint: 1,000/s a task since the last."""
    result = played(CRASH)
    restored = float(result.metric("restored") or 0)
    assert 0 < restored < 2 * 1_000 * 45  # the commit interval, and what others had of the tasks meanwhile


def test_after_a_crash_with_exactly_once_everything_is_restored() -> None:
    restored = [
        float(played(CRASH, *settings).metric("restored") or 0)
        for settings in ((), ("members.app.config.processing.guarantee=exactly_once_v2",))
    ]
    assert restored[1] - restored[0] > 150_000


def test_a_state_that_is_nobodys_for_too_long_is_deleted() -> None:
    away = "events: [{at: 5s, stop: app/0, for: 90s}]\n"
    settings = ("members.app.config.max.warmup.replicas=9", "duration=400s")
    kept = played(away, *settings)
    deleted = played(away, *settings, "members.app.config.state.cleanup.delay.ms=10s")
    assert float(deleted.metric("copied") or 0) > float(kept.metric("copied") or 0)


def test_standbys_take_over_without_restoring() -> None:
    crash = "events: [{at: 5s, crash: app/0, for: 60s}]"
    disk = "members.app.streams.disk=lost"
    alone, standby = played(crash, disk), played(crash, disk, "members.app.config.num.standby.replicas=1")

    assert alone.metric("restored") == 200_000
    assert said(standby, "restored", "standby_coverage") == [0, 1]
    assert standby.metric("standby_coverage", ("at 4s",)) == 1
    assert standby.metric("standby_coverage", ("at 30s",)) == 0  # one instance is there
    assert float(standby.metric("copied") or 0) >= 200_000
    assert float(alone.metric("max_gap") or 0) - float(standby.metric("max_gap") or 0) == pytest.approx(10, abs=0.5)


def test_tasks_and_copies_share_the_rate() -> None:
    """An instance that is back without its disk, at 66 s, has tasks and copies to restore: together no quicker than it reads."""
    crash = "events: [{at: 5s, crash: app/0, for: 60s}]"
    settings = ("members.app.config.group.protocol=streams", 'cluster.config={"group.streams.num.standby.replicas": 1}')
    recording = played(crash, "members.app.streams.disk=lost", *settings).recording
    assert recording.tasks is not None
    back_us = recording.start_us + 66_000_000
    read = [each for each in (*recording.tasks.restored, *recording.tasks.copied) if each.pod == 0 and each.at_us > back_us]
    assert sum(each.amount for each in read) == 400_000
    assert max(each.at_us for each in read) - back_us >= 400_000 / 20_000 * 1_000_000


def test_small_states_are_there_before_large_ones_which_are_alike() -> None:
    """All that are restored get the same of the rate: four of 10,000 records after 4 s, four of 90,000 after 20 s."""
    stores = '{"a": {"topics": ["orders"], "store": 40000}, "b": {"topics": ["pays"], "store": 360000}}'
    parts = f'{{"disk": "lost", "restore": "20000/s", "subtopologies": {stores}}}'
    crash = "events: [{at: 5s, crash: app, for: 5s}]"
    result = played(crash, 'topics={"orders": 4, "pays": 4}', f"members.app.streams={parts}", "members.app.count=1")
    gaps = result.longest_gaps()
    assert [gaps[f"pays-{number}"] - gaps[f"orders-{number}"] for number in range(4)] == [pytest.approx(16, abs=0.01)] * 4
