"""Metrics of tasks, on histories that are written down by hand."""

from __future__ import annotations

import pytest

from kgctl.simulate.metrics.result import MetricView
from kgctl.simulate.recording.recording import Counted, Recording, TaskHistory
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.model import MemberSet
from kgctl.simulate.scenario.streams import StreamsApplication
from kgctl.simulate.scenario.vocabulary import GapCause
from tests.unit.simulate.metrics.test_metrics import S, at, consumed, gap, recorded


def of_application(recording: Recording) -> Recording:
    """The same, of instances of an application of Kafka Streams."""
    recording.scenario = changed(recording.scenario, members=(MemberSet(name="a", streams=StreamsApplication()),))
    return recording


def made() -> Recording:
    """Two tasks: one reads partitions 0 and 1, the other partition 2."""
    found = of_application(recorded())
    found.tasks = TaskHistory(tasks={"0_0": (0, 1), "0_1": (2,)})
    consumed(found)
    return found


def test_a_task_is_down_once_whatever_it_reads() -> None:
    recording = made()
    for number in (0, 1):
        gap(recording, number, 10, 14, by=0, then=1)
    gap(recording, 2, 12, 20, by=1, then=0)
    gap(recording, 2, 30, 31, by=0, then=2)
    at(recording, 100)
    view = MetricView(recording)
    names = ("task_downtime", "max_task_downtime", "time_to_whole")
    assert [view.metric(name) for name in names] == [4 + 8 + 1, 8, 10]
    assert [view.metric(name, ("after 25s",)) for name in names] == [1, 1, 1]
    assert [view.metric(name, ("after 50s",)) for name in names] == [0, 0, 0]


def test_restoring_is_a_part_of_it() -> None:
    recording = made()
    recording.owners.release(0, [0, 1], GapCause.DETECTION, 10 * S)
    recording.owners.set_cause([0, 1], GapCause.RESTORE, 12 * S)
    recording.owners.own(1, [0, 1], 17 * S)
    at(recording, 100)
    view = MetricView(recording)
    assert [view.metric(name) for name in ("task_downtime", "restore_time")] == [7, 5]


def test_amounts_are_of_the_window_and_of_the_pods_that_are_meant() -> None:
    recording = made()
    assert recording.tasks is not None
    recording.tasks.restored += [Counted(10 * S, 5, 0, "0_0"), Counted(60 * S, 7, 1, "0_1")]
    recording.tasks.copied.append(Counted(60 * S, 70, 1, "0_1"))
    recording.tasks.warmups.append(Counted(60 * S, 70, 1, "0_1"))
    recording.tasks.probes.append(Counted(70 * S, 1, 1))
    recording.tasks.copies += [(0, 0, 2), (20 * S, 1, 2), (80 * S, 2, 2)]
    at(recording, 100)
    view = MetricView(recording)
    names = ("restored", "copied", "warmups", "probing_rebalances", "standby_coverage")
    assert [view.metric(name) for name in names] == [12, 70, 1, 1, 1]
    assert [view.metric(name, ("after 65s",)) for name in names[:4]] == [0, 0, 0, 1]
    assert [view.metric("restored", (f"a/{number}",)) for number in (0, 1)] == [5, 7]
    assert [view.metric("standby_coverage", (f"at {second}s",)) for second in (19, 20, 90)] == [0, 0.5, 1]


@pytest.mark.parametrize("name", ["task_downtime", "restored", "warmups", "standby_coverage"])
def test_other_groups_have_none(name: str) -> None:
    recording = recorded()
    consumed(recording)
    at(recording, 100)
    view = MetricView(recording)
    assert view.metric(name) is None
    assert name not in view.summary()
