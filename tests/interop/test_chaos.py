"""ConsumerGroup among other clients, while members and coordinator freeze and die: nothing is lost, nothing goes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.chaos import Chaos, KafkaGround, ServeGround, check
from tests.support.gates import OWN_JAVA
from tests.support.kafka.broker import KafkaBroker

pytestmark = pytest.mark.interop


@pytest.fixture
def serve_ground(tmp_path: Path) -> Iterator[ServeGround]:
    ground = ServeGround(tmp_path)
    yield ground
    ground.close()


def test_a_group_outlives_what_happens_to_it(serve_ground: ServeGround) -> None:
    """A member is killed, another frozen, and the coordinator frozen, then killed and started again."""
    chaos = Chaos(serve_ground, seed=1, crew=("kgctl", "kgctl-async"))
    chaos.run_through(["kill", "freeze_ground", "restart_ground", "leave"])
    check(chaos)


@pytest.mark.deep
@pytest.mark.needs("go", *OWN_JAVA)
@pytest.mark.parametrize("seed", range(5))
def test_serve_for_longer(serve_ground: ServeGround, seed: int) -> None:
    chaos = Chaos(serve_ground, seed)
    chaos.run(90)
    check(chaos)


@pytest.mark.deep
@pytest.mark.kafka
@pytest.mark.needs("go", "javac")
@pytest.mark.parametrize("seed", range(3))
def test_apache_kafka_for_longer(own_kafka_broker: KafkaBroker, seed: int) -> None:
    chaos = Chaos(KafkaGround(own_kafka_broker), seed)
    chaos.run(120)
    check(chaos)
