"""Messages under way."""

from __future__ import annotations

from random import Random

from kgctl.simulate.engine.pods import Link
from kgctl.simulate.scenario.event_port import LinkFault
from kgctl.simulate.scenario.model import Network
from kgctl.simulate.scenario.quantities import Constant, Uniform

S = 1_000_000


def link(**network: object) -> Link:
    return Link(Network(**network), lambda: Random(1))  # type: ignore[arg-type]


def test_a_message_takes_the_latency() -> None:
    assert link(latency=Constant(700)).arrival_us(1000, 0) == 1700


def test_messages_of_one_direction_do_not_overtake() -> None:
    way = link(latency=Uniform(0, 10_000))
    arrivals = [way.arrival_us(now_us, 0) for now_us in range(0, 10_000, 100)]
    assert arrivals == sorted(arrivals, key=lambda at_us: at_us or 0)
    assert way.arrival_us(0, 1) is not None


def test_a_partition_delays_by_retransmissions_until_it_is_over() -> None:
    way = link()
    fault = LinkFault(is_partition=True, until_us=2 * S)
    way.add(fault)
    # Sent again after 0.2, 0.6, 1.4 and 3.0 s.
    assert (way.is_clean, way.arrival_us(0, 0)) == (False, 3 * S + 1000)
    way.remove(fault)
    assert (way.is_clean, way.arrival_us(4 * S, 0)) == (True, 4 * S + 1000)


def test_a_long_partition_breaks_the_connection() -> None:
    way = link()
    way.add(LinkFault(is_partition=True))
    assert way.arrival_us(0, 0) is None


def test_loss_shows_as_delay() -> None:
    way = link(loss_ppm=200_000)
    delays = [(way.arrival_us(number * 60 * S, 0) or 0) - number * 60 * S - 1000 for number in range(200)]
    assert set(delays) <= {0, 200_000, 600_000, 1_400_000, 3_000_000, 6_200_000, 12_600_000, 25_400_000}
    assert 20 < sum(delay > 0 for delay in delays) < 70
