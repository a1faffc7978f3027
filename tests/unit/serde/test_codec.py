"""Every message there and back, and what a peer may send that nobody meant."""

from __future__ import annotations

import gc
import random
import struct
import tracemalloc
from typing import Any

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.codec import LARGE_BYTES, read, read_varint, varint_bytes, write
from kgctl.serde.frames import MalformedMessage
from kgctl.serde.messages import decode_request, decode_response, encode_request, encode_response
from kgctl.serde.schemas import Direction, load_plan
from kgctl.server.request_context import ApiSpec
from kgctl.server.service import default_registry
from tests.support.wire.builder import build
from tests.support.wire.messages import random_values

LIST_GROUPS, HEARTBEAT, FETCH, OFFSET_COMMIT, CONSUMER_GROUP_HEARTBEAT, OFFSET_FETCH = 16, 12, 1, 8, 68, 9
SPECS = default_registry().specs()
DIRECTIONS: tuple[Direction, ...] = ("request", "response")


def body(api_key: int, version: int, data: str) -> bytes:
    """A request's header in front of these body bytes."""
    whole = encode_request(api_key, version, 1, "c", {})
    return whole[: len(whole) - _body_size(api_key, version)] + bytes.fromhex(data)


def _body_size(api_key: int, version: int) -> int:
    out = bytearray()
    write(load_plan(api_key, version, "request"), {}, out)
    return len(out)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_version_of_an_api_is_read_back_as_it_was_written(spec: ApiSpec) -> None:
    rng = random.Random(1_000 + spec.key)
    for version in range(spec.min_version, spec.max_version + 1):
        values = random_values(load_plan(spec.key, version, "request"), rng)
        decoded = decode_request(encode_request(spec.key, version, 7, "me", values))

        assert_same(decoded.body, values)
        assert decoded[:4] == (spec.key, version, 7, "me")

        values = random_values(load_plan(spec.key, version, "response"), rng)
        correlation_id, entity = decode_response(spec.key, version, encode_response(spec.key, version, -3, values))

        assert correlation_id == -3
        assert_same(entity, values)


def assert_same(entity: Any, values: Any) -> None:
    """Every value stands in the entity; None where the version has no null is the type's empty value."""
    if isinstance(values, dict):
        assert sorted(entity.__slots__) == sorted(values)
        for name, value in values.items():
            assert_same(getattr(entity, name), value)
    elif isinstance(values, list):
        assert isinstance(entity, tuple)
        assert len(entity) == len(values)
        for element, value in zip(entity, values, strict=True):
            assert_same(element, value)
    else:
        assert entity == values


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_no_prefix_of_a_message_is_a_message(spec: ApiSpec) -> None:
    """Each byte counts: cut anywhere, a message is malformed, and nothing but that is raised."""
    rng = random.Random(spec.key)
    for version in (spec.min_version, spec.max_version):
        for direction in DIRECTIONS:
            plan = load_plan(spec.key, version, direction)
            out = bytearray()
            write(plan, random_values(plan, rng), out)
            for size in sorted({*range(min(len(out), 40)), *(rng.randrange(len(out) or 1) for _ in range(40)), len(out) - 1}):
                if 0 <= size < len(out):
                    with pytest.raises(MalformedMessage):
                        read(plan, bytes(out[:size]))


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (5, "ffffffff7f0000"),  # 34 billion states
        (5, "ffffffff0f0100"),
        (5, "818080800000"),  # longer than what is left
        (4, "0500"),
        (5, "02ffffffffff0f00"),  # a varint of more than five bytes
        (5, "000100"),  # null where null cannot be
    ],
)
def test_forged_lengths_are_malformed(version: int, data: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_request(body(LIST_GROUPS, version, data))


@pytest.mark.parametrize("data", ["7fffffff", "fffffffe", "ffffffff"])
def test_forged_lengths_of_plain_arrays_are_malformed(data: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_request(body(15, 0, data))


def test_no_memory_is_taken_for_elements_that_are_not_there() -> None:
    """Each of the groups announced would take six bytes at least."""
    message = encode_response(OFFSET_FETCH, 8, 1, {"groups": []})
    forged = message[:-2] + varint_bytes(1_000_001) + bytes(1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage, match="an array of 1000000 elements in 1000000 bytes"):
            decode_response(OFFSET_FETCH, 8, forged)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_any_negative_length_is_null_as_java_reads_it() -> None:
    """Kafka's generated readers test a plain length, and a structure's first byte, for being below zero."""
    payload = encode_request(HEARTBEAT, 3, 1, "c", {"group_id": "g", "member_id": "m", "group_instance_id": None})
    answer = encode_response(CONSUMER_GROUP_HEARTBEAT, 0, 1, {"assignment": None})

    assert decode_request(payload[:-2] + b"\xff\xf0").body.group_instance_id is None
    assert decode_response(CONSUMER_GROUP_HEARTBEAT, 0, answer[:-2] + b"\x80\x00")[1].assignment is None
    assert decode_response(CONSUMER_GROUP_HEARTBEAT, 0, answer[:-2] + b"\x07\x01\x00\x00")[1].assignment.topic_partitions == ()


def test_bytes_after_the_end_are_tolerated() -> None:
    payload = encode_request(LIST_GROUPS, 5, 1, "c", {"states_filter": ["Empty"]})

    assert decode_request(payload + b"\x00\x00\x00").body == decode_request(payload).body


def test_unknown_tagged_fields_are_passed_over_wherever_they_stand() -> None:
    values = {
        "group_id": "g",
        "member_id": "m",
        "topics": [{"name": "t", "partitions": [{"partition_index": 1, "committed_offset": 2, "committed_metadata": ""}]}],
    }
    payload = encode_request(OFFSET_COMMIT, 9, 1, "c", values)
    end_of_partition = len(payload) - 3
    unknown = b"\x02" + varint_bytes(7) + varint_bytes(3) + b"abc" + varint_bytes(200) + varint_bytes(0)
    forged = payload[:end_of_partition] + unknown + payload[end_of_partition + 1 : -1] + unknown

    assert decode_request(forged).body == decode_request(payload).body


def test_known_tagged_fields_stay_beside_unknown_ones() -> None:
    values = {
        "cluster_id": "me",
        "replica_state": {"replica_id": 5, "replica_epoch": 6},
        "topics": [],
        "forgotten_topics_data": [],
    }
    payload = encode_request(FETCH, 15, 1, "c", values)
    plain = encode_request(FETCH, 15, 1, "c", {"topics": [], "forgotten_topics_data": []})
    tags = payload[len(plain) :]
    forged = plain[:-1] + b"\x03" + tags + varint_bytes(77) + varint_bytes(1) + b"x"

    assert tags[:1] == b"\x00"
    assert decode_request(forged).body == build(FETCH, 15, "request", values)


def test_a_tagged_field_larger_than_its_size_is_malformed() -> None:
    payload = encode_request(FETCH, 15, 1, "c", {"cluster_id": "abc", "topics": [], "forgotten_topics_data": []})
    position = payload.index(b"\x04abc")
    forged = payload[: position - 1] + b"\x03" + payload[position:]

    with pytest.raises(MalformedMessage, match="tagged field 0"):
        decode_request(forged)


def test_absent_tagged_fields_have_their_defaults() -> None:
    body = decode_request(encode_request(FETCH, 15, 1, "c", {"topics": [], "forgotten_topics_data": []})).body

    assert body.cluster_id is None
    assert (body.replica_state.replica_id, body.replica_state.replica_epoch) == (-1, -1)


def test_an_unknown_error_code_of_a_response_becomes_unknown_server_error() -> None:
    payload = encode_response(HEARTBEAT, 4, 9, {"error_code": 27}).replace(b"\x00\x1b", b"\x03\xe8")

    assert decode_response(HEARTBEAT, 4, payload)[1].error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_retention_beyond_all_calendars_is_read_as_it_is() -> None:
    payload = encode_request(OFFSET_COMMIT, 2, 1, "c", {"group_id": "g", "retention_time_ms": 2**63 - 1, "topics": []})

    assert decode_request(payload).body.retention_time_ms == 2**63 - 1


def test_an_absent_number_is_written_as_kafka_s_default_and_none_is_no_number() -> None:
    values = {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 1, "committed_offset": 4}]}]}
    (topic,) = decode_request(encode_request(OFFSET_COMMIT, 8, 1, "c", values)).body.topics

    assert topic.partitions[0].committed_leader_epoch == -1
    with pytest.raises(struct.error):
        encode_request(HEARTBEAT, 4, 1, "c", {"generation_id": None})


def test_entities_are_shown_with_their_fields() -> None:
    entity = build(HEARTBEAT, 4, "response", {"error_code": 27})

    assert repr(entity) == f"HeartbeatResponse(throttle_time_ms=0, error_code={ErrorCode.REBALANCE_IN_PROGRESS!r})"
    assert entity != build(HEARTBEAT, 4, "response", {})


@pytest.mark.parametrize("value", [0, 1, 126, 127, 128, 16_383, 16_384, 2**28, 2**32 - 1])
def test_varints_are_read_as_written(value: int) -> None:
    data = varint_bytes(value)

    assert read_varint(b"x" + data, 1) == (value, 1 + len(data))


@pytest.mark.parametrize("version", [5, 8])
def test_metadata_may_be_empty_null_or_text_beside_one_another(version: int) -> None:
    numbers = {"committed_offset": 7, "committed_leader_epoch": 3, "error_code": ErrorCode.UNKNOWN_MEMBER_ID}
    texts = ["", "", None, "x", "", "a longer one " * 20, "\0", None, ""]
    partitions = [{"partition_index": number, "metadata": text, **numbers} for number, text in enumerate(texts)]
    topics = [{"name": "orders", "partitions": partitions}]
    values = {"topics": topics} if version < 8 else {"groups": [{"group_id": "g", "topics": topics}]}
    plan, out = load_plan(OFFSET_FETCH, version, "response"), bytearray()
    write(plan, values, out)
    entity = read(plan, bytes(out))
    (topic,) = (entity if version < 8 else entity.groups[0]).topics

    assert [(each.partition_index, each.metadata, each.error_code) for each in topic.partitions] == [
        (number, text, ErrorCode.UNKNOWN_MEMBER_ID) for number, text in enumerate(texts)
    ]
    for end in range(len(out)):
        with pytest.raises(MalformedMessage):
            read(plan, bytes(out[:end]))


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(is_enabled: bool) -> None:
    plan, out = load_plan(OFFSET_FETCH, 8, "response"), bytearray()
    partition = {"partition_index": 1, "committed_offset": 2, "committed_leader_epoch": 3, "metadata": "", "error_code": 0}
    write(plan, {"groups": [{"group_id": "g", "topics": [{"name": "t", "partitions": [partition] * 5_000}]}]}, out)
    assert len(out) > LARGE_BYTES
    before = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        read(plan, bytes(out))
        assert gc.isenabled() is is_enabled
        with pytest.raises(MalformedMessage):
            read(plan, bytes(out[:-1]))
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if before else gc.disable)()
