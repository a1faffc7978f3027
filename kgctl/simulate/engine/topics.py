"""The cluster's topics in a run: their images, who subscribes to them, and how their traffic is shared out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from kgctl.model.partitions import MetadataImage, TopicMetadata
from kgctl.simulate.engine.loop import draw_uuid
from kgctl.simulate.recording.owners import Cause
from kgctl.simulate.recording.traffic import split_rate
from kgctl.simulate.scenario.model import MemberSet, Topic

if TYPE_CHECKING:
    from kgctl.simulate.engine.simulation import World


class Topics:
    """Changes the cluster's topics."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rate_uhz: dict[str, int] = {}
        self._names: dict[str, tuple[int, tuple[str, ...]]] = {}
        """Set of members -> the version of the image, and what they subscribe to of it."""
        self._weights = {traffic.topic: traffic.weights for traffic in world.scenario.traffic}
        self._first = tuple(topic.name for topic in world.scenario.topics)
        self._given: dict[str, Topic] = {}

    def names_for(self, members: MemberSet) -> tuple[str, ...]:
        """The topics that there are and that these members subscribe to."""
        version, names = self._names.get(members.name, (-1, ()))
        if version != self._world.image.version:
            names = tuple(name for name in self._world.image.topics if self.subscribes(members, name))
            self._names[members.name] = self._world.image.version, names
        return names

    def subscribes(self, members: MemberSet, topic: str) -> bool:
        """Whether these members subscribe to a topic, should it exist."""
        if members.pattern is not None:
            return re.fullmatch(members.pattern, topic) is not None
        return topic in (members.topics or self._first)

    def subscription_of(self, members: MemberSet) -> tuple[tuple[str, ...], str | None]:
        """(topics, pattern) as a consumer is told."""
        return ((), members.pattern) if members.pattern is not None else (members.topics or self._first, None)

    def create_all(self) -> None:
        """Those that the scenario begins with."""
        for topic in self._world.scenario.topics:
            self._add(topic)

    def create(self, topic: Topic) -> None:
        """A new one."""
        self._add(topic)
        self._announce()

    def grow(self, name: str, partitions: int) -> None:
        """More partitions: up to this many, which are more than there are."""
        world = self._world
        metadata = world.image.topics[name]
        added = partitions - metadata.partition_count
        self._replace(replace(metadata, partition_count=partitions, partition_racks=self._racks(self._given[name], partitions)))
        self._extend(name, added)
        self._share_out(name)
        self._announce()

    def delete(self, name: str) -> None:
        """It is gone, with its offsets."""
        world = self._world
        now_us = world.loop.now_us
        for pod in world.pods:
            process = pod.process
            if process is not None:
                process.flow.advance(now_us)
        gone = world.partitions.delete(name, now_us)
        for pod in world.pods:
            process = pod.process
            mine = [] if process is None else [number for number in gone if number in process.consuming]
            if process is not None and mine:
                world.ownership.end(process, mine, Cause.DISCOVERY)
        world.ledger.set_rates(gone, [0] * len(gone), now_us)
        world.lanes.delete(gone, now_us)
        world.broker.view.assignments.forget(gone)
        for number in gone:
            world.partitions.numbers.pop(world.partitions.names[number], None)
        world.topic_names.pop(world.image.topics[name].topic_id, None)
        topics = {key: value for key, value in world.image.topics.items() if key != name}
        world.image = MetadataImage(topics, world.image.version + 1)
        self._announce()

    def set_rate(self, name: str, rate_uhz: int) -> None:
        """The rate of the whole topic from now on."""
        self._rate_uhz[name] = rate_uhz
        if name in self._world.image.topics:
            self._share_out(name)

    def _add(self, topic: Topic) -> None:
        world = self._world
        topic_id = draw_uuid(world.randomness.stream("topic", topic.name, str(world.image.version)))
        self._given[topic.name] = topic
        self._replace(TopicMetadata(topic.name, topic_id, topic.partitions, self._racks(topic, topic.partitions)))
        world.topic_names[topic_id] = topic.name
        self._extend(topic.name, topic.partitions)
        self._share_out(topic.name)

    def _extend(self, name: str, count: int) -> None:
        world = self._world
        now_us = world.loop.now_us
        counted = any(self.subscribes(members, name) for members in world.scenario.members)
        added = world.partitions.add(name, count, now_us, counted=counted)
        cause = Cause.DISCOVERY if now_us else Cause.BOOT
        world.lanes.add(added, cause, now_us)
        world.ledger.add(name, count, now_us)
        world.check.topic_has(name, world.image.topics[name].partition_count)

    def _share_out(self, name: str) -> None:
        world = self._world
        now_us = world.loop.now_us
        if now_us:  # commits follow the old rate until now: the sums of lag take those of a quiet time as even
            world.quiet.settle_commits(but_of_batches=True)
        numbers = [number for number in world.partitions.by_topic[name] if world.partitions.deleted_us[number] is None]
        for pod in world.pods:
            if pod.process is not None:
                pod.process.flow.advance(now_us)
        for number in numbers:
            if world.lanes.owner[number] < 0:
                world.ledger.account_waiting(number, now_us)
        rates = split_rate(self._rate_uhz.get(name, 0), len(numbers), self._weights.get(name, ()))
        world.ledger.set_rates(numbers, rates, now_us)

    def _racks(self, topic: Topic, partitions: int) -> tuple[tuple[str, ...], ...]:
        """Replicas where the scenario places them, else spread over the brokers; brokers spread over the racks."""
        cluster = self._world.scenario.cluster
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
        world = self._world
        world.image = MetadataImage({**world.image.topics, metadata.name: metadata}, world.image.version + 1)

    def _announce(self) -> None:
        world = self._world
        world.quiet.thaw_all()
        world.disturbed()
        world.broker.change_topics(world.image)
        world.changed()
