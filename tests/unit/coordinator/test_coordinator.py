"""The four calls, loading and unloading."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import HANDLERS, RETRY_MS, TIMERS, GroupCoordinator
from kgctl.coordinator.effects import GroupFailed, Reply, refuse
from kgctl.coordinator.timers import TimerKind
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue, TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, TopicPartition
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResult,
    DeleteGroups,
    DeleteGroupsResult,
    DescribeGroups,
    DescribeGroupsResult,
    Done,
    EndTransaction,
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    JoinProtocol,
    ListGroups,
    ListGroupsResult,
    OffsetCommit,
    OffsetCommitPartition,
    OffsetFetch,
    OffsetFetchResult,
    PartitionErrors,
    Request,
)
from tests.support.coordinator_harness import CoordinatorHarness


def new_coordinator() -> GroupCoordinator:
    """A coordinator whose ids are all the same."""
    return GroupCoordinator(CoordinatorConfig(), lambda prefix: f"{prefix}-id")


def test_every_request_has_a_handler_and_every_timer_a_function() -> None:
    assert {request.__name__ for request in HANDLERS} == {request.__name__ for request in Request.__subclasses__()}
    assert set(TIMERS) == set(TimerKind)


def test_an_expiry_cycle_is_the_first_deadline() -> None:
    assert new_coordinator().next_deadline_ms() == 600_000


def test_due_timers_fire_before_a_request_of_the_same_instant() -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group()
    beat = Heartbeat(request_id=99, group_id="g", generation_id=1, member_id=member)

    effects = harness.driver.coordinator.handle(beat, harness.now_ms + 10_000)

    assert effects[-1] == Reply(99, HeartbeatResult(error=ErrorCode.UNKNOWN_MEMBER_ID))


def test_a_late_call_fires_each_timer_at_its_own_time() -> None:
    harness = CoordinatorHarness()
    harness.join(version=3)

    harness.driver.coordinator.expire(500_000)

    value = harness.group().recorded
    assert value is not None
    assert (harness.group().state, value.current_state_timestamp_ms) == ("Empty", 13_000)


def test_a_timer_that_fails_is_its_own_groups_alone() -> None:
    harness = CoordinatorHarness()
    coordinator, shard = harness.driver.coordinator, harness.driver.coordinator.shard
    for request_id, group_id in ((1, "broken"), (2, "sound")):
        request = JoinGroup(request_id=request_id, group_id=group_id, api_version=3, session_timeout_ms=9_000)
        coordinator.handle(
            replace(request, protocol_type="consumer", protocols=(JoinProtocol(name="range", metadata=b""),)), harness.now_ms
        )
    broken = shard.groups["broken"]
    assert isinstance(broken, ClassicGroup)
    broken.supported_protocols.clear()

    effects = coordinator.handle(ListGroups(request_id=3), harness.now_ms + 3_000)

    failed = [effect for effect in effects if isinstance(effect, GroupFailed)]
    results = {effect.request_id: effect.result for effect in effects if isinstance(effect, Reply)}
    assert [(effect.group_id, effect.error.story[-1].endswith("rebalance starts 0")) for effect in failed] == [("broken", True)]
    assert {number: getattr(result, "error", None) for number, result in results.items()} == {
        1: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        2: ErrorCode.NONE,
        3: ErrorCode.NONE,
    }

    broken.supported_protocols.update(["range"])
    coordinator.expire(harness.now_ms + 3_000 + RETRY_MS)

    assert broken.state is GroupState.EMPTY


def test_a_protocol_that_is_offered_twice_counts_once() -> None:
    harness = CoordinatorHarness()
    harness.join(version=3, protocols=("range", "range"))
    harness.sleep_ms(3_000)

    assert (harness.group().state, harness.group().protocol_name) == (GroupState.COMPLETING_REBALANCE, "range")


def test_the_clock_does_not_go_back() -> None:
    coordinator = new_coordinator()
    coordinator.expire(500)

    coordinator.handle(JoinGroup(request_id=1, group_id="g", client_id="c"), 400)

    assert coordinator.shard.now_ms == 500


def test_while_its_log_is_read_a_coordinator_only_comforts_heartbeats() -> None:
    coordinator = new_coordinator()
    coordinator.replay(CoordinatorRecord(GroupMetadataKey("g"), GroupMetadataValue("", 0, None, None)))

    beat = coordinator.handle(Heartbeat(request_id=1, group_id="g", generation_id=1, member_id="m"), 0)
    listed = coordinator.handle(ListGroups(request_id=2), 0)

    assert beat == [Reply(1, HeartbeatResult())]
    assert listed == [Reply(2, ListGroupsResult(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))]
    coordinator.loaded(5)
    assert coordinator.handle(ListGroups(request_id=3), 5) != listed


def test_a_marker_in_the_log_ends_a_transaction() -> None:
    harness = CoordinatorHarness()
    harness.txn_commit(9, {"t-0": 1})
    coordinator = new_coordinator()
    for entry in harness.log:
        assert isinstance(entry.record, CoordinatorRecord)
        coordinator.replay(entry.record, producer_id=entry.producer_id)
    coordinator.replay(TransactionMarker(9, 0, committed=True))

    harness.end_txn(9)
    assert coordinator.durable() == harness.driver.coordinator.durable()


def test_once_unloaded_it_sends_everybody_away() -> None:
    coordinator = new_coordinator()
    coordinator.handle(JoinGroup(request_id=1, group_id="g", client_id="c"), 0)
    assert coordinator.unload(5) == []

    assert coordinator.next_deadline_ms() is None
    reply = coordinator.handle(OffsetFetch(request_id=2, group_id="g"), 6)
    assert reply == [Reply(2, OffsetFetchResult(group_id="g", error=ErrorCode.NOT_COORDINATOR))]


def test_a_fault_of_the_core_comes_with_the_group_s_story() -> None:
    harness = CoordinatorHarness()
    harness.stable_group()
    harness.group().static_members["i"] = "ghost"

    with pytest.raises(InvariantViolation, match=r"JoinGroup\(.*failed with KeyError[^ ]*\n(.*\n)+.*rebalance starts 0"):
        harness.join(instance="i")


def test_what_a_group_itself_finds_wrong_has_the_story_too(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group()
    monkeypatch.setitem(HANDLERS, Heartbeat, lambda shard, _: shard.groups["g"].transition_to(GroupState.COMPLETING_REBALANCE, 0))

    with pytest.raises(InvariantViolation, match="cannot go from Stable to CompletingRebalance") as caught:
        harness.heartbeat(member, 1)
    assert any("stable, generation 1" in line for line in caught.value.story)


def test_a_fault_in_a_timer_is_told_too() -> None:
    harness = CoordinatorHarness()
    harness.join(version=3)
    harness.group().members["c-1"].protocols = ()

    failed = [effect for effect in harness.driver.coordinator.expire(3_000) if isinstance(effect, GroupFailed)]

    (message,) = [effect.error.message for effect in failed]
    assert "kind=<TimerKind.JOIN: 'join'>" in message
    assert "failed with" in message


def test_strangers_leave_no_trace() -> None:
    harness = CoordinatorHarness()
    for number in range(100):
        harness.commit({"t-0": 1}, "m", 3, group=f"g{number}")
        harness.leave("m", group=f"g{number}")

    assert not harness.shard.story.group_ids()


@pytest.mark.parametrize(
    ("request_", "result"),
    [
        (
            OffsetCommit(request_id=1, group_id="g", partitions=(OffsetCommitPartition(topic="t", partition=0, offset=1),)),
            PartitionErrors(partitions=((TopicPartition("t", 0), ErrorCode.NOT_COORDINATOR),)),
        ),
        (EndTransaction(request_id=1, producer_id=1), Done(error=ErrorCode.NOT_COORDINATOR)),
    ],
)
def test_a_refusal_fits_its_request(request_: Request, result: object) -> None:
    assert refuse(request_, ErrorCode.NOT_COORDINATOR) == result


def test_requests_for_several_groups_are_refused_group_by_group() -> None:
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    described = refuse(DescribeGroups(request_id=1, group_ids=("a", "b")), error)
    consumers = refuse(ConsumerGroupDescribe(request_id=1, group_ids=("a",)), error)

    assert isinstance(described, DescribeGroupsResult)
    assert [(group.group_id, group.error) for group in described.groups] == [("a", error), ("b", error)]
    assert isinstance(consumers, ConsumerGroupDescribeResult)
    assert [(group.group_id, group.error) for group in consumers.groups] == [("a", error)]
    assert refuse(DeleteGroups(request_id=1, group_ids=("a",)), error) == DeleteGroupsResult(groups=(("a", error),))
