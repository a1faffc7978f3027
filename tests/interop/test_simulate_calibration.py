"""One of the calibration's scenarios, measured now: Java consumers and Apache Kafka against the simulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.model import SECOND_US
from tests.calibration.cases import Case, all_cases, simulated, spread
from tests.calibration.figures import played
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.deep]  # one case of tests/calibration/measured.json anew


def test_a_scale_out_of_a_cooperative_group(tmp_path: Path) -> None:
    scenario = next(case.scenario for case in all_cases() if case.name == "scale:cooperative")
    scenario = changed(scenario, warmup_us=15 * SECOND_US, duration_us=13 * SECOND_US)
    broker = KafkaBroker(tmp_path, overrides={"group.initial.rebalance.delay.ms": "3000"})
    broker.start()
    try:
        wait_until_coordinating(broker.bootstrap)
        real = played(scenario, broker.bootstrap)
    finally:
        broker.stop()

    model = spread(simulated(Case("scale", "", scenario), 20))
    assert (real["generations"], real["moves"]) == (2, 2)
    # A busy machine makes a gap longer, never shorter; how near the two are is what `python -m tests.calibration` measures.
    assert model["max_gap"][0] * 0.8 <= real["max_gap"]
    assert real["duplicates"] > 0  # read between the commit at the beginning of the rebalance and the revocation
    assert model["duplicates"][0] > 0
