"""A share group in a run: what of the engine is otherwise for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kgctl.coordinator.config import GroupConfig
from kgctl.coordinator.effects import Effect
from kgctl.model.share import SharePartitionKey
from kgctl.model.share_requests import InitializeShareState, ShareStateError, ShareStateInitialized
from kgctl.share.state.shard import StateRefusal
from kgctl.simulate.engine.broker import SimulatedBroker
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.group_kind import GroupKind, TopicReplicas
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, Surroundings
from kgctl.simulate.engine.share.accounts import ShareAccounts
from kgctl.simulate.engine.share.client import ShareClient
from kgctl.simulate.engine.share.lanes import SharedOwnership
from kgctl.simulate.engine.share.leaders import ShareBrokers
from kgctl.simulate.engine.share.poison import Poison
from kgctl.simulate.engine.share.process import ShareProcess
from kgctl.simulate.recording.recording import ShareHistory


class ShareKind(GroupKind):
    """Its members fetch from the leaders and acknowledge; the coordinator only says who may fetch what."""

    def __init__(self, context: RunContext, pods: Sequence[Pod], broker: SimulatedBroker) -> None:
        super().__init__(context, pods, broker)
        context.recording.share = history = ShareHistory()
        self._accounts = ShareAccounts(context, history, lambda: self._settings().share_delivery_count_limit)
        self._rng = context.randomness.stream("share state")
        self.leaders = ShareBrokers(context, self._accounts, self._settings, self._persist_us)
        self.poison = Poison(context)
        self._rates: dict[int, int] = {}
        self._replicas: TopicReplicas | None = None

    def _settings(self) -> GroupConfig:
        return self.broker.core.shard.group_config(self.context.group_id)

    def heartbeat_ms(self, config: GroupConfig) -> int:
        """How often its members beat."""
        return config.share_heartbeat_interval_ms

    def _persist_us(self) -> int:
        """Until a record of the state is written, replicated and answered."""
        cluster = self.context.scenario.cluster
        between_us = 2 * cluster.network.broker.mean_us if cluster.brokers > 1 else 0
        return 2 * between_us + cluster.append.sample(self._rng)

    def new_ownership(self) -> SharedOwnership:
        """Who writes down which members may fetch what."""
        return SharedOwnership(self.context, self.pods, self.broker.observer.check, self.broker, self.leaders)

    def new_process(self, pod: Pod, around: Surroundings) -> Process:
        """A process whose consumer shares its records with others."""
        client = partial(ShareClient, leaders=self.leaders, leader_of=self._leader_of)
        return ShareProcess(pod, around, client, self._accounts, self.poison)

    def _leader_of(self, number: int) -> int:
        """The broker that leads a partition, as far as clients know."""
        if self.broker.coordination is not None:
            return self.broker.coordination.leader_of(number)
        name = self.context.partitions.names[number]
        assert self._replicas is not None
        return self._replicas.replicas(name.topic, name.partition)[0]

    # --- topics

    def topics_changed(self, topics: TopicReplicas) -> None:
        """Keep the state of new partitions apart, forget that of topics that are gone, and follow the rates."""
        context = self.context
        self._replicas = topics
        image = context.image.topics.values()
        self.leaders.kept.partition_counts = {topic.topic_id: topic.partition_count for topic in image}
        gone = [number for number, _ in self.leaders.partitions() if context.partitions.deleted_us[number] is not None]
        self.leaders.forget(gone)
        arrivals, ledger = context.ledger.arrivals, context.ledger
        for number, rate_uhz in enumerate(arrivals.rate_uhz):
            ledger.is_caught_up[number] = True  # what waits is counted here, record by record
            if rate_uhz != self._rates.get(number, 0):
                ledger.backlog[ledger.topic[number]].bend(context.loop.now_us, rate_uhz - self._rates.get(number, 0))
                self._rates[number] = rate_uhz
        self.leaders.rates_changed()

    # --- what the coordinator has done for it

    def perform(self, effect: Effect) -> None:
        """Begin the state of partitions that the group is to read, and tell the coordinator."""
        assert isinstance(effect, InitializeShareState), effect
        now_ms, found = self.broker.clock_ms(self.context.loop.now_us), []
        for topic in effect.topics:
            told = []
            for start in topic.partitions:
                key = SharePartitionKey(effect.group_id, topic.topic_id, start.partition)
                answer = self.leaders.kept.initialize(key, start.state_epoch, start.start_offset, now_ms)
                for record in answer.records:
                    self.leaders.kept.replay(0, record)
                told.append(_error(start.partition, answer.value))
            found.append((topic.topic_id, tuple(told)))
        request_id = next(self.context.request_ids)
        outcome = ShareStateInitialized(request_id=request_id, call=effect, topics=tuple(found))
        self.context.loop.at(self.context.loop.now_us + self._persist_us(), self.broker.tell, outcome)

    def poison_next(self, topic: str, records: int) -> bool:
        """The next records are bad, spread over the partitions."""
        numbers = self.context.partitions.present.get(topic, []) if self.context.has_traffic else []
        for place in range(records if numbers else 0):
            number = numbers[place % len(numbers)]
            self.poison.add(number, self.leaders.end_offset(number) + place // len(numbers))
        return bool(numbers)

    def settled(self) -> None:
        """Look at what holds of any group, and that no record is lost."""
        self.broker.observer.check.settled(has_positions=False)
        self._accounts.close()
        self._accounts.check(self.leaders.partitions())


def _error(partition: int, refusal: StateRefusal | None) -> ShareStateError:
    return ShareStateError(partition) if refusal is None else ShareStateError(partition, refusal.error, refusal.message)
