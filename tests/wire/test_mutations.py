"""Every API and version that is served, with good requests, random ones and damaged ones."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.serde.frames import MalformedMessage
from kgctl.serde.messages import decode_request, decode_response, encode_request
from kgctl.serde.schemas import load_plan
from kgctl.server.background import BackgroundServer
from kgctl.server.dispatch import Dispatcher, Refused
from kgctl.server.request_context import ApiSpec, ClientSession
from kgctl.server.service import default_registry
from tests.support.wire.messages import random_values

SPECS = default_registry().specs()
MUTATIONS = 60
FORGED_LENGTHS = (
    b"\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x80\x80\x80\x80\x00",
)


def versions(spec: ApiSpec) -> list[int]:
    return sorted({*range(spec.min_version, spec.max_version + 1), *spec.hidden_versions})


def mutated(payload: bytes, rng: random.Random) -> bytes:
    data = bytearray(payload)
    position = rng.randrange(8, len(data)) if len(data) > 8 else len(data)
    match rng.randrange(5):
        case 0:
            del data[position:]
        case 1:
            data[position : position + 1] = bytes((rng.randrange(256),))
        case 2:
            forged = rng.choice(FORGED_LENGTHS)
            data[position : position + len(forged)] = forged
        case 3:
            data[position:position] = rng.randbytes(rng.randrange(1, 6))
        case _:
            data += rng.randbytes(3)
    return bytes(data)


@pytest.fixture(scope="module")
def server() -> Iterator[BackgroundServer]:
    config = {"group.initial.rebalance.delay.ms": "0"}
    with BackgroundServer(topics={"t": 2, "abc": 3}, config=config) as running:
        yield running


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_damaged_requests_are_read_or_malformed_and_nothing_else(spec: ApiSpec) -> None:
    rng = random.Random(spec.key)
    for version in versions(spec):
        for _ in range(3):
            payload = encode_request(spec.key, version, 7, "c", random_values(load_plan(spec.key, version, "request"), rng))
            for _ in range(MUTATIONS):
                damaged = mutated(payload, rng)
                try:
                    assert decode_request(damaged).body is not None
                except MalformedMessage:
                    continue


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_damaged_responses_are_read_or_malformed_and_nothing_else(spec: ApiSpec) -> None:
    from kgctl.serde.messages import encode_response

    rng = random.Random(spec.key)
    for version in versions(spec):
        payload = encode_response(spec.key, version, 7, random_values(load_plan(spec.key, version, "response"), rng))
        for _ in range(MUTATIONS):
            try:
                assert decode_response(spec.key, version, mutated(payload, rng))[1] is not None
            except MalformedMessage:
                continue


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_any_request_is_answered_in_its_own_version_or_refused(spec: ApiSpec, server: BackgroundServer) -> None:
    """Values at random, so that every handler meets things it does not expect; no handler may fail."""
    rng = random.Random(100 + spec.key)

    async def answer(payload: bytes) -> bytes | None:
        services = server.server.services
        dispatcher = Dispatcher(services, services.cluster.brokers[0], server.server.description)
        response = dispatcher.answer(payload, ClientSession())
        if response is None or isinstance(response, bytes):
            return response
        task = asyncio.ensure_future(response)
        done, _ = await asyncio.wait([task], timeout=0.01)
        if done:
            return task.result()
        task.cancel()
        return None

    for version in versions(spec):
        for _ in range(10):
            values = random_values(load_plan(spec.key, version, "request"), rng)
            payload = encode_request(spec.key, version, 7, "c", plausible(values, rng))
            try:
                response = server.run(answer(payload))
            except (Refused, MalformedMessage):
                continue
            if response is not None:
                assert decode_response(spec.key, version, response)[0] == 7
    server.run(check(server))


async def check(server: BackgroundServer) -> None:
    server.server.services.runtime.core.check()


def plausible(values: Any, rng: random.Random) -> Any:
    """Some values replaced by ones that lead further in."""
    choices: dict[str, list[Any]] = {
        "name": ["t", "abc", "nosuch"],
        "topic": ["t", "abc", "nosuch"],
        "group_id": ["g", "h", ""],
        "protocol_type": ["consumer", "connect"],
        "partition_index": [0, 1, 2],
        "partition": [0, 1, 2],
        "session_timeout_ms": [10_000],
        "max_wait_ms": [0, 5],
        "timestamp": [-1, -2, -3, -4, -5, 0, 1],
    }
    if isinstance(values, dict):
        return {
            key: rng.choice(choices[key]) if key in choices and rng.random() < 0.7 else plausible(value, rng)
            for key, value in values.items()
        }
    if isinstance(values, list):
        return [plausible(value, rng) for value in values]
    return values
