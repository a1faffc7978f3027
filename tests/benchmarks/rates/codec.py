"""Reading and writing Kafka's messages: kgctl's codec beside kio's and kafka-python's, in turns in one process."""

from __future__ import annotations

import importlib
import io
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kgctl.serde.codec import read, write
from kgctl.serde.schemas import Direction, load_plan
from tests.benchmarks.rates.rate import Rates, Row, Scale

HEARTBEAT, OFFSET_FETCH = 12, 9
HEARTBEAT_VERSION, OFFSET_FETCH_VERSION = 4, 8
BEAT = {"group_id": "payments", "generation_id": 7, "member_id": f"consumer-1-{'0' * 36}", "group_instance_id": None}
ANSWER = {"throttle_time_ms": 0, "error_code": 0}
Work = Callable[[], object]


def measure(_: Sequence[str], scale: Scale) -> Iterator[Row]:
    """Microseconds of processor time for one message; kio is given its entities, kafka-python its messages, ready made."""
    beats = 10 if scale.small else 2_000
    groups = 5 if scale.small else 1_000
    yield from _rows("Heartbeat request", HEARTBEAT, HEARTBEAT_VERSION, "request", BEAT, beats, scale)
    yield from _rows("Heartbeat response", HEARTBEAT, HEARTBEAT_VERSION, "response", ANSWER, beats, scale)
    name = f"OffsetFetch response, {groups:,} groups x 100"
    yield from _rows(name, OFFSET_FETCH, OFFSET_FETCH_VERSION, "response", offsets_of(groups), 1, scale)


def offsets_of(groups: int) -> dict[str, Any]:
    """The values of an OffsetFetch response with 100 partitions a group."""
    fields = {"committed_leader_epoch": 3, "metadata": "", "error_code": 0}
    partitions = [{"partition_index": number, "committed_offset": 1_000 + number, **fields} for number in range(100)]
    topics = [{"name": "orders", "partitions": partitions}]
    return {"throttle_time_ms": 0, "groups": [{"group_id": f"g{n}", "topics": topics, "error_code": 0} for n in range(groups)]}


def _rows(
    name: str, key: int, version: int, direction: Direction, values: dict[str, Any], times: int, scale: Scale
) -> Iterator[Row]:
    from kio.index import load_request_schema, load_response_schema
    from kio.serial import entity_reader, entity_writer

    plan, out = load_plan(key, version, direction), bytearray()
    write(plan, values, out)
    data = bytes(out)
    schema: Any = (load_request_schema if direction == "request" else load_response_schema)(key, version)
    kio_read, kio_write = entity_reader(schema), entity_writer(schema)
    entity, _ = kio_read(data, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas by importlib.resources.read_text
        theirs = getattr(importlib.import_module("kafka.protocol.consumer"), plan.name)
    message = theirs.decode(data, version=version)
    yield _row(
        f"{name}: read",
        [lambda: read(plan, data), lambda: kio_read(data, 0), lambda: theirs.decode(data, version=version)],
        times,
        scale,
    )
    yield _row(
        f"{name}: written",
        [lambda: write(plan, values, bytearray()), lambda: kio_write(io.BytesIO(), entity), message.encode],
        times,
        scale,
    )


def _row(name: str, works: Sequence[Work], times: int, scale: Scale) -> Row:
    """The best of several rounds, in each of which all take their turn."""
    rounds = [[_microseconds(work, times) for work in works] for _ in range(scale.runs)]
    return Row(name, [f"{min(column):,.1f}" for column in zip(*rounds, strict=True)])


def _microseconds(work: Work, times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times * 1e6


RATES = Rates("codec", "Kafka's messages, us of processor time for one", ("kgctl", "kio", "kafka-python"), measure)
