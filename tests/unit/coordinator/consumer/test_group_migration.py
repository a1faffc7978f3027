"""Classic groups that become consumer groups, and back; both kinds of members in one group."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult
from tests.support.coordinator_harness import CoordinatorHarness

TOPICS = {"t": 2}


def come(harness: CoordinatorHarness, member_id: str = "m", epoch: int = 0) -> ConsumerGroupHeartbeatResult:
    """A member of the consumer protocol joins or, with -1, leaves."""
    fields: dict[str, Any] = {"rebalance_timeout_ms": 5_000, "subscribed_topic_names": ("t",), "topic_partitions": ()}
    call = harness.send(ConsumerGroupHeartbeat, api_version=1, group_id="g", member_id=member_id, member_epoch=epoch, **fields)
    return call.result(ConsumerGroupHeartbeatResult)


def classic_group(config: dict[str, str] | None = None) -> tuple[CoordinatorHarness, str]:
    """A coordinator with a stable classic group of one member, whose assignment holds no partition."""
    harness = CoordinatorHarness({"group.initial.rebalance.delay.ms": "0", **(config or {})}, topics=TOPICS)
    joined = harness.join(version=3).join
    harness.sync(joined.member_id, joined.generation_id, assignments={joined.member_id: b""})
    return harness, joined.member_id


def test_the_first_member_of_the_new_protocol_upgrades_the_group() -> None:
    harness, old = classic_group()

    result = come(harness)

    group = harness.any_group("g")
    assert isinstance(group, ConsumerGroup)
    assert result.error is ErrorCode.NONE
    assert set(group.members) == {old, "m"}
    assert group.members[old].uses_classic_protocol
    assert harness.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_reload_keeps_a_mixed_group() -> None:
    harness, _ = classic_group()
    come(harness)
    before = harness.driver.coordinator.durable()

    harness.driver.reload()

    assert harness.driver.coordinator.durable() == before


def test_the_last_member_of_the_new_protocol_takes_the_upgrade_with_it() -> None:
    harness, old = classic_group()
    come(harness)

    assert come(harness, epoch=-1).error is ErrorCode.NONE

    assert list(harness.group().members) == [old]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_policy_may_forbid_the_upgrade(policy: str) -> None:
    harness, _ = classic_group({"group.consumer.migration.policy": policy})

    result = come(harness)

    assert result.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert result.error_message == "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    assert isinstance(harness.any_group("g"), ClassicGroup)


def test_without_downgrades_the_classic_members_stay_in_the_consumer_group() -> None:
    harness, old = classic_group({"group.consumer.migration.policy": "upgrade"})
    come(harness)

    come(harness, epoch=-1)

    group = harness.any_group("g")
    assert isinstance(group, ConsumerGroup)
    assert list(group.members) == [old]


def test_an_empty_classic_group_is_replaced_whatever_the_policy() -> None:
    harness, old = classic_group({"group.consumer.migration.policy": "disabled"})
    harness.leave(old)

    assert come(harness).error is ErrorCode.NONE

    assert isinstance(harness.any_group("g"), ConsumerGroup)


def test_a_join_timer_that_outlives_a_downgrade_and_an_upgrade_does_no_harm() -> None:
    harness = CoordinatorHarness({"group.initial.rebalance.delay.ms": "0"}, topics=TOPICS)
    come(harness)
    harness.join(instance="i")
    come(harness, "n")
    come(harness, "n", epoch=-1)

    harness.sleep_ms(200_000)

    assert harness.any_group("g") is not None
