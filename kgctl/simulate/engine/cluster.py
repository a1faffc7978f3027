"""The cluster around the group: its topics with their traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.simulate.engine.broker import SimulatedBroker
from kgctl.simulate.engine.context import RunContext, draw_uuid
from kgctl.simulate.engine.fast_forward import FastForward
from kgctl.simulate.engine.group_kind import GroupKind
from kgctl.simulate.engine.ownership import Ownership
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.recording.traffic import split_rate
from kgctl.simulate.scenario.model import MemberSet, Topic
from kgctl.simulate.scenario.vocabulary import GapCause


class TopicChanger:
    """Changes the cluster's topics."""

    def __init__(
        self,
        context: RunContext,
        pods: Sequence[Pod],
        broker: SimulatedBroker,
        ownership: Ownership,
        fast_forward: FastForward,
        *,
        kind: GroupKind,
    ) -> None:
        self._context = context
        self._pods = pods
        self._broker = broker
        self._ownership = ownership
        self._fast_forward = fast_forward
        self._kind = kind
        self._rate_uhz: dict[str, int] = {}
        self._weights = {traffic.topic: traffic.weights for traffic in context.scenario.traffic}
        self._first = tuple(topic.name for topic in context.scenario.topics)
        self._given: dict[str, Topic] = {}

    def subscription_of(self, members: MemberSet) -> tuple[tuple[str, ...], str | None]:
        return ((), members.pattern) if members.pattern is not None else (members.topics or self._first, None)

    def create_all(self) -> None:
        for topic in (*self._context.scenario.topics, *self._kind.own_topics()):
            self._add(topic)

    def create(self, topic: Topic) -> None:
        self._add(topic)
        self._announce()

    def grow(self, name: str, partitions: int) -> None:
        """Raise the topic's number of partitions to this one, which is higher than before."""
        context = self._context
        metadata = context.image.topics[name]
        added = partitions - metadata.partition_count
        self._replace(replace(metadata, partition_count=partitions, partition_racks=self._racks(self._given[name], partitions)))
        self._extend(name, added)
        self._share_out(name)
        self._announce()

    def delete(self, name: str) -> None:
        context = self._context
        now_us = context.loop.now_us
        self._ownership.account(())
        gone = context.partitions.delete(name, now_us)
        for pod in self._pods:
            process = pod.process
            mine = [] if process is None else [number for number in gone if number in process.consuming]
            if process is not None and mine:
                self._ownership.end(process, mine, GapCause.DISCOVERY)
        context.ledger.set_rates(gone, [0] * len(gone), now_us)
        context.owners.lighten([number for number in gone if number in context.owners.dark], now_us)
        context.owners.delete(gone, now_us)
        self._broker.observer.assignments.forget(gone)
        for number in gone:
            context.partitions.numbers.pop(context.partitions.names[number], None)
        context.topic_names.pop(context.image.topics[name].topic_id, None)
        topics = {key: value for key, value in context.image.topics.items() if key != name}
        context.recording.image = MetadataImage(topics, context.image.version + 1)
        self._announce()

    def rate(self, name: str) -> int:
        return self._rate_uhz.get(name, 0)

    def set_rate(self, name: str, rate_uhz: int) -> None:
        self._rate_uhz[name] = rate_uhz
        if name in self._context.image.topics:
            self._share_out(name)

    def _add(self, topic: Topic) -> None:
        context = self._context
        topic_id = draw_uuid(context.randomness.stream("topic", topic.name, str(context.image.version)))
        self._given[topic.name] = topic
        self._replace(TopicMetadata(topic.name, topic_id, topic.partitions, self._racks(topic, topic.partitions)))
        context.topic_names[topic_id] = topic.name
        self._extend(topic.name, topic.partitions)
        self._share_out(topic.name)

    def _extend(self, name: str, count: int) -> None:
        context = self._context
        now_us = context.loop.now_us
        counted = any(context.scenario.subscribes(members, name) for members in context.scenario.members)
        added = context.partitions.add(name, count, now_us, counted=counted)
        cause = GapCause.DISCOVERY if now_us else GapCause.BOOT
        context.owners.add(added, cause, now_us)
        context.ledger.add(name, count, now_us)
        self._broker.observer.check.topic_has(name, context.image.topics[name].partition_count)
        if now_us and self._broker.coordination is not None:
            self._broker.coordination.look_at_leaders()

    def _share_out(self, name: str) -> None:
        context = self._context
        now_us = context.loop.now_us
        if now_us:  # commits follow the old rate until now: the sums of lag take those of a quiet time as even
            self._fast_forward.settle_commits(but_of_batches=True)
        numbers = [number for number in context.partitions.by_topic[name] if context.partitions.deleted_us[number] is None]
        self._ownership.account(numbers)
        rates = split_rate(self._rate_uhz.get(name, 0), len(numbers), self._weights.get(name, ()))
        context.ledger.set_rates(numbers, rates, now_us)
        self._kind.topics_changed(self)

    def replicas(self, name: str, partition: int) -> tuple[int, ...]:
        """Return the brokers, from 1, that have a partition: as the scenario places it, else spread one after the other."""
        brokers = self._context.scenario.cluster.brokers
        topic = self._given[name]
        spread = range(partition, partition + min(topic.replicas, brokers))
        return topic.placement.get(partition) or tuple(broker % brokers + 1 for broker in spread)

    def _racks(self, topic: Topic, partitions: int) -> tuple[tuple[str, ...], ...]:
        """Replicas where the scenario places them, else spread over the brokers; brokers spread over the racks."""
        cluster = self._context.scenario.cluster
        if not cluster.racks:
            return ()
        racks = [cluster.racks[broker % len(cluster.racks)] for broker in range(cluster.brokers)]
        count = min(topic.replicas, cluster.brokers)
        spread = [range(number + 1, number + 1 + count) for number in range(partitions)]
        return tuple(
            tuple(racks[(broker - 1) % len(racks)] for broker in topic.placement.get(number, brokers))
            for number, brokers in enumerate(spread)
        )

    def _replace(self, metadata: TopicMetadata) -> None:
        context = self._context
        context.recording.image = MetadataImage({**context.image.topics, metadata.name: metadata}, context.image.version + 1)

    def _announce(self) -> None:
        context = self._context
        self._fast_forward.resume_all()
        context.disturbed()
        self._broker.change_topics(context.image)
        self._kind.topics_changed(self)
        context.changed()
