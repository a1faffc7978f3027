"""kafka-python's codec, which nobody here wrote, on the same bytes."""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest

from kgctl.serde.encoder import encode
from kgctl.serde.schemas import Direction, load_plan
from kgctl.server.registry import default_registry
from kgctl.server.request_context import ApiSpec
from tests.support.wire.messages import random_values

pytestmark = pytest.mark.filterwarnings(
    "ignore:(read|open)_text is deprecated:DeprecationWarning"
)  # kafka-python, loading schemas

MODULES = ("admin", "broker_version_data", "consumer", "metadata", "producer", "sasl")
NOT_IN_KAFKA_PYTHON = {"ConsumerGroupHeartbeat", "ConsumerGroupDescribe"}
WRONG_IN_KAFKA_PYTHON = {"DeleteTopicsRequest": range(7), "ApiVersionsResponse": range(1, 5)}
"""Messages that it does not write back as they were: it has code of its own for them."""
DIRECTIONS: tuple[Direction, ...] = ("request", "response")
SPECS = [spec for spec in default_registry().specs() if spec.name not in NOT_IN_KAFKA_PYTHON]


def their_class(name: str) -> Any:
    modules = (importlib.import_module(f"kafka.protocol.{module}") for module in MODULES)
    return next((getattr(module, name) for module in modules if hasattr(module, name)), None)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_kafka_python_reads_and_writes_the_same_bytes(spec: ApiSpec, direction: Direction) -> None:
    name = f"{spec.name}{direction.capitalize()}"
    message = their_class(name)

    assert message is not None

    rng = random.Random(spec.key)
    for version in range(spec.min_version, min(spec.max_version, message.max_version) + 1):
        if version in WRONG_IN_KAFKA_PYTHON.get(name, ()):
            continue
        for _ in range(5):
            plan = load_plan(spec.key, version, direction)
            ours = bytearray()
            encode(plan, random_values(plan, rng), ours)
            theirs = message.decode(bytes(ours), version=version).encode()

            assert (version, bytes(theirs).hex()) == (version, ours.hex())
