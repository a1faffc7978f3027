"""A share group under any sequence of heartbeats, crashes, changes and outcomes of what is done elsewhere.

The harness checks the core's invariants and the durable state of a second coordinator on every call. Held against a model of the
clients here: nobody reads what has no state or what it does not subscribe to, epochs do not go back, a group whose clients go on
heartbeating settles with every partition read by somebody, reading changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from kgctl.coordinator.share.group import SHARE_TRANSITIONS, ShareGroup
from kgctl.coordinator.share.no_op import outcome_without_state
from kgctl.model.error_codes import ErrorCode
from kgctl.model.share_requests import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DescribeShareGroupOffsets,
    InitializeShareState,
    ShareGroupDescribe,
    ShareGroupHeartbeat,
    ShareStateCall,
    ShareStateInitialized,
)
from kgctl.model.share_results import ShareGroupDescribeResult, ShareGroupHeartbeatResult
from tests.stateful.modern_groups import LOST, ModernGroupMachine
from tests.support.coordinator_harness import CoordinatorHarness

TOPICS = ["t", "u", "v"]


@dataclass
class Reader:
    """A share consumer: what it was told."""

    member_id: str
    topics: tuple[str, ...]
    epoch: int = 0
    assigned: set[tuple[UUID, int]] = field(default_factory=set)


class ShareGroupMachine(ModernGroupMachine[ShareGroup]):
    """Clients that do as they like with the group ``g``."""

    kind, transitions = ShareGroup, SHARE_TRANSITIONS

    def __init__(self) -> None:
        super().__init__()
        self.readers: list[Reader] = []
        self.calls: list[ShareStateCall] = []
        self.outcomes = count(500_000_000)

    @initialize(
        config=st.sampled_from([{}, {"group.share.assignment.interval.ms": "0"}, {"group.share.max.size": "2"}]),
        size=st.integers(0, 3),
    )
    def start(self, config: dict[str, str], size: int) -> None:
        """Some brokers assign at once, some limit groups; some clients are there already."""
        self.harness = CoordinatorHarness(config, topics=self.sizes)
        self.harness.driver.on_call = self.calls.append
        self.harness.sleep_ms(1)
        for _ in range(size):
            self.come(Reader(f"m{next(self.ids)}", ("t", "u")))

    def send(self, **fields: Any) -> ShareGroupHeartbeatResult:
        """One heartbeat."""
        return self.harness.send(ShareGroupHeartbeat, group_id="g", **fields).result(ShareGroupHeartbeatResult)

    def come(self, reader: Reader) -> None:
        """Join, or start over."""
        reader.epoch, reader.assigned = 0, set()
        result = self.send(member_id=reader.member_id, member_epoch=0, subscribed_topic_names=reader.topics)
        self.readers = [other for other in self.readers if other is not reader]
        if result.error is ErrorCode.NONE:
            self.readers.append(reader)
            self.hear(reader, result)
        else:
            assert result.error is ErrorCode.GROUP_MAX_SIZE_REACHED

    def hear(self, reader: Reader, result: ShareGroupHeartbeatResult) -> None:
        """What a client does with an answer."""
        if result.error in LOST:
            self.come(reader)
            return
        assert result.error is ErrorCode.NONE
        assert result.member_epoch >= reader.epoch, "a member's epoch goes back"
        reader.epoch = result.member_epoch
        if result.assignment is not None:
            reader.assigned = {(topic_id, number) for topic_id, numbers in result.assignment for number in numbers}
            self.may_read(reader)

    def may_read(self, reader: Reader) -> None:
        """Only what it subscribes to and what has a state."""
        names = {topic.topic_id: name for name, topic in self.harness.driver.image.topics.items()}
        there = self.harness.driver.coordinator.initialized_share_partitions("g")
        for topic_id, number in reader.assigned:
            assert names[topic_id] in reader.topics
            assert number in there[topic_id]

    def beat(self, reader: Reader, **fields: Any) -> None:
        """A heartbeat."""
        self.hear(reader, self.send(member_id=reader.member_id, member_epoch=reader.epoch, **fields))

    def answer(self, call: ShareStateCall) -> None:
        """All goes well."""
        self.harness.driver.request(outcome_without_state(call, next(self.outcomes)))

    def pick(self, data: st.DataObject) -> Reader:
        """One of the clients."""
        return self.readers[data.draw(st.integers(0, len(self.readers) - 1))]

    # Clients.

    @rule(topics=st.sets(st.sampled_from(TOPICS), min_size=1, max_size=3).map(lambda names: tuple(sorted(names))))
    def reader_comes(self, topics: tuple[str, ...]) -> None:
        """A new one."""
        self.come(Reader(f"m{next(self.ids)}", topics))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def reader_beats(self, data: st.DataObject) -> None:
        """As it should."""
        self.beat(self.pick(data))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), topics=st.sets(st.sampled_from(TOPICS)).map(lambda names: tuple(sorted(names))))
    def reader_subscribes_to_others(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        """Names instead of names."""
        reader = self.pick(data)
        before, reader.topics = reader.topics, topics
        self.beat(reader, subscribed_topic_names=topics)
        if reader.epoch == 0:
            reader.topics = before

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def reader_crashes(self, data: st.DataObject) -> None:
        """Nothing is heard of it any more."""
        self.readers.remove(self.pick(data))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def reader_leaves(self, data: st.DataObject) -> None:
        """For good."""
        reader = self.pick(data)
        self.readers.remove(reader)
        self.send(member_id=reader.member_id, member_epoch=-1)

    @rule(member_id=st.sampled_from(["m1", "m2", "ghost"]), epoch=st.sampled_from([-2, 7_777]))
    def stranger_beats(self, member_id: str, epoch: int) -> None:
        """An epoch that nobody was given."""
        assert self.send(member_id=member_id, member_epoch=epoch).error is not ErrorCode.NONE

    # Elsewhere.

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), goes_well=st.sampled_from([True, True, False]))
    def a_call_is_answered(self, data: st.DataObject, goes_well: bool) -> None:
        """In any order; what has to be made may fail."""
        call = self.calls.pop(data.draw(st.integers(0, len(self.calls) - 1)))
        if goes_well or not isinstance(call, InitializeShareState):
            self.answer(call)
        else:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self.harness.driver.request(ShareStateInitialized(request_id=next(self.outcomes), call=call, error=error))

    @rule(duration_ms=st.sampled_from([1, 500, 1_000, 5_000, 30_000, 44_999]))
    def time_passes(self, duration_ms: int) -> None:
        """Everybody is silent."""
        self.harness.sleep_ms(duration_ms)

    @rule(topic=st.sampled_from(TOPICS))
    def a_topic_grows(self, topic: str) -> None:
        """Or comes."""
        self.sizes[topic] = self.sizes.get(topic, 0) + 1
        self.harness.change_topics(self.sizes)

    # Administrators.

    @rule(topic=st.sampled_from(TOPICS), start=st.integers(0, 9))
    def offsets_are_altered(self, topic: str, start: int) -> None:
        """Of an empty group, or of one that this makes."""
        was_used = bool(self.group and self.group.members)
        call = self.harness.send(AlterShareGroupOffsets, group_id="g", topics=((topic, ((0, start),)),))
        assert call.is_parked or (call.error is ErrorCode.NON_EMPTY_GROUP) == was_used

    @rule(topic=st.sampled_from(TOPICS))
    def offsets_are_deleted(self, topic: str) -> None:
        """Of an empty group."""
        call = self.harness.send(DeleteShareGroupOffsets, group_id="g", topics=(topic,))
        assert not (call.is_parked and self.group and self.group.members)

    def described(self) -> ErrorCode:
        """Its offsets are read, too."""
        self.harness.send(DescribeShareGroupOffsets, group_id="g", topics=None)
        return self.harness.send(ShareGroupDescribe, group_ids=("g",)).result(ShareGroupDescribeResult).groups[0].error

    @precondition(lambda self: self.readers)
    @rule()
    def everybody_goes_on(self) -> None:
        """When all clients do as they are told and all goes well, every partition is read by somebody."""
        for _ in range(14):
            self.harness.sleep_ms(5_000)
            while self.calls:
                self.answer(self.calls.pop(0))
            for reader in list(self.readers):
                self.beat(reader)
        group = self.group
        if group is None or not self.readers:
            return
        assert set(group.members) == {reader.member_id for reader in self.readers}
        topics = [topic for name, topic in self.harness.driver.image.topics.items() if name in group.topic_counts]
        wanted = {(topic.topic_id, number) for topic in topics for number in range(topic.partition_count)}
        assert set().union(*(reader.assigned for reader in self.readers)) == wanted


TestShareGroup = ShareGroupMachine.TestCase
