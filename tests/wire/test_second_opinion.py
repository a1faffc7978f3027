"""The codecs of kafka-python and kio, which nobody here wrote, on the same bytes."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import io
import random
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from kgctl.serde.codec import Entity, read, write
from kgctl.serde.schemas import Direction, load_plan
from kgctl.server.request_context import ApiSpec
from kgctl.server.service import default_registry
from tests.support.wire.messages import random_values

pytestmark = pytest.mark.filterwarnings(
    "ignore:(read|open)_text is deprecated:DeprecationWarning"
)  # kafka-python, loading schemas

MODULES = ("admin", "broker_version_data", "consumer", "metadata", "producer", "sasl")
NOT_IN_KAFKA_PYTHON = {
    *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
    *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
    *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
    *("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
}
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
            write(plan, random_values(plan, rng), ours)
            theirs = message.decode(bytes(ours), version=version).encode()

            assert (version, bytes(theirs).hex()) == (version, ours.hex())


@pytest.mark.parametrize("spec", default_registry().specs(), ids=lambda spec: spec.name)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_kio_reads_and_writes_the_same_bytes_and_means_the_same(spec: ApiSpec, direction: Direction) -> None:
    rng = random.Random(spec.key)
    for version in range(spec.min_version, spec.max_version + 1):
        plan = load_plan(spec.key, version, direction)
        schema: Any = (load_request_schema if direction == "request" else load_response_schema)(spec.key, version)
        for values in ({}, *(random_values(plan, rng) for _ in range(3))):
            ours = bytearray()
            write(plan, values, ours)
            entity, _ = entity_reader(schema)(bytes(ours), 0)
            theirs = io.BytesIO()
            entity_writer(schema)(theirs, entity)

            assert (version, theirs.getvalue().hex()) == (version, ours.hex())
            assert (version, plain(read(plan, bytes(ours)))) == (version, plain(entity))


MILLISECOND = datetime.timedelta(milliseconds=1)


def plain(value: Any) -> Any:
    """An entity of either codec as dictionaries, lists and numbers; kio's times get Kafka's name and unit."""
    if isinstance(value, Entity):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    if dataclasses.is_dataclass(value):
        return {kafka_name(field): plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime.timedelta):
        return value // MILLISECOND
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1_000)
    return value.value if isinstance(value, enum.Enum) else value


def kafka_name(field: dataclasses.Field[Any]) -> str:
    is_time = field.metadata.get("kafka_type", "").startswith(("timedelta", "datetime"))
    return f"{field.name}_ms" if is_time else field.name
