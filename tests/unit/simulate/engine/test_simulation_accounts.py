"""What is added up along the way comes out at the end: time without a consumer (I8), records that wait (I9). What pods keep."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kgctl.errors import InvariantViolation
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.scenario.model import SECOND_US
from tests.support.simulated import CONSUMER, RANGE, event, finished, scenario


def _lose_a_gap(simulation: Simulation) -> None:
    lane = next(lane for lane in simulation.owners.changes if any(at_us > simulation.scenario.warmup_us for at_us in lane[::2]))
    lane[:] = lane[:4]


def _lose_records(simulation: Simulation) -> None:
    simulation.ledger.backlog["t"].step(simulation.scenario.warmup_us, 10**12)


@pytest.mark.parametrize(("spoil", "rule"), [(_lose_a_gap, "I8"), (_lose_records, "I9")])
def test_accounts_that_do_not_come_out_end_the_run(spoil: Callable[[Simulation], None], rule: str) -> None:
    simulation = finished(scenario(event("crash", "app/1", 5, for_us=10 * SECOND_US), rate=100), 1)
    assert simulation.metrics.metric("unavailable") > 0  # type: ignore[operator]
    simulation.check.settled()

    spoil(simulation)
    with pytest.raises(InvariantViolation, match=f"^{rule} broke at ") as caught:
        simulation.check.settled()
    assert caught.value.group == "group"
    assert caught.value.story


@pytest.mark.parametrize("config", [RANGE, CONSUMER])
def test_nothing_that_each_pod_has_keeps_its_fields_in_a_dict(config: dict[str, str]) -> None:
    """A large group would be read from memory twice as long."""
    for pod in finished(scenario(config=config), 1).pods:
        process = pod.process
        assert process is not None
        parts = [
            pod,
            process,
            process.member,
            *(getattr(process.member, name) for name in ("connection", "positions", "committer")),
        ]
        assert [type(each).__name__ for each in parts if hasattr(each, "__dict__")] == []
