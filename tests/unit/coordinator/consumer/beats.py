"""A group of the consumer protocol in tests: heartbeats in a few words."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.modern.member import MemberState
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult
from tests.support.coordinator_harness import CoordinatorHarness, image_of

TOPICS = {"a": 4, "b": 2}
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}
A, B = (image_of(TOPICS).topics[name].topic_id for name in ("a", "b"))
JOIN = {"member_epoch": 0, "rebalance_timeout_ms": 5_000, "subscribed_topic_names": ("a",), "topic_partitions": ()}


class Group:
    """A coordinator and shorthands for heartbeats."""

    def __init__(self, config: dict[str, str] | None = None) -> None:
        self.harness = CoordinatorHarness(AT_ONCE if config is None else config, topics=TOPICS)

    def beat(self, member_id: str, epoch: int = 0, *owned: int, **fields: Any) -> ConsumerGroupHeartbeatResult:
        """A heartbeat of a member that owns these partitions of topic a."""
        said: dict[str, Any] = {"member_epoch": epoch, "topic_partitions": ((A, owned),) if owned else (), **fields}
        if epoch == 0:
            said = {**JOIN, **fields}
        call = self.harness.send(ConsumerGroupHeartbeat, api_version=1, group_id="g", member_id=member_id, **said)
        return call.result(ConsumerGroupHeartbeatResult)

    @property
    def state(self) -> ConsumerGroup:
        """The group."""
        group = self.harness.any_group("g")
        assert isinstance(group, ConsumerGroup)
        return group

    def stands(self, member_id: str) -> tuple[int, MemberState, tuple[int, ...]]:
        """Epoch, state and partitions of topic a of a member."""
        member = self.state.members[member_id]
        return member.member_epoch, member.state, tuple(sorted(member.assigned.get(A, ())))
