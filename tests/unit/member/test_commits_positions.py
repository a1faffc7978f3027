"""Where reading begins, and when automatic commits come."""

from __future__ import annotations

from itertools import count
from random import Random  # the seeded source that members are handed

import pytest

from kgctl.member.api import FindCoordinatorResult, ListOffsets, ListOffsetsResult, MemberIdentity, Send, StartConsuming
from kgctl.member.commits import AUTO_COMMIT, POSITIONS, Committer, Positions
from kgctl.member.config import MemberConfig
from kgctl.member.runtime import MemberConnection, Runtime
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import FetchedOffset, OffsetFetch, OffsetFetchResult

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Reader:
    """Positions of a member that has found its coordinator."""

    def __init__(self, policy: str = "earliest") -> None:
        config = MemberConfig(auto_offset_reset=policy)
        self.runtime = Runtime(MemberIdentity(name="m", group_id="g"), config, Random(1), lambda _p, _t: {})
        self.connection = MemberConnection(self.runtime, count(1), lambda: None)
        self.connection.find()
        self.connection.answer(1, FindCoordinatorResult())
        self.positions = Positions(self.runtime, self.connection, lambda: ("id", 7))
        self.runtime.take_actions()

    def step(self) -> list[object]:
        """All steps that there are; what they led to."""
        while (step := self.positions.step()) is not None:
            step()
        return list(self.runtime.take_actions())

    def fetched(self, **offsets: int) -> OffsetFetchResult:
        names = {"a": A, "b": B}
        return OffsetFetchResult(
            group_id="g", offsets=tuple(FetchedOffset(partition=names[name], offset=at) for name, at in offsets.items())
        )


def test_committed_offsets_are_where_reading_begins() -> None:
    reader = Reader()
    reader.positions.own([B, A])
    (sent,) = reader.step()
    assert isinstance(sent, Send)
    assert isinstance(sent.request, OffsetFetch)
    assert (sent.request.partitions, sent.request.member_id, sent.request.member_epoch) == ((A, B), "id", 7)
    reader.connection.answer(sent.correlation_id, reader.fetched(a=5, b=0))

    assert reader.step() == [StartConsuming({A: 5, B: 0})]
    assert reader.positions.is_settled
    assert reader.positions.consumed == {A, B}


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_partitions_without_a_commit_begin_where_the_reset_policy_says(policy: str) -> None:
    reader = Reader(policy)
    reader.positions.own([A, B])
    (sent,) = reader.step()
    assert isinstance(sent, Send)
    reader.connection.answer(sent.correlation_id, reader.fetched(a=5, b=-1))
    started, listed = reader.step()
    assert started == StartConsuming({A: 5})
    assert isinstance(listed, ListOffsets)
    assert (listed.partitions, listed.strategy) == ((B,), policy)
    reader.connection.answer(listed.correlation_id, ListOffsetsResult({B: 9}))

    assert reader.step() == [StartConsuming({B: 9})]


def test_without_a_reset_policy_there_is_no_start() -> None:
    reader = Reader("none")
    reader.positions.own([A])
    (sent,) = reader.step()
    assert isinstance(sent, Send)
    reader.connection.answer(sent.correlation_id, reader.fetched(a=-1))
    reader.step()

    assert reader.positions.has_no_start


@pytest.mark.parametrize("error", [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.NOT_COORDINATOR])
def test_refused_fetch_is_tried_again(error: ErrorCode) -> None:
    reader = Reader()
    reader.positions.own([A])
    (sent,) = reader.step()
    assert isinstance(sent, Send)
    reader.connection.answer(sent.correlation_id, OffsetFetchResult(group_id="g", error=error))

    assert reader.runtime.deadlines.at(POSITIONS) == 100_000
    assert reader.connection.is_known is (error is not ErrorCode.NOT_COORDINATOR)
    assert not reader.positions.is_settled


def test_partition_that_was_given_up_meanwhile_is_not_started() -> None:
    reader = Reader()
    reader.positions.own([A, B])
    (sent,) = reader.step()
    assert isinstance(sent, Send)
    reader.positions.drop([A])
    reader.positions.own([A])  # and is owned again: its position is asked for again
    reader.connection.answer(sent.correlation_id, reader.fetched(a=5, b=6))
    started, again = reader.step()

    assert started == StartConsuming({B: 6})
    assert isinstance(again, Send)
    assert isinstance(again.request, OffsetFetch)
    assert again.request.partitions == (A,)


def test_drop_names_only_what_was_read() -> None:
    reader = Reader()
    reader.positions.own([A, B])
    (sent,) = reader.step()
    assert isinstance(sent, Send)
    reader.connection.answer(sent.correlation_id, reader.fetched(a=5))
    reader.step()

    assert reader.positions.drop([A, B]) == (A,)
    assert reader.positions.is_settled


@pytest.mark.parametrize(("client", "next_s"), [("java", 12), ("librdkafka", 10)])
def test_a_rebalance_puts_off_the_automatic_commit_of_java_and_not_that_of_librdkafka(client: str, next_s: int) -> None:
    runtime = Runtime(
        MemberIdentity(name="m", group_id="g"), MemberConfig.from_properties({}, client), Random(1), lambda _p, _t: {}
    )
    connection = MemberConnection(runtime, count(1), lambda: None)
    committer = Committer(runtime, connection, lambda: ErrorCode.UNKNOWN_MEMBER_ID, lambda _error, _sent: None)
    committer.restart_timer()
    runtime.now_us = 7_000_000
    committer.restart_timer()
    assert runtime.deadlines.at(AUTO_COMMIT) == next_s * 1_000_000
