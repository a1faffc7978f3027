"""A consumer-protocol group under any sequence of heartbeats, restarts, crashes and changes, classic members among them.

The harness checks the core's invariants and the durable state of a second coordinator on every call. Held against a model of the
clients here: no partition is in the hands of two members at once, epochs do not go back, a group whose clients go on
heartbeating settles with every partition in one hand, offsets change by accepted commits alone, reading changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import GROUP_TRANSITIONS, MEMBER_TRANSITIONS
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResult,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResult,
    OffsetCommit,
    OffsetCommitPartition,
    PartitionErrors,
)
from tests.support.coordinator_harness import CoordinatorHarness

Partition = tuple[UUID, int]
TOPICS = ["t", "u", "v"]
REBALANCE_MS = 20_000
CHANGES = {(change.source, change.target) for change in (*GROUP_TRANSITIONS, *MEMBER_TRANSITIONS)}
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.FENCED_INSTANCE_ID)


@dataclass
class Client:
    """A consumer: what it was told, and what it holds until it has given it up."""

    member_id: str
    topics: tuple[str, ...]
    instance: str | None = None
    regex: str | None = None
    epoch: int = 0
    assigned: set[Partition] = field(default_factory=set)
    held: set[Partition] = field(default_factory=set)


def subscribes(group: ConsumerGroup, client: Client) -> bool:
    """Whether it asks for any topic, be it one that its expression has found."""
    resolved = group.resolved_regexes.get(client.regex or "")
    return bool(client.topics) or (resolved is not None and bool(resolved.topics))


def by_topic(partitions: set[Partition]) -> tuple[tuple[UUID, tuple[int, ...]], ...]:
    """As a request carries them."""
    topics = sorted({topic_id for topic_id, _ in partitions}, key=str)
    return tuple((topic_id, tuple(sorted(number for other, number in partitions if other == topic_id))) for topic_id in topics)


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Clients that do as they like with the group ``g``."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = CoordinatorHarness(topics={"t": 3, "u": 2})
        self.sizes = {"t": 3, "u": 2}
        self.largest = dict(self.sizes)
        self.clients: list[Client] = []
        self.number = 0
        self.epochs = (0, 0)
        self.offsets: dict[str, int] = {}
        self.states: dict[str, object] = {}

    @initialize(
        config=st.sampled_from(
            [
                {},
                {"group.consumer.assignment.interval.ms": "0"},
                {"group.consumer.assignors": "range", "group.consumer.assignment.interval.ms": "0"},
                {"group.consumer.max.size": "3"},
                {"group.consumer.migration.policy": "disabled"},
            ]
        ),
        size=st.integers(0, 3),
    )
    def start(self, config: dict[str, str], size: int) -> None:
        """Some brokers assign at once, some limit groups; some clients are there already."""
        self.harness = CoordinatorHarness(config, topics=self.sizes)
        self.harness.driver.on_records = lambda _: self.states_change_as_the_tables_say()
        for _ in range(size):
            self.come(Client(self.new_id(), ("t", "u")))

    def new_id(self) -> str:
        """Ids that no client had before."""
        self.number += 1
        return f"m{self.number}"

    @property
    def group(self) -> ConsumerGroup | None:
        """The group, if there is one of this protocol."""
        group = self.harness.any_group("g")
        return group if isinstance(group, ConsumerGroup) else None

    def send(self, **fields: Any) -> ConsumerGroupHeartbeatResult:
        """One heartbeat; expressions are resolved right after it."""
        call = self.harness.send(ConsumerGroupHeartbeat, api_version=1, group_id="g", **fields)
        return call.result(ConsumerGroupHeartbeatResult)

    def come(self, client: Client) -> None:
        """Join, or start over."""
        client.epoch, client.assigned, client.held = 0, set(), set()
        result = self.send(
            member_id=client.member_id,
            member_epoch=0,
            instance_id=client.instance,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=client.topics,
            subscribed_topic_regex=client.regex,
            topic_partitions=(),
        )
        if result.error is ErrorCode.NONE:
            if client not in self.clients:
                self.clients.append(client)
            self.hear(client, result)
        elif client in self.clients:
            self.clients.remove(client)

    def hear(self, client: Client, result: ConsumerGroupHeartbeatResult) -> None:
        """What a client does with an answer: it keeps what it has to give up until it says that it has."""
        if result.error in LOST:
            self.come(client)
            return
        if result.error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            self.clients.remove(client)
            return
        assert result.error is ErrorCode.NONE
        assert result.member_epoch >= client.epoch, "a member's epoch goes back"
        client.epoch = result.member_epoch
        if result.assignment is not None:
            client.assigned = {(topic_id, number) for topic_id, numbers in result.assignment for number in numbers}
            client.held |= client.assigned

    def beat(self, client: Client, *, gives_up: bool = True, **fields: Any) -> None:
        """A heartbeat; ``gives_up``: it has let go of what it should."""
        if gives_up:
            client.held = set(client.assigned)
        said = {"member_id": client.member_id, "member_epoch": client.epoch, "instance_id": client.instance, **fields}
        self.hear(client, self.send(**said, topic_partitions=by_topic(client.held)))

    def pick(self, data: st.DataObject) -> Client:
        """One of the clients."""
        return self.clients[data.draw(st.integers(0, len(self.clients) - 1))]

    # Clients.

    @rule(
        topics=st.sets(st.sampled_from(TOPICS), max_size=3).map(lambda names: tuple(sorted(names))),
        regex=st.sampled_from([None, None, None, "[tu]", "v.*"]),
        instance=st.sampled_from([None, None, "i", "j"]),
    )
    def client_comes(self, topics: tuple[str, ...], regex: str | None, instance: str | None) -> None:
        """A new one, perhaps with an instance id that somebody has."""
        taken = [client for client in self.clients if instance is not None and client.instance == instance]
        client = Client(self.new_id(), topics, instance, regex)
        self.come(client)
        if client in self.clients:
            self.clients = [other for other in self.clients if other not in taken]

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), gives_up=st.booleans())
    def client_beats(self, data: st.DataObject, gives_up: bool) -> None:
        """One that is quick to give up, or slow."""
        self.beat(self.pick(data), gives_up=gives_up)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=st.sets(st.sampled_from(TOPICS)).map(lambda names: tuple(sorted(names))))
    def client_subscribes_to_others(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        """Names instead of names."""
        client = self.pick(data)
        client.topics = topics
        self.beat(client, subscribed_topic_names=topics)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_crashes(self, data: st.DataObject) -> None:
        """Nothing is heard of it any more; what it held is its own business until the coordinator says otherwise."""
        self.clients.remove(self.pick(data))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def client_starts_over(self, data: st.DataObject) -> None:
        """With its id, forgetting everything."""
        client = self.pick(data)
        if client.instance is None:
            self.come(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), comes_back=st.booleans())
    def client_leaves(self, data: st.DataObject, comes_back: bool) -> None:
        """For good, or a static one for a restart under another id."""
        client = self.pick(data)
        self.clients.remove(client)
        restarts = client.instance is not None and comes_back
        self.send(member_id=client.member_id, instance_id=client.instance, member_epoch=-2 if restarts else -1)
        if restarts:
            self.come(Client(self.new_id(), client.topics, client.instance, client.regex))

    @rule(member_id=st.sampled_from(["m1", "m2", "ghost"]), epoch=st.sampled_from([-2, 1, 7, 1_000]))
    def stranger_beats(self, member_id: str, epoch: int) -> None:
        """An epoch that nobody was given, or a leave without an instance id: refused, or the one epoch that fits."""
        members = self.group.members if self.group else {}
        known = members[member_id].member_epoch if member_id in members else None
        if known is None or epoch != known:
            assert self.send(member_id=member_id, member_epoch=epoch).error is not ErrorCode.NONE

    @rule(topics=st.sampled_from([["t"], ["t", "u"]]), instance=st.sampled_from([None, "i"]))
    def classic_client_comes(self, topics: list[str], instance: str | None) -> None:
        """It joins the group, or is refused; it says no more, so its session ends."""
        if self.group is None or not self.group.members:
            return
        before = {client.instance: client for client in self.clients}
        call = self.harness.join(version=3 if instance is None else 9, topics=topics, instance=instance)
        if instance is not None and not call.is_parked and call.join.error is ErrorCode.NONE and instance in before:
            self.clients.remove(before[instance])

    # Surroundings.

    @rule(duration_ms=st.sampled_from([1, 500, 1_000, 5_000, 20_000, 44_999]))
    def time_passes(self, duration_ms: int) -> None:
        """Everybody is silent."""
        self.harness.sleep_ms(duration_ms)

    @rule(past_ms=st.sampled_from([0, 1]))
    def time_passes_to_the_next_deadline(self, past_ms: int) -> None:
        """Up to it, or just past it."""
        self.harness.sleep_to_next_deadline()
        self.harness.sleep_ms(past_ms)

    @rule(topic=st.sampled_from(TOPICS), goes=st.booleans())
    def topics_change(self, topic: str, goes: bool) -> None:
        """A topic comes, grows or goes; its id follows from its name, so it does not come back smaller."""
        if goes and topic in self.sizes:
            del self.sizes[topic]
            self.offsets = {name: offset for name, offset in self.offsets.items() if not name.startswith(topic)}
        else:
            self.largest[topic] = self.sizes[topic] = self.largest.get(topic, 0) + 1
        self.harness.change_topics(self.sizes)

    @rule()
    def reload(self) -> None:
        """Another coordinator takes over."""
        self.harness.driver.reload()

    @rule(data=st.data(), offset=st.integers(0, 9), back=st.sampled_from([0, 0, 1]))
    def commit(self, data: st.DataObject, offset: int, back: int) -> None:
        """From a member, of something it holds, with its epoch or an older one."""
        client = self.pick(data) if self.clients else Client("ghost", ())
        names = {topic.topic_id: name for name, topic in self.harness.driver.image.topics.items()}
        held = [(names[topic_id], number, topic_id) for topic_id, number in sorted(client.held, key=str) if topic_id in names]
        topic, number, topic_id = held[0] if held else ("t", 0, UUID(int=0))
        at = OffsetCommitPartition(topic=topic, partition=number, offset=offset, topic_id=topic_id)
        call = self.harness.send(
            OffsetCommit,
            api_version=9,
            group_id="g",
            member_id=client.member_id,
            generation_id=client.epoch - back,
            partitions=(at,),
        )
        if call.result(PartitionErrors).partitions[0][1] is ErrorCode.NONE:
            self.offsets[f"{topic}-{number}"] = offset

    @precondition(lambda self: self.clients)
    @rule()
    def everybody_goes_on(self) -> None:
        """When all clients do as they are told and nothing else happens, the group settles, and nothing is left over."""
        for _ in range(14):
            self.harness.sleep_ms(5_000)
            for client in list(self.clients):
                self.beat(client)
        group = self.group
        if group is None or not self.clients:
            return
        assert group.group_state == "Stable"
        assert set(group.members) == {client.member_id for client in self.clients}
        if any(not subscribes(group, client) for client in self.clients):
            # A newcomer without topics does not count as a change, so Kafka assigns as if all had the same: perhaps nothing.
            return
        owned = [partition for client in self.clients for partition in client.held]
        topics = [topic for name, topic in self.harness.driver.image.topics.items() if name in group.topic_counts]
        wanted = {(topic.topic_id, number) for topic in topics for number in range(topic.partition_count)}
        assert len(owned) == len(wanted)
        assert set(owned) == wanted

    @rule()
    def look(self) -> None:
        """Reading changes nothing."""
        before = self.harness.driver.coordinator.durable(), len(self.harness.log)
        call = self.harness.send(ConsumerGroupDescribe, group_ids=("g",))
        described = call.result(ConsumerGroupDescribeResult).groups[0]
        assert (described.error is ErrorCode.NONE) == (self.group is not None)
        self.harness.list_groups()
        assert (self.harness.driver.coordinator.durable(), len(self.harness.log)) == before

    # What must hold.

    def states_change_as_the_tables_say(self) -> None:
        """The group's and each member's, seen after every call that wrote something."""
        group = self.group
        if group is None:
            self.epochs = (0, 0)  # the next one counts from its beginning
        now: dict[str, object] = {} if group is None else {name: member.state for name, member in group.members.items()}
        if group is not None:
            now["the group"] = group.group_state
        for name, state in now.items():
            before = self.states.get(name, state)
            assert before == state or (before, state) in CHANGES, name
        self.states = now

    @invariant()
    def no_partition_is_in_two_hands(self) -> None:
        """Of members, that is: whoever is out will hear of it."""
        members = self.group.members if self.group else {}
        holders: dict[Partition, str] = {}
        for client in self.clients:
            member = members.get(client.member_id)
            if member is not None and member.member_epoch >= client.epoch > 0:
                for partition in client.held:
                    assert holders.setdefault(partition, client.member_id) == client.member_id

    @invariant()
    def epochs_do_not_go_back(self) -> None:
        """As long as it is the same group."""
        group = self.group
        now = (group.group_epoch, group.assignment_epoch) if group is not None else (0, 0)
        assert now >= self.epochs
        self.epochs = now

    @invariant()
    def offsets_are_those_accepted(self) -> None:
        """Nothing else moves them."""
        assert self.harness.offsets() == self.offsets


TestConsumerGroup = ConsumerGroupMachine.TestCase
