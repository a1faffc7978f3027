"""What was measured with Apache Kafka and its Java client lies within what the simulation says over some seeds.

The figures are in tests/calibration/measured.json; ``python -m tests.calibration --save`` measures again.
"""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from kgctl.simulate.recording.owners import Gap
from kgctl.simulate.scenario.vocabulary import GapCause
from tests.calibration import cases
from tests.calibration.cases import SILENT_US, Case, all_cases, measured, simulated, spread
from tests.calibration.figures import Figures
from tests.calibration.outages import is_orderly, silences
from tests.support.simulate.shared import scenario_of

Range = tuple[float, float, float]
SEEDS = 40
SLACK = {"generations": (1.0, 0), "moves": (1.0, 0), "unavailable": (1.15, 0.3), "max_gap": (1.1, 0.2), "duplicates": (1.25, 20)}
"""Metric -> by what factor, and by how much on top, a run in real time may lie outside."""
OUTAGES = ("alone", "away", "failover")
"""Scenarios whose brokers are killed; each play has a cluster of its own."""
BUSY = ("blue-green", "elastic", "frozen-join", "node-lost", "ordered", "recreate", "slow-batches", "stalls", "two-topics")
"""Scenarios that were played once or twice, beside seven to fourteen other processes that wanted a processor."""
LAST = ("crowd", "fixed", "pair-kills", "pattern", "surge-wide", "tardy", "up-down")
"""Scenarios that were played later, once or twice, while two to five others did."""
UNSEEN = ("down-up", "grow-rollout", "kicks", "static-kills", "subscriptions", "two-rollouts", "uneven")
"""Scenarios that were played last, once or twice, at a load of one to four on two processors."""
KEPT_BACK = ("behind", "drained", "exact-work", "lib-pauses", "lib-plain", "matched", "overdue", "tides")
"""Scenarios of members that work, of librdkafka and of patterns, in one to three plays at a load of 5 to 18 on two processors."""
OTHERS = ("aio-rolling", "aio-scale", "go-rolling", "go-scale", "mixed", "roll-brokers")
"""Scenarios of aiokafka, kafka-go, a mix of clients, and brokers in turn: three plays each, the brokers before all else."""
DEEP = (*BUSY, *LAST, *UNSEEN, *KEPT_BACK, *OTHERS)
OUTSIDE = {
    "behind:cooperative": {"duplicates", "max_gap"},  # members whose batches take exactly as long keep in step: see the page
    "kicks:consumer": {"generations"},  # in four plays of seven whole batches of the two slow members were read again
    "tardy:consumer": {"unavailable"},  # those that came back met no others' heartbeats, and had their partitions at once
}
"""Case -> metrics that lie outside: cases that were measured after the simulation was made, and that it was not tuned on."""


BROKER, REBALANCE = GapCause.BROKER, GapCause.REBALANCE
SEEN: dict[str, tuple[list[tuple[Any, ...]], tuple[float, float]]] = {
    "as the simulation has it": ([(0.1, REBALANCE), (4, BROKER)], (9.0, 4.0)),
    "a short time in which an owner cannot read": ([(0.25, BROKER), (0.3, BROKER), (0.1, REBALANCE)], (0.4, 0.3)),
    "a short rebalance in which a broker is away, too": ([(0.2, BROKER, REBALANCE), (0.2, BROKER)], (0.2, 0.2)),
    "nothing that anybody could see": ([(0.2, BROKER)], (0, 0)),
}


@pytest.mark.parametrize("case", SEEN)
def test_figures_are_those_that_a_play_could_measure(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = [Gap(0, 0, round(length * 1e6), 0, 1, tuple((cause, 0) for cause in causes)) for length, *causes in SEEN[case][0]]
    monkeypatch.setattr(cases, "Measured", lambda _: SimpleNamespace(gaps=lambda _: gaps))
    given = SimpleNamespace(recording=None, metric=lambda name: {"unavailable": 9.0, "max_gap": 4.0}.get(name, 7))
    monkeypatch.setattr(cases, "run", lambda *_: given)
    (figures,) = simulated(all_cases()[0], 1)
    assert (figures.pop("unavailable"), figures.pop("max_gap")) == pytest.approx(SEEN[case][1])
    assert {*figures.values()} == {7.0}


def test_every_case_was_measured() -> None:
    found = measured()
    assert set(found) <= {case.name for case in all_cases()}
    assert len(found) >= 50
    assert all(len(times) >= (1 if name.partition(":")[0] in (*OUTAGES, *DEEP) else 2) for name, times in found.items())


def _asked() -> list[ParameterSet]:
    """All that were measured; those of `DEEP` where there is time."""
    found = [case for case in all_cases() if case.name in measured()]
    return [
        pytest.param(case, id=case.name, marks=[pytest.mark.deep] if case.name.partition(":")[0] in DEEP else [])
        for case in found
    ]


@pytest.mark.parametrize("case", _asked())
def test_reality_is_within_the_simulation(case: Case) -> None:
    """More seeds only widen what the simulation says, so that the first few are enough where they hold reality."""
    real, model = spread(measured()[case.name]), list[Figures]()
    while (outside := left_out(real, spread(model))) and len(model) < SEEDS:
        model += simulated(case, SEEDS // 10, first=len(model) + 1)
    assert set(outside) <= OUTSIDE.get(case.name, set()), outside


def left_out(real: dict[str, Range], model: dict[str, Range]) -> dict[str, tuple[Range, Range | None]]:
    """Return each metric whose median in reality is not what the simulation says: what was measured, and what it says."""
    found = {}
    for name, (factor, more) in SLACK.items():
        low, _, high = model.get(name, (inf, inf, -inf))
        if not low / factor - more <= real[name][1] <= high * factor + more:
            found[name] = (real[name], model.get(name))
    return found


def test_silence_is_told_where_records_wait() -> None:
    """Of a reader to whom they came late nothing is told, nor of one that is late by less than `SILENT_US`."""
    second = 1_000_000
    reads = [
        (0, 0),
        (second // 10, 9),
        (3 * second, 2 * second),
        (6 * second, 5),
        (9 * second, SILENT_US),
        (12 * second, 8 * second),
    ]
    assert list(silences(reads, 14 * second)) == [
        (second, 3 * second),
        (9 * second, 12 * second),
        (12 * second, 14 * second),
    ]
    assert list(silences([], 14 * second)) == []


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("broker_down: coordinator, detect: 0s, for: 5s", True),
        ("broker_down: coordinator, for: 5s", False),
        ("broker_down: coordinator, detect: 1s, for: 5s", False),
        ("node_down: app/0, detect: 0s, for: 5s", False),
    ],
)
def test_brokers_that_die_are_not_stopped_in_order(event: str, expected: bool) -> None:
    """Who would take a node that is lost for an orderly stop would count records by the clocks of brokers that are gone."""
    head = "group: {id: g}\n"
    text = f"{head}cluster: {{brokers: 3}}\nmembers: {{app: {{count: 2}}}}\nduration: 1m\nevents: [{{at: 10s, {event}}}]\n"
    assert is_orderly(scenario_of(text)) is expected
