"""Commits and fetches of members of the consumer protocol: epochs of now, of before (KIP-1251), and of nobody."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    OffsetCommit,
    OffsetCommitPartition,
    OffsetFetch,
    OffsetFetchResult,
    PartitionErrors,
    TxnOffsetCommit,
)
from tests.unit.coordinator.consumer.beats import A, B, Group

NONE, STALE, UNKNOWN = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID


def commit(group: Group, epoch: int, *numbers: int, member_id: str = "m1", **fields: Any) -> ErrorCode:
    """The one error of a commit of these partitions of topic a."""
    partitions = tuple(OffsetCommitPartition(topic="a", partition=number, offset=7, topic_id=A) for number in numbers)
    said = {"api_version": 9, "group_id": "g", "member_id": member_id, "generation_id": epoch, "partitions": partitions, **fields}
    result = group.harness.send(OffsetCommit, **said).result(PartitionErrors)
    errors = {error for _, error in result.partitions}
    assert len(errors) == 1
    return errors.pop()


def moved_on() -> Group:
    """m1 has 0 and 1 since epoch 2 and is at 4 with 2 and 3 besides, since then."""
    group = Group()
    group.beat("m1")
    group.beat("m2")
    group.beat("m1", 2, 0, 1, 2, 3)
    group.beat("m1", 2, 0, 1)
    group.beat("m2", -1)
    group.beat("m1", 3, 0, 1)
    assert group.state.members["m1"].member_epoch == 4
    assert group.state.members["m1"].assigned == {A: {0: 2, 1: 2, 2: 4, 3: 4}}
    return group


@pytest.mark.parametrize(
    ("epoch", "numbers", "error"),
    [
        (4, (0, 1, 2, 3), NONE),
        (4, (9,), NONE),
        (5, (0,), STALE),
        (3, (0, 1), NONE),
        (2, (0, 1), NONE),
        (1, (0,), STALE),
        (3, (0, 2), STALE),
        (3, (9,), STALE),
        (-1, (0,), STALE),
    ],
)
def test_an_older_epoch_counts_for_what_was_owned_since_then(epoch: int, numbers: tuple[int, ...], error: ErrorCode) -> None:
    group = moved_on()

    assert commit(group, epoch, *numbers) is error
    committed = {f"a-{number}" for number in numbers} if error is NONE else set()
    assert group.harness.offsets().keys() == committed


def test_it_counts_for_what_is_being_given_up_too() -> None:
    group = Group()
    group.beat("m1")
    group.beat("m1", 2, 0, 1, 2, 3, subscribed_topic_names=("a", "b"))
    group.beat("m2", subscribed_topic_names=("a", "b"))
    group.beat("m1", 3, 0, 1, 2, 3)
    assert group.state.members["m1"].pending_revocation[A]
    revoked = min(group.state.members["m1"].pending_revocation[A])

    assert commit(group, 2, revoked) is NONE


def test_the_topic_must_be_the_same_one() -> None:
    group = moved_on()
    other = (OffsetCommitPartition(topic="a", partition=0, offset=7, topic_id=B),)

    assert commit(group, 3, 0, partitions=other) is STALE


def test_a_transaction_finds_the_topic_by_its_name_and_knows_no_stale_epoch() -> None:
    group = moved_on()

    def txn_commit(epoch: int, topic: str, number: int) -> ErrorCode:
        partitions = (OffsetCommitPartition(topic=topic, partition=number, offset=7),)
        said = {"group_id": "g", "producer_id": 1, "member_id": "m1", "generation_id": epoch, "partitions": partitions}
        return group.harness.send(TxnOffsetCommit, **said).result(PartitionErrors).partitions[0][1]

    assert txn_commit(3, "a", 0) is NONE
    assert txn_commit(3, "a", 2) is ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(3, "gone", 0) is ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(5, "a", 0) is ErrorCode.ILLEGAL_GENERATION


def test_who_commits_matters() -> None:
    group = moved_on()

    assert commit(group, 4, 0, member_id="nobody") is UNKNOWN
    assert commit(group, -1, 0, member_id="") is UNKNOWN
    assert commit(group, 4, 0, api_version=8) is ErrorCode.UNSUPPORTED_VERSION
    group.beat("m1", -1)
    assert commit(group, -1, 0, member_id="") is NONE


def test_a_member_that_is_away_for_a_while_cannot_commit() -> None:
    group = Group()
    group.beat("m1", instance_id="i")
    group.beat("m1", -2, instance_id="i")

    assert commit(group, 2, 0) is STALE
    assert commit(group, -2, 0) is NONE


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, NONE),
        ("m1", 4, NONE),
        ("m1", 3, STALE),
        ("m1", 5, STALE),
        ("nobody", 4, UNKNOWN),
        ("", -1, UNKNOWN),
        (None, 4, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_fetch_needs_the_epoch_of_now(member_id: str | None, epoch: int, error: ErrorCode) -> None:
    call = moved_on().harness.send(OffsetFetch, group_id="g", partitions=None, member_id=member_id, member_epoch=epoch)

    assert call.result(OffsetFetchResult).error is error
