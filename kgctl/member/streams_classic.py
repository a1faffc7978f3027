"""A stream thread of Kafka Streams in a classic group: a consumer whose assignor hands out tasks, and that joins again when told.

Kafka: StreamThread, and StreamsPartitionAssignor as its consumer's assignor.
"""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.assignors.high_availability import TaskSettings
from kgctl.assignors.spec import GroupSpec
from kgctl.assignors.streams.user_data import (
    NO_REBALANCE_MS,
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment_info,
    encode_subscription_info,
)
from kgctl.member.api import MemberIdentity, PositionsOf, Rng
from kgctl.member.classic_member import ClassicMember, Rebalance
from kgctl.member.config import MemberConfig
from kgctl.member.leader import Assignments, Remembered
from kgctl.member.streams_api import TaskHost
from kgctl.member.streams_leader import PROTOCOL, StreamsPartitionAssignor
from kgctl.model.groups import ConsumerSubscription, TopicPartition
from kgctl.model.requests import JoinProtocol
from kgctl.serde.consumer_protocol import decode_assignment, encode_subscription

FOLLOW_UP = "follow-up rebalance"


class StreamsLeader:
    """What a `Rebalance` asks of its assignors, answered for the one that Kafka Streams has."""

    left_over = 0

    def __init__(self, member: ClassicMember, host: TaskHost) -> None:
        config = member.config
        settings = TaskSettings(config.acceptable_recovery_lag, config.max_warmup_replicas, config.num_standby_replicas)
        interval_ms = config.probing_rebalance_interval_ms
        self._assignor = StreamsPartitionAssignor(host.topology, settings, interval_ms, host.process_id)
        self._runtime = member.runtime
        self._host = host
        self._joins = 0

    def join_protocols(self, subscription: ConsumerSubscription, _: Remembered | None) -> tuple[JoinProtocol, ...]:
        """The one protocol of a JoinGroup. Its user data differs each time, so that each joining is a rebalance."""
        self._joins += 1
        sums = self._host.offset_sums(self._runtime.now_us)
        user_data = encode_subscription_info(
            SubscriptionInfo(self._host.process_id, dict(sorted(sums.items())), unique_field=self._joins)
        )
        owned, generation_id = subscription.owned_partitions, subscription.generation_id
        says = ConsumerSubscription(subscription.topics, user_data, owned, generation_id, subscription.rack_id)
        return (JoinProtocol(name=PROTOCOL, metadata=encode_subscription(says)),)

    def assign(self, _: str, group: GroupSpec) -> Assignments:
        """The assignment of each member as bytes, in the order of the members."""
        now_us = self._runtime.now_us
        found = self._assignor.assign(group, lambda tasks: self._host.end_offset_sums(tasks, now_us), now_us // 1000)
        return tuple(found.items())


class StreamsRebalance(Rebalance):
    """Rounds that bring tasks: they are the instance's before the partitions that it did not have are."""

    __slots__ = ("_host", "_told")

    def __init__(self, member: ClassicMember, host: TaskHost) -> None:
        super().__init__(member)
        self._assignor = StreamsLeader(member, host)  # type: ignore[assignment]
        self._host = host
        self._told = AssignmentInfo()

    def _complete(self, assignment: bytes) -> None:
        user_data = decode_assignment(assignment).user_data
        self._told = decode_assignment_info(user_data) if user_data else AssignmentInfo()
        super()._complete(assignment)

    def _hand_over(self, assigned: set[TopicPartition]) -> None:
        """Kafka: StreamsPartitionAssignor#onAssignment, between the two callbacks."""
        runtime, told = self._member.runtime, self._told
        self._host.assigned(dict.fromkeys(told.active), told.standby, runtime.now_us)
        runtime.deadlines.cancel(FOLLOW_UP)
        if told.next_rebalance_ms < NO_REBALANCE_MS:
            runtime.deadlines.arm(FOLLOW_UP, max(told.next_rebalance_ms * 1000, runtime.now_us))
        super()._hand_over(assigned)

    def follows_up(self) -> None:
        """Tell the instance of a look at the copies; at once: it is for a task that another had to give up."""
        if self._told.next_rebalance_ms:
            self._host.probes(self._member.runtime.now_us)


class ClassicStreamsMember(ClassicMember):
    """See `kgctl.member.api.Member`."""

    __slots__ = ()
    rebalance: StreamsRebalance

    def __init__(
        self,
        config: MemberConfig,
        identity: MemberIdentity,
        rng: Rng,
        positions_of: PositionsOf,
        request_ids: Iterator[int],
        *,
        host: TaskHost,
    ) -> None:
        super().__init__(config, identity, rng, positions_of, request_ids)
        self.rebalance = StreamsRebalance(self, host)

    def on_deadline(self, name: str) -> None:
        """Join again when the leader has said so: at once, where another had to give a task up, or to look at the copies."""
        if name == FOLLOW_UP:
            self.membership.request_rejoin("triggered followup rebalance")
            self.rebalance.follows_up()
        else:
            super().on_deadline(name)
