"""Headers and bodies, whole and damaged."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.serde.frames import MalformedMessage, UnsupportedVersion
from kgctl.serde.messages import decode_request, decode_response, encode_request, encode_response

API_VERSIONS, HEARTBEAT, LIST_OFFSETS, DELETE_GROUPS, DESCRIBE_GROUPS = 18, 12, 2, 42, 15


def test_a_request_of_a_version_without_schema_says_what_an_answer_needs() -> None:
    payload = bytes.fromhex("00120063000000070000")
    with pytest.raises(UnsupportedVersion) as caught:
        decode_request(payload)

    assert (caught.value.api_key, caught.value.version, caught.value.correlation_id) == (18, 99, 7)


def test_an_unknown_api_is_unsupported() -> None:
    with pytest.raises(UnsupportedVersion):
        decode_request(bytes.fromhex("7fff0000000000070000"))


@pytest.mark.parametrize("payload", ["", "00", "00120000000000", "0012000000000007fffe", "00120000000000070005616263"])
def test_a_damaged_header_is_malformed(payload: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_request(bytes.fromhex(payload))


def test_a_client_id_that_is_not_text_is_read_as_java_reads_it() -> None:
    assert decode_request(bytes.fromhex("001200000000000700 01ff")).client_id == "\ufffd"


@pytest.mark.parametrize("version", [1, 2])
def test_text_that_is_no_utf_8_is_read_as_java_reads_it(version: int) -> None:
    """In both forms of text, and what follows is not disturbed by the other length."""
    payload = encode_request(DELETE_GROUPS, version, 5, "c", {"groups_names": ["ab....f", "whole"]})

    body = decode_request(payload.replace(b"ab....f", b"ab\xff\xff\xe2\x82f")).body

    assert body.groups_names == ("ab\ufffd\ufffd\ufffdf", "whole")


def test_every_byte_but_0_is_true() -> None:
    payload = encode_request(DESCRIBE_GROUPS, 4, 5, "c", {"groups": ["g"], "include_authorized_operations": True})

    assert decode_request(payload[:-1] + b"\xff").body.include_authorized_operations is True


def test_a_text_that_grows_too_long_is_malformed() -> None:
    payload = encode_request(DELETE_GROUPS, 1, 5, "c", {"groups_names": ["." * 20_000]})

    with pytest.raises(MalformedMessage, match="60000 bytes"):
        decode_request(payload.replace(b"." * 20_000, b"\xff" * 20_000))


def test_a_null_client_id_stays_none() -> None:
    assert decode_request(encode_request(API_VERSIONS, 0, 5, None, {})).client_id is None


def test_tagged_fields_of_a_header_are_ignored() -> None:
    payload = encode_request(HEARTBEAT, 4, 5, "c", {"group_id": "g", "member_id": "m"})
    end_of_client_id = 11
    forged = payload[:end_of_client_id] + b"\x01\x63\x02ab" + payload[end_of_client_id + 1 :]

    assert decode_request(forged).body == decode_request(payload).body


def test_the_header_of_an_api_versions_response_has_no_tags() -> None:
    assert encode_response(API_VERSIONS, 3, 5, {}).hex().startswith("00000005" + "0000" + "01")


def test_list_offsets_version_0_is_there_and_back() -> None:
    values = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 3, "old_style_offsets": [7, 0]}]}]}
    _, entity = decode_response(LIST_OFFSETS, 0, encode_response(LIST_OFFSETS, 0, 1, values))

    assert entity.topics[0].partitions[0].old_style_offsets == (7, 0)


def test_times_are_milliseconds_under_kafka_s_name() -> None:
    assert (
        decode_response(HEARTBEAT, 4, encode_response(HEARTBEAT, 4, 1, {"throttle_time_ms": 1_500}))[1].throttle_time_ms == 1_500
    )


def test_null_becomes_the_empty_value_in_versions_without_null() -> None:
    values: dict[str, Any] = {"protocol_name": None, "leader": "", "member_id": "", "members": []}

    assert decode_response(11, 6, encode_response(11, 6, 1, values))[1].protocol_name == ""
    assert decode_response(11, 7, encode_response(11, 7, 1, values))[1].protocol_name is None


@pytest.mark.parametrize("payload", ["", "000000", "00000001"])
def test_a_damaged_response_is_malformed(payload: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_response(HEARTBEAT, 4, bytes.fromhex(payload))
