"""What must never reach kio, and what is cut out on the way."""

from __future__ import annotations

import pytest

from kgctl.serde.frames import MalformedMessage
from kgctl.serde.guard import KNOWN_ERROR_CODES, guarded, read_varint, varint
from kgctl.serde.messages import decode_request, decode_response, encode_request, encode_response
from kgctl.serde.schemas import load_plan
from tests.support.wire.builder import build

LIST_GROUPS, HEARTBEAT, FETCH, OFFSET_COMMIT, CONSUMER_GROUP_HEARTBEAT = 16, 12, 1, 8, 68


def body(api_key: int, version: int, data: str) -> bytes:
    """A request's header in front of these body bytes."""
    whole = encode_request(api_key, version, 1, "c", {})
    empty = len(encode_request(api_key, version, 1, "c", {})) - _body_size(api_key, version)
    return whole[:empty] + bytes.fromhex(data)


def _body_size(api_key: int, version: int) -> int:
    from kgctl.serde.encoder import encode

    out = bytearray()
    encode(load_plan(api_key, version, "request"), {}, out)
    return len(out)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (5, "ffffffff7f0000"),  # 34 billion states: this aborts kio's process
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


def test_a_message_without_surprises_is_handed_on_as_it_is() -> None:
    payload = encode_request(HEARTBEAT, 4, 1, "c", {"group_id": "g", "generation_id": 3, "member_id": "m"})
    plan = load_plan(HEARTBEAT, 4, "request")
    start = len(payload) - _body_size(HEARTBEAT, 4) - 2

    safe, position = guarded(plan, payload, start)

    assert safe is payload
    assert position == start


def test_bytes_after_the_end_are_tolerated() -> None:
    payload = encode_request(LIST_GROUPS, 5, 1, "c", {"states_filter": ["Empty"]})

    assert decode_request(payload + b"\x00\x00\x00").body == decode_request(payload).body


def test_unknown_tagged_fields_are_cut_out_wherever_they_stand() -> None:
    values = {
        "group_id": "g",
        "member_id": "m",
        "topics": [{"name": "t", "partitions": [{"partition_index": 1, "committed_offset": 2, "committed_metadata": ""}]}],
    }
    payload = encode_request(OFFSET_COMMIT, 9, 1, "c", values)
    end_of_partition = len(payload) - 3
    unknown = b"\x02" + varint(7) + varint(3) + b"abc" + varint(200) + varint(0)
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
    forged = plain[:-1] + b"\x03" + tags + varint(77) + varint(1) + b"x"

    assert tags[:1] == b"\x00"
    assert decode_request(forged).body == build(FETCH, 15, "request", values)


def test_a_tagged_field_larger_than_its_size_is_malformed() -> None:
    payload = encode_request(FETCH, 15, 1, "c", {"cluster_id": "abc", "topics": [], "forgotten_topics_data": []})
    position = payload.index(b"\x04abc")
    forged = payload[: position - 1] + b"\x03" + payload[position:]

    with pytest.raises(MalformedMessage, match="tagged field 0"):
        decode_request(forged)


def test_an_unknown_error_code_of_a_response_becomes_unknown_server_error() -> None:
    payload = encode_response(HEARTBEAT, 4, 9, {"error_code": 27}).replace(b"\x00\x1b", b"\x03\xe8")

    correlation_id, entity = decode_response(HEARTBEAT, 4, payload)

    assert (correlation_id, int(entity.error_code)) == (9, -1)


def test_error_codes_known_here_are_those_that_kio_knows() -> None:
    from kio.schema.errors import ErrorCode

    assert {code.value.to_bytes(2, "big", signed=True) for code in ErrorCode} == KNOWN_ERROR_CODES


def test_a_retention_beyond_all_calendars_is_the_longest_that_there_is() -> None:
    payload = encode_request(OFFSET_COMMIT, 2, 1, "c", {"group_id": "g", "retention_time_ms": 2**63 - 1, "topics": []})

    assert decode_request(payload).body.retention_time.days == 106_751_991


def test_a_null_structure_is_read_and_a_wrong_marker_is_malformed() -> None:
    payload = encode_response(CONSUMER_GROUP_HEARTBEAT, 0, 1, {"assignment": None})

    assert decode_response(CONSUMER_GROUP_HEARTBEAT, 0, payload)[1].assignment is None

    with pytest.raises(MalformedMessage):
        decode_response(CONSUMER_GROUP_HEARTBEAT, 0, payload[:-2] + b"\x07\x00")


@pytest.mark.parametrize("value", [0, 1, 126, 127, 128, 16_383, 16_384, 2**28, 2**32 - 1])
def test_varints_are_read_as_written(value: int) -> None:
    data = varint(value)

    assert read_varint(b"x" + data, 1) == (value, 1 + len(data))
