"""A share group in tests: heartbeats in a few words, and calls that wait until the test answers them."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.share.no_op import outcome_without_state
from kgctl.coordinator.share.partitions import SharePartitions
from kgctl.model.requests import TopicsChanged
from kgctl.model.share_requests import ShareGroupHeartbeat, ShareStateCall
from kgctl.model.share_results import ShareGroupHeartbeatResult
from tests.support.coordinator_harness import CoordinatorHarness, image_of

TOPICS = {"a": 3, "b": 2}
AT_ONCE = {"group.share.assignment.interval.ms": "0"}
A, B = (image_of(TOPICS).topics[name].topic_id for name in ("a", "b"))


class Shares:
    """A coordinator and shorthands. ``calls``: what it has done elsewhere and is not answered."""

    def __init__(self, config: dict[str, str] | None = None) -> None:
        self.harness = CoordinatorHarness(AT_ONCE if config is None else config, topics=TOPICS)
        self.calls: list[ShareStateCall] = []
        self.harness.driver.on_call = self.calls.append

    def beat(self, member_id: str, epoch: int = 0, *topics: str, group: str = "g", **fields: Any) -> ShareGroupHeartbeatResult:
        """A heartbeat; one that joins subscribes to topic a unless it says other topics."""
        names = topics or (("a",) if epoch == 0 else None)
        said: dict[str, Any] = {"member_epoch": epoch, "subscribed_topic_names": names, **fields}
        call = self.harness.send(ShareGroupHeartbeat, group_id=group, member_id=member_id, **said)
        return call.result(ShareGroupHeartbeatResult)

    def well(self) -> None:
        """All that is done elsewhere goes well."""
        while self.calls:
            self.harness.driver.request(outcome_without_state(self.calls.pop(0), 700_000_000 + len(self.harness.log)))

    def running(self, *topics: str) -> int:
        """A group with the member m that reads these topics. Return its epoch."""
        self.beat("m", 0, *topics)
        self.well()
        return self.beat("m", self.state.members["m"].member_epoch).member_epoch

    def change_topics(self, **counts: int) -> None:
        """There are these topics, and no others."""
        self.harness.send(TopicsChanged, image=image_of(counts, version=9))

    @property
    def state(self) -> ShareGroup:
        """The group."""
        group = self.harness.any_group("g")
        assert isinstance(group, ShareGroup)
        return group

    @property
    def partitions(self) -> tuple[dict[Any, tuple[int, ...]], dict[Any, tuple[int, ...]], tuple[Any, ...]]:
        """Whose state is being made, whose is there, and whose is being dropped."""
        known = self.harness.driver.coordinator.shard.share_partitions.get("g", SharePartitions())
        noted = [{topic: each.partitions for topic, each in kept.items()} for kept in (known.initializing, known.initialized)]
        return noted[0], noted[1], known.deleting
