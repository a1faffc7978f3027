"""A stream thread of the streams protocol: what it declares, reports and takes, answer by answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from random import Random
from uuid import UUID

from kgctl.assignors.high_availability import NumberedTask
from kgctl.assignors.streams.partition_assignor import TaskTopology
from kgctl.member.api import Action, FindCoordinator, FindCoordinatorResult, MemberIdentity, RefreshMetadata, RunCallback, Send
from kgctl.member.config import MemberConfig
from kgctl.member.streams_protocol_member import StreamsProtocolMember
from kgctl.model.groups import TopicPartition
from kgctl.model.streams_records import TaskIds
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import DeclaredSubtopology, StreamsTopology, TopicInfo
from tests.support.coordinator_harness import image_of


class Host:
    """An instance that writes down what it is assigned."""

    process_id = UUID(int=7)
    topology = TaskTopology((("orders",), ("pays", "clicks")), frozenset({0}))

    def __init__(self) -> None:
        self.told: list[tuple[list[str], list[str]]] = []

    def offset_sums(self, now_us: int) -> Mapping[NumberedTask, int]:
        return {}

    def end_offset_sums(self, tasks: Collection[NumberedTask], now_us: int) -> Mapping[NumberedTask, int]:
        return {}

    def assigned(self, active: Collection[NumberedTask], standby: Collection[NumberedTask], now_us: int) -> None:
        self.told.append(([str(task) for task in active], [str(task) for task in standby]))

    def probes(self, now_us: int) -> None:
        raise AssertionError("there are no probing rebalances in the streams protocol")


class Driven:
    """A member that is answered at once; ``beats`` are its heartbeats."""

    def __init__(self) -> None:
        self.host, self.now_us = Host(), 0
        self.beats: list[StreamsGroupHeartbeat] = []
        self.callbacks: list[tuple[str, list[str]]] = []
        config = MemberConfig.from_properties({"group.protocol": "streams"}, "kafka-streams")
        identity = MemberIdentity(name="app-0", group_id="app", topics=("orders", "pays", "clicks"))
        self.member = StreamsProtocolMember(config, identity, Random(1), lambda *_: {}, count(), host=self.host)
        self._do(self.member.start(0))
        self.poll()

    def poll(self, after_us: int = 0) -> None:
        """Poll, and be inside of it for a while."""
        self.now_us += after_us
        self._do(self.member.expire(self.now_us))
        self._do(self.member.poll(self.now_us, self.now_us + 1_000))

    def answer(self, **fields: object) -> None:
        """The last heartbeat is answered."""
        result = StreamsGroupHeartbeatResult(member_id=self.member.member_id, heartbeat_interval_ms=5_000, **fields)  # type: ignore[arg-type]
        self._do(self.member.on_reply(self.beats[-1].request_id, result, self.now_us))
        self.poll()

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, FindCoordinator):
                self._do(self.member.on_reply(action.correlation_id, FindCoordinatorResult(), self.now_us))
            elif isinstance(action, RefreshMetadata):
                self._do(self.member.on_metadata(image_of({"orders": 4, "pays": 2, "clicks": 1}), self.now_us))
            elif isinstance(action, RunCallback):
                self.callbacks.append((action.kind, [str(each) for each in action.partitions]))
                self._do(self.member.callback_done(self.now_us))
            elif isinstance(action, Send) and isinstance(action.request, StreamsGroupHeartbeat):
                self.beats.append(action.request)


def tasks(**found: tuple[int, ...]) -> tuple[TaskIds, ...]:
    return tuple(TaskIds(name.removeprefix("s"), numbers) for name, numbers in found.items())


def test_it_joins_with_its_topology() -> None:
    (beat,) = Driven().beats
    changelog = TopicInfo("app-store-0-changelog")
    parts = (
        DeclaredSubtopology("0", ("orders",), state_changelog_topics=(changelog,)),
        DeclaredSubtopology("1", ("clicks", "pays")),
    )
    assert (beat.member_epoch, beat.topology, beat.process_id) == (0, StreamsTopology(0, parts), str(UUID(int=7)))
    assert (beat.active_tasks, beat.standby_tasks, beat.warmup_tasks) == ((), (), ())
    assert (beat.rebalance_timeout_ms, beat.endpoint_information_epoch) == (300_000, -1)


def test_what_is_assigned_is_the_instances_before_it_is_read_and_is_reported() -> None:
    driven = Driven()
    driven.answer(
        member_epoch=3,
        endpoint_information_epoch=2,
        active_tasks=tasks(s0=(1,), s1=(0,)),
        standby_tasks=tasks(s0=(2,)),
        warmup_tasks=(),
    )
    assert driven.host.told == [(["0_1", "1_0"], ["0_2"])]
    assert [(kind, sorted(names)) for kind, names in driven.callbacks] == [("assigned", ["clicks-0", "orders-1", "pays-0"])]
    beat = driven.beats[-1]
    assert (beat.member_epoch, beat.endpoint_information_epoch, beat.topology) == (3, 2, None)
    assert (beat.active_tasks, beat.standby_tasks, beat.warmup_tasks) == (tasks(s0=(1,), s1=(0,)), tasks(s0=(2,)), ())

    driven.answer(member_epoch=3)
    driven.poll(5_100_000)
    assert len(driven.beats) == 3
    assert driven.beats[-1].active_tasks is None  # as it was


def test_a_task_that_is_taken_away_is_revoked_first() -> None:
    driven = Driven()
    driven.answer(member_epoch=3, active_tasks=tasks(s0=(1, 2)), standby_tasks=(), warmup_tasks=())
    driven.answer(member_epoch=3)
    driven.poll(5_100_000)
    driven.answer(member_epoch=3, active_tasks=tasks(s0=(2,)), standby_tasks=(), warmup_tasks=())
    assert driven.callbacks == [("assigned", ["orders-1", "orders-2"]), ("revoked", ["orders-1"]), ("assigned", [])]
    assert driven.member.owned_partitions == (TopicPartition("orders", 2),)
    assert driven.beats[-1].active_tasks == tasks(s0=(2,))


def test_closing_leaves_whatever_the_settings_say() -> None:
    driven = Driven()
    driven.answer(member_epoch=3, active_tasks=tasks(s0=(1,)), standby_tasks=(), warmup_tasks=())
    driven.answer(member_epoch=3)
    driven._do(driven.member.close(driven.now_us))
    assert driven.beats[-1].member_epoch == -1
