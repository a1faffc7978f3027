"""The metrics of share groups, on a recording in which all is known."""

from __future__ import annotations

from collections import Counter

import pytest

from kgctl.simulate.metrics.result import MetricView
from kgctl.simulate.recording.recording import (
    Archival,
    Counted,
    Intervals,
    PodHistory,
    Recording,
    Redelivery,
    Return,
    ShareHistory,
)
from kgctl.simulate.scenario.metric import DELIVERIES, metric_kinds
from kgctl.simulate.scenario.model import Group, MemberSet, Scenario, Topic
from kgctl.simulate.scenario.vocabulary import GivenBack

S = 1_000_000


@pytest.fixture
def view() -> MetricView:
    members = MemberSet(name="app", count=2)
    group = Group(type_name="share")
    recording = Recording(Scenario(name="x", topics=(Topic(name="t"), Topic(name="u")), members=(members,), group=group), 1)
    for topic in ("t", "u"):
        recording.partitions.add(topic, 1, 0, counted=True)
    for index in range(2):
        running = Intervals([(0, 100 * S)])
        recording.history.pods.append(PodHistory(f"app-{index}", "app", index, None, None, members, {}, running=running))
    recording.now_us = 100 * S
    recording.share = ShareHistory(
        delivered=[Counted(0, 30, 0, "t")],
        redelivered=[
            Redelivery(10 * S, 0, 5, 9, 2, 1, 0, GivenBack.CRASHED),
            Redelivery(20 * S, 0, 7, 9, 3, 0, 1, GivenBack.TIMED_OUT),
            Redelivery(30 * S, 1, 7, 7, 2, 0, 1, GivenBack.TIMED_OUT),
        ],
        returned=[Return(15 * S, 0, 7, 9, 1, GivenBack.TIMED_OUT), Return(9 * S, 0, 5, 9, 0, GivenBack.CRASHED)],
        archived=[
            Archival(40 * S, 0, 7, 8, 5, 0, GivenBack.TIMED_OUT),
            Archival(50 * S, 1, 7, 7, 1, 1, GivenBack.REJECTED),
        ],
        acknowledged=[Counted(60 * S, 12, 0, "t"), Counted(61 * S, 3, 1, "u")],
        refused=[Counted(62 * S, 4, 1, "t")],
        held=[(60 * S, "t", Counter({2 * S: 9, 4 * S: 3})), (61 * S, "u", Counter({9 * S: 3}))],
        waiting={0: Intervals([(0, 50 * S)])},
    )
    return MetricView(recording)


@pytest.mark.parametrize(
    ("name", "filters", "value"),
    [
        ("redelivered", (), 6), ("redelivered", ("t",), 5), ("redelivered", ("cause timed_out",), 4),
        ("redelivered", ("after 15s",), 4), ("redelivered", ("app/1",), 5),
        ("redeliveries", (), 9), ("redeliveries", ("cause crashed",), 5),
        ("most_deliveries", (), 3), ("most_deliveries", ("u",), 2),
        ("archived", (), 3), ("archived", ("cause rejected",), 1), ("archived", ("before 45s",), 2),
        ("lock_timeouts", (), 5), ("lock_timeouts", ("app/1",), 3),
        ("refused_acknowledgements", (), 4), ("refused_acknowledgements", ("app/0",), 0),
        ("acknowledged", (), 15), ("acknowledged", ("u",), 3),
        ("in_flight_time", (), 2.0), ("in_flight_time", ("max",), 9.0), ("in_flight_time", ("t", "p90"), 4.0),
        ("without_work", (), 0.25), ("without_work", ("app/0",), 0.5), ("without_work", ("app/1",), 0.0),
    ],
)  # fmt: skip
def test_each_is_what_was_recorded(view: MetricView, name: str, filters: tuple[str, ...], value: float) -> None:
    assert view.metric(name, filters) == value


def test_a_group_has_the_metrics_of_its_type(view: MetricView) -> None:
    named = {name for name, kind in metric_kinds().items() if kind.about is DELIVERIES}
    assert view.metric("moves") is None
    consumers = MetricView(Recording(Scenario(name="x"), 1))
    assert [consumers.metric(name) for name in named] == [None] * len(named)
    assert not named & set(consumers.summary())
