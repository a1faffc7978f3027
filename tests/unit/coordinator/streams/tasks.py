"""A streams group in tests: heartbeats in a few words."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import StreamsMember
from kgctl.model.requests import TopicsChanged
from kgctl.model.streams_records import TaskIds
from kgctl.model.streams_requests import StreamsGroupDescribe, StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupDescribedGroup, StreamsGroupDescribeResult, StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import DeclaredSubtopology, StreamsTopology, TopicInfo
from tests.support.coordinator_harness import CoordinatorHarness, image_of

TOPICS = {"a": 4, "b": 2}
AT_ONCE = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
PLAIN = StreamsTopology(0, (DeclaredSubtopology("0", ("a",)),))
STATEFUL = StreamsTopology(0, (DeclaredSubtopology("0", ("a",), state_changelog_topics=(TopicInfo("log"),)),))
WITH_LOG = {**TOPICS, "log": 4}


def ids(*numbers: int, key: str = "0") -> tuple[TaskIds, ...]:
    """Tasks of one subtopology."""
    return (TaskIds(key, numbers),) if numbers else ()


class Streams:
    """A coordinator and shorthands. Members run ``topology``, each in a process of its own unless it says another."""

    def __init__(
        self, config: dict[str, str] | None = None, topology: StreamsTopology = PLAIN, topics: dict[str, int] | None = None
    ) -> None:
        self.harness = CoordinatorHarness(AT_ONCE if config is None else config, topics=topics or TOPICS)
        self.harness.sleep_ms(1)
        self.topology = topology

    def beat(self, member_id: str, epoch: int = 0, /, **fields: Any) -> StreamsGroupHeartbeatResult:
        """A heartbeat; one that joins declares the topology and whatever else it has to."""
        said: dict[str, Any] = {"group_id": "g", "member_id": member_id, "member_epoch": epoch}
        if epoch == 0:
            said |= {"topology": self.topology, "process_id": f"p-{member_id}", "rebalance_timeout_ms": 30_000}
            said |= {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
        return self.harness.send(StreamsGroupHeartbeat, **{**said, **fields}).result(StreamsGroupHeartbeatResult)

    def owns(self, member_id: str, active: tuple[TaskIds, ...], **fields: Any) -> StreamsGroupHeartbeatResult:
        """A heartbeat at the member's epoch that says what it has."""
        tasks = {"active_tasks": active, "standby_tasks": (), "warmup_tasks": ()}
        return self.beat(member_id, self.member(member_id).member_epoch, **{**tasks, **fields})

    def member(self, member_id: str) -> StreamsMember:
        """The member as the coordinator knows it."""
        return self.state.members[member_id]

    def describe(self, *group_ids: str) -> tuple[StreamsGroupDescribedGroup, ...]:
        """StreamsGroupDescribe."""
        call = self.harness.send(StreamsGroupDescribe, group_ids=group_ids or ("g",))
        return call.result(StreamsGroupDescribeResult).groups

    def change_topics(self, **counts: int) -> None:
        """There are these topics, and no others."""
        self.harness.send(TopicsChanged, image=image_of(counts, version=9))

    @property
    def state(self) -> StreamsGroup:
        """The group."""
        group = self.harness.any_group("g")
        assert isinstance(group, StreamsGroup)
        return group
