"""User data of Kafka Streams: what is written is read, what is none is refused; tests/differential/streams has Kafka's."""

from __future__ import annotations

from base64 import b64decode
from uuid import UUID

import pytest

from kgctl.assignors.high_availability import LATEST_OFFSET, NumberedTask
from kgctl.assignors.streams.user_data import (
    UNKNOWN_VERSION,
    AssignmentInfo,
    SubscriptionInfo,
    UserDataError,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
)
from kgctl.model.groups import TopicPartition
from tests.conformance.replay import load
from tests.differential.streams.search import RECORDED

INFO = SubscriptionInfo(
    UUID(int=7), {NumberedTask(0, 1): LATEST_OFFSET, NumberedTask(1, 0): 12}, "größe:80", -1, 3, (("zone", "a"),)
)
ASSIGNED = AssignmentInfo(
    (NumberedTask(0, 1),),
    {NumberedTask(1, 0): (TopicPartition("\U0001f600", 0),)},
    {("h", 80): (TopicPartition("a", 1), TopicPartition("b", 1))},
    {("h", 80): ()},
    1,
    0,
)


def test_subscriptions_are_read_as_they_were_written() -> None:
    assert decode_subscription_info(encode_subscription_info(INFO)) == INFO


def test_assignments_are_read_as_they_were_written() -> None:
    assert decode_assignment_info(encode_assignment_info(ASSIGNED)) == ASSIGNED


def test_kafkas_assignments_are_written_as_they_were_read() -> None:
    """In each version that was recorded."""
    told = [
        b64decode(each[1])
        for case in load(RECORDED)
        if case["kind"] == "classic"
        for each in case["expect"].values()
        if isinstance(each, list)
    ]

    assert [data for data in told if encode_assignment_info(decode_assignment_info(data)) != data] == []
    assert {decode_assignment_info(data).version for data in told} >= {1, 2, 6, 11}


def test_the_first_version_says_who_it_is_and_what_runs() -> None:
    read = decode_subscription_info(encode_subscription_info(SubscriptionInfo(UUID(int=7), INFO.offset_sums, version=1)))

    assert read == SubscriptionInfo(
        UUID(int=7),
        {NumberedTask(0, 1): LATEST_OFFSET, NumberedTask(1, 0): -3},
        version=1,
        latest_supported_version=UNKNOWN_VERSION,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\x0c" + encode_subscription_info(INFO)[4:],
        encode_subscription_info(INFO)[:-1],
        encode_subscription_info(INFO)[:24] + b"\xff" + encode_subscription_info(INFO)[25:],
    ],
)
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(UserDataError):
        decode_subscription_info(data)


@pytest.mark.parametrize("size", range(0, len(encode_assignment_info(ASSIGNED)), 7))
def test_an_assignment_that_ends_too_early_is_refused(size: int) -> None:
    with pytest.raises(UserDataError):
        decode_assignment_info(encode_assignment_info(ASSIGNED)[:size])
