"""Failures, as clients are told them, and which of the fetched batches are sent."""

from __future__ import annotations

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.share.partition import Acquired, AcquiredRecords, FetchedBatch, ShareFailure, persister_failure, sliced


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
        ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"),
        ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"),
        ("GROUP_ID_NOT_FOUND", "GROUP_ID_NOT_FOUND"),
        ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("FENCED_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER"),
        ("FENCED_STATE_EPOCH", "NOT_LEADER_OR_FOLLOWER"),
        ("NETWORK_EXCEPTION", "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_errors_of_the_persister_are_told_as_by_kafka(error: str, told: str) -> None:
    assert persister_failure(ErrorCode[error], "why") == ShareFailure(ErrorCode[told], "why")


@pytest.mark.parametrize("error", ["SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_VERSION"])
def test_how_brokers_talk_to_each_other_is_not_told(error: str) -> None:
    message = "Unable to complete operation due to server error."
    assert persister_failure(ErrorCode[error], "why") == ShareFailure(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def test_some_failures_fence_the_partition() -> None:
    fencing = {error.name for error in ErrorCode if ShareFailure(error).fences}

    assert fencing == {"NOT_LEADER_OR_FOLLOWER", "FENCED_STATE_EPOCH", "GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION"}


@pytest.mark.parametrize(
    ("acquired", "sent"),
    [((0, 19), [0, 5, 10, 15]), ((5, 9), [5]), ((7, 12), [5, 10]), ((10, 10), [10]), ((19, 19), [15])],
)
def test_batches_with_acquired_records_are_sent(acquired: tuple[int, int], sent: list[int]) -> None:
    batches = [FetchedBatch(first, first + 4) for first in (0, 5, 10, 15)]
    found = Acquired((AcquiredRecords(*acquired, 1),), 1)

    assert [each.base_offset for each in batches[sliced(batches, found)]] == sent
