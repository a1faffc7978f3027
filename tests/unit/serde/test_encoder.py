"""The encoder against kio's own writers, and every message there and back."""

from __future__ import annotations

import io
import random

import pytest
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer

from kgctl.serde.encoder import encode
from kgctl.serde.messages import decode_request, decode_response, encode_request, encode_response
from kgctl.serde.schemas import Direction, load_plan
from tests.support.wire.builder import build
from tests.support.wire.messages import random_values

API_KEYS = sorted(api_key_map)


def versions(api_key: int) -> list[int]:
    return sorted(schema_name_map[api_key_map[api_key]])


@pytest.mark.parametrize("api_key", API_KEYS, ids=lambda key: api_key_map[key])
def test_every_version_of_an_api_encodes_byte_for_byte_like_kio(api_key: int) -> None:
    rng = random.Random(api_key)
    directions: tuple[Direction, ...] = ("request", "response")
    for version in versions(api_key):
        for direction in directions:
            plan = load_plan(api_key, version, direction)
            values = random_values(plan, rng)
            ours = bytearray()
            encode(plan, values, ours)
            theirs = io.BytesIO()
            entity_writer(plan.type)(theirs, build(api_key, version, direction, values))

            assert (version, direction, bytes(ours)) == (version, direction, theirs.getvalue())


@pytest.mark.parametrize("api_key", API_KEYS, ids=lambda key: api_key_map[key])
def test_every_version_of_an_api_is_read_back_as_it_was_built(api_key: int) -> None:
    rng = random.Random(1_000 + api_key)
    for version in versions(api_key):
        values = random_values(load_plan(api_key, version, "request"), rng)
        decoded = decode_request(encode_request(api_key, version, 7, "me", values))

        assert decoded.body == build(api_key, version, "request", values)
        assert (decoded.api_key, decoded.api_version, decoded.correlation_id, decoded.client_id) == (api_key, version, 7, "me")

        values = random_values(load_plan(api_key, version, "response"), rng)

        assert decode_response(api_key, version, encode_response(api_key, version, -3, values)) == (
            -3,
            build(api_key, version, "response", values),
        )
