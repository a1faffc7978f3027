"""User data of Kafka Streams; that the bytes are Kafka's is in tests/conformance/assignors/test_kafka_task_assignor.py."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.serde.streams_protocol import (
    AssignmentInfo,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
)

PROCESS = UUID("7c9e6679-7425-40de-944b-e07fc1f90ae7")
SUBSCRIPTION = (
    "0000000b0000000b7c9e6679742540de944be07fc1f90ae70000000000000001000000000000000300000000000000c8ffff070000000000000000"
)


def test_a_subscription_says_how_far_states_are() -> None:
    data = encode_subscription_info(PROCESS, [((0, 3), 200)], 7)
    assert data.hex() == SUBSCRIPTION
    assert decode_subscription_info(data) == (PROCESS, {(0, 3): 200})


@pytest.mark.parametrize("cut", [0, 7, 31, 40])
def test_a_subscription_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        decode_subscription_info(bytes.fromhex(SUBSCRIPTION)[:cut])


def test_a_subscription_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="has version 12; 11 is known"):
        decode_subscription_info(b"\0\0\0\x0c" + bytes.fromhex(SUBSCRIPTION)[4:])


def test_an_assignment_is_read_as_it_was_written() -> None:
    info = AssignmentInfo(((0, 1), (0, 1)), (((1, 0), (("a", 0), ("b", 0))),), 5)
    assert decode_assignment_info(encode_assignment_info(info)) == info
