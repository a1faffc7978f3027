"""A member of a share group: how it joins, takes what it is assigned, and leaves."""

from __future__ import annotations

from itertools import count
from random import Random
from uuid import UUID

import pytest

from kgctl.member.api import (
    Action,
    Closed,
    Failed,
    FindCoordinator,
    FindCoordinatorResult,
    MemberIdentity,
    MemberState,
    RefreshMetadata,
    Send,
    StartConsuming,
    StopConsuming,
    StopReason,
)
from kgctl.member.config import MemberConfig
from kgctl.member.share_member import REFUSED, ShareConsumerMember
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicMetadata, TopicPartition
from kgctl.model.share_requests import ShareGroupHeartbeat
from kgctl.model.share_results import ShareGroupHeartbeatResult

TOPIC = UUID(int=7)
S = 1_000_000


class Driven:
    """A member, and a coordinator that says what a test says."""

    def __init__(self, **properties: str) -> None:
        config = MemberConfig.from_properties(properties)
        identity = MemberIdentity(name="a", group_id="g", topics=("t",))
        self.member = ShareConsumerMember(config, identity, Random(1), lambda _, __: {}, count())
        self.sent: list[ShareGroupHeartbeat] = []
        self.other: list[Action] = []

    def act(self, actions: list[Action], now_us: int) -> None:
        for action in actions:
            if isinstance(action, Send):
                assert isinstance(action.request, ShareGroupHeartbeat)
                self.sent.append(action.request)
            elif isinstance(action, FindCoordinator):
                self.act(self.member.on_reply(action.correlation_id, FindCoordinatorResult(), now_us), now_us)
            elif isinstance(action, RefreshMetadata):
                image = MetadataImage({"t": TopicMetadata("t", TOPIC, 4)}, 1)
                self.act(self.member.on_metadata(image, now_us), now_us)
            else:
                self.other.append(action)

    def answer(self, now_us: int, epoch: int, gets: tuple[int, ...] | None = None, error: ErrorCode = ErrorCode.NONE) -> None:
        assignment = None if gets is None else ((TOPIC, gets),)
        result = ShareGroupHeartbeatResult(
            error=error, member_id="a", member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=assignment
        )
        self.act(self.member.on_reply(self.sent[-1].request_id, result, now_us), now_us)

    def joined(self) -> Driven:
        self.act(self.member.start(0), 0)
        self.act(self.member.poll(0), 0)
        self.answer(1_000, 1, (0, 2))
        return self


def partitions(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


def test_it_joins_with_its_topics_and_takes_what_it_gets_at_once() -> None:
    driven = Driven().joined()
    first, second = driven.sent
    assert (first.member_epoch, first.subscribed_topic_names) == (0, ("t",))
    assert driven.other == [StartConsuming(dict.fromkeys(partitions(0, 2), 0))]
    assert (second.member_epoch, second.subscribed_topic_names) == (1, None)  # at once: the assignment is taken
    assert driven.member.consumed_partitions == partitions(0, 2)
    driven.answer(2_000, 1)
    assert driven.member.state is MemberState.STABLE


def test_another_assignment_needs_no_poll() -> None:
    driven = Driven().joined()
    driven.answer(2_000, 2, (2, 3))
    assert driven.other[1:] == [
        StopConsuming(partitions(0), StopReason.REVOKED),
        StartConsuming(dict.fromkeys(partitions(3), 0)),
    ]
    assert driven.member.owned_partitions == partitions(2, 3)


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_one_that_is_cast_out_loses_everything_and_joins_anew(error: ErrorCode) -> None:
    driven = Driven().joined()
    driven.answer(2_000, 0, error=error)
    assert driven.other[1:] == [StopConsuming(partitions(0, 2), StopReason.LOST)]
    assert (driven.sent[-1].member_epoch, driven.sent[-1].subscribed_topic_names) == (0, ("t",))
    assert driven.sent[-1].member_id == driven.sent[0].member_id


def test_past_its_poll_interval_it_leaves_with_the_next_beat_and_joins_at_the_next_poll() -> None:
    driven = Driven(**{"max.poll.interval.ms": "10000"}).joined()
    driven.answer(2_000, 1)
    driven.act(driven.member.application_busy(0), 0)
    while (due := driven.member.next_deadline_us()) is not None and due <= 16 * S:
        before = len(driven.sent)
        driven.act(driven.member.expire(due), due)
        if len(driven.sent) > before and driven.sent[-1].member_epoch >= 0:
            driven.answer(due, 1)
    assert driven.sent[-1].member_epoch == -1
    assert driven.other[-1] == StopConsuming(partitions(0, 2), StopReason.POLL_TIMEOUT)
    driven.act(driven.member.poll(20 * S), 20 * S)
    assert driven.sent[-1].member_epoch == 0


def test_closing_leaves_the_group() -> None:
    driven = Driven().joined()
    driven.answer(2_000, 1)
    driven.act(driven.member.close(S), S)
    assert (driven.sent[-1].member_epoch, driven.other[-1]) == (-1, StopConsuming(partitions(0, 2), StopReason.CLOSED))
    driven.answer(S + 1_000, -1)
    due = driven.member.next_deadline_us()
    if due is not None:
        driven.act(driven.member.expire(due), due)
    assert driven.other[-1] == Closed()


def test_it_does_not_start_with_settings_that_share_consumers_have_not() -> None:
    for name, value in (("auto.offset.reset", "earliest"), ("group.protocol", "consumer"), ("session.timeout.ms", "30000")):
        assert name in REFUSED
        driven = Driven(**{name: value})
        driven.act(driven.member.start(0), 0)
        assert driven.other == [Failed("INVALID_CONFIG", f"{name} cannot be set when using a share group.")]
