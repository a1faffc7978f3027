"""A streams group under any sequence of heartbeats, crashes, changes of topics and of settings.

The harness checks the core's invariants and the durable state of a second coordinator on every call. Held against a model of the
clients here: no two process one task at a time, epochs do not go back, a group whose clients go on heartbeating settles with each
task processed by one of them, reading changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from kgctl.coordinator.streams.group import STREAMS_TRANSITIONS, StreamsGroup
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from kgctl.model.streams_records import TaskIds
from kgctl.model.streams_requests import StreamsGroupDescribe, StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupDescribeResult, StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import CreatableTopic, DeclaredSubtopology, StreamsTopology, TopicInfo
from tests.stateful.modern_groups import LOST, ModernGroupMachine
from tests.support.coordinator_harness import CoordinatorHarness

TOPOLOGY = StreamsTopology(
    0,
    (
        DeclaredSubtopology("0", ("t",), repartition_sink_topics=("r",)),
        DeclaredSubtopology("1", ("u",), repartition_source_topics=(TopicInfo("r"),), state_changelog_topics=(TopicInfo("c"),)),
    ),
)
LONG_MS = 30_000
"""A member's time to give tasks up; its session is longer."""
Kind = set[tuple[str, int]]


@dataclass
class Client:
    """A member of the application: what it was told, and what it processes and keeps copies of."""

    member_id: str
    process_id: str
    epoch: int = 0
    active: Kind = field(default_factory=set)
    standby: Kind = field(default_factory=set)
    heard_ms: int = 0

    def owned(self) -> dict[str, Any]:
        """What it says that it has."""
        return {"active_tasks": _ids(self.active), "standby_tasks": _ids(self.standby), "warmup_tasks": ()}


def _ids(tasks: Kind) -> tuple[TaskIds, ...]:
    keys = sorted({key for key, _ in tasks})
    return tuple(TaskIds(key, tuple(sorted(number for each, number in tasks if each == key))) for key in keys)


def _tasks(told: tuple[TaskIds, ...]) -> Kind:
    return {(ids.subtopology_id, number) for ids in told for number in ids.partitions}


class StreamsGroupMachine(ModernGroupMachine[StreamsGroup]):
    """Clients that do as they like with the group ``g``."""

    kind, transitions = StreamsGroup, STREAMS_TRANSITIONS

    def __init__(self) -> None:
        super().__init__()
        self.clients: list[Client] = []
        self.wanted: tuple[CreatableTopic, ...] = ()

    @initialize(replicas=st.integers(0, 2), delay_ms=st.sampled_from([0, 3_000]), size=st.integers(0, 3), made=st.booleans())
    def start(self, replicas: int, delay_ms: int, size: int, *, made: bool) -> None:
        """Some brokers assign at once; some clients are there already, and so may be the internal topics."""
        config = {"group.streams.num.standby.replicas": replicas, "group.streams.initial.rebalance.delay.ms": delay_ms}
        self.sizes |= {"r": 3, "c": 3} if made else {}
        self.harness = CoordinatorHarness({name: str(value) for name, value in config.items()}, topics=self.sizes)
        self.harness.sleep_ms(1)
        for number in range(size):
            self.come(Client(f"m{next(self.ids)}", f"p{number % 2}"))

    def send(self, **fields: Any) -> StreamsGroupHeartbeatResult:
        """One heartbeat."""
        return self.harness.send(StreamsGroupHeartbeat, group_id="g", **fields).result(StreamsGroupHeartbeatResult)

    def come(self, client: Client) -> None:
        """Join, or start over with nothing."""
        client.epoch, client.active, client.standby = 0, set(), set()
        said = {"topology": TOPOLOGY, "process_id": client.process_id, "rebalance_timeout_ms": 30_000, **client.owned()}
        result = self.send(member_id=client.member_id, member_epoch=0, **said)
        if client not in self.clients:
            self.clients.append(client)
        self.hear(client, result)

    def hear(self, client: Client, result: StreamsGroupHeartbeatResult) -> None:
        """What a client does with an answer: it gives up at once what it is not to have any more."""
        if result.error in LOST:
            self.come(client)
            return
        assert result.error is ErrorCode.NONE
        client.heard_ms = self.harness.now_ms
        assert result.member_epoch >= client.epoch, "a member's epoch goes back"
        client.epoch = result.member_epoch
        self.wanted = result.creatable_topics
        if result.active_tasks is not None and result.standby_tasks is not None:
            client.active, client.standby = _tasks(result.active_tasks), _tasks(result.standby_tasks)

    def beat(self, client: Client, **fields: Any) -> None:
        """A heartbeat, which says what the client has; of one that has stopped, a join."""
        if client.epoch == 0:
            self.come(client)
            return
        fields = {**client.owned(), **fields}
        self.hear(client, self.send(member_id=client.member_id, member_epoch=client.epoch, **fields))

    def pick(self, data: st.DataObject) -> Client:
        """One of the clients."""
        return self.clients[data.draw(st.integers(0, len(self.clients) - 1))]

    # Clients.

    @rule(process=st.sampled_from(["p0", "p1", "p2"]))
    def client_comes(self, process: str) -> None:
        """A new one."""
        self.come(Client(f"m{next(self.ids)}", process))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_beats(self, data: st.DataObject) -> None:
        """As it should."""
        self.beat(self.pick(data))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_starts_over(self, data: st.DataObject) -> None:
        """With nothing, under the same id."""
        self.come(self.pick(data))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), said=st.sampled_from([{"rack_id": "r"}, {"client_tags": (("z", "1"),)}]))
    def client_says_something_new(self, data: st.DataObject, said: dict[str, Any]) -> None:
        """Which is a new group epoch."""
        self.beat(self.pick(data), **said)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_crashes(self, data: st.DataObject) -> None:
        """Nothing is heard of it any more, and it does nothing."""
        self.clients.remove(self.pick(data))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), over=st.booleans())
    def client_leaves(self, data: st.DataObject, *, over: bool) -> None:
        """For good, and may take the others with it."""
        client = self.pick(data)
        self.clients.remove(client)
        self.send(member_id=client.member_id, member_epoch=-1, shutdown_application=over)

    @rule(member_id=st.sampled_from(["m1", "m2", "ghost"]), epoch=st.sampled_from([-3, -2, 7_777]))
    def stranger_beats(self, member_id: str, epoch: int) -> None:
        """An epoch that nobody was given."""
        assert self.send(member_id=member_id, member_epoch=epoch).error is not ErrorCode.NONE

    # Around them.

    @rule(duration_ms=st.sampled_from([1, 500, 1_000, 5_000, 30_000, 44_999]))
    def time_passes(self, duration_ms: int) -> None:
        """Everybody is silent. A client that has not been heard for long stops, and has to come again."""
        self.harness.sleep_ms(duration_ms)
        for client in self.clients:
            if self.harness.now_ms - client.heard_ms >= LONG_MS:
                client.epoch, client.active, client.standby = 0, set(), set()

    @rule()
    def internal_topics_are_made(self) -> None:
        """Those that the last answer asked for."""
        self.sizes |= {topic.name: topic.num_partitions for topic in self.wanted}
        self.harness.change_topics(self.sizes)

    @rule(topic=st.sampled_from(["t", "c"]))
    def a_topic_changes(self, topic: str) -> None:
        """It grows, so that others may not fit any more; or is gone."""
        if topic == "c":
            self.sizes.pop(topic, None)
        else:
            self.sizes[topic] += 1
        self.harness.change_topics(self.sizes)

    def described(self) -> ErrorCode:
        """The one thing there is to read."""
        return self.harness.send(StreamsGroupDescribe, group_ids=("g",)).result(StreamsGroupDescribeResult).groups[0].error

    @precondition(lambda self: self.clients)
    @rule()
    def everybody_goes_on(self) -> None:
        """When all clients do as they are told and all topics are made, every task is processed by one of them."""
        for _ in range(16):
            self.harness.sleep_ms(5_000)
            self.internal_topics_are_made()
            for client in list(self.clients):
                self.beat(client)
        group = self.group
        if group is None or group.group_state is not GroupState.STABLE:
            assert group is not None
            assert group.group_state is GroupState.NOT_READY, "only topics keep a group from settling"
            return
        assert set(group.members) == {client.member_id for client in self.clients}
        wanted = {("0", number) for number in range(self.sizes["t"])}
        wanted |= {("1", number) for number in range(max(self.sizes["u"], self.sizes["r"]))}
        processed = [task for client in self.clients for task in client.active]
        assert sorted(processed) == sorted(wanted)

    # What must hold.

    @invariant()
    def nobody_processes_what_another_does(self) -> None:
        """At any time."""
        processed = [task for client in self.clients for task in client.active]
        assert len(processed) == len(set(processed))


TestStreamsGroup = StreamsGroupMachine.TestCase
