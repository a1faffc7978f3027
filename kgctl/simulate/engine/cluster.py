"""The cluster around the group: its topics with their traffic, and what any broker answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kgctl.member.api import Answer, FindCoordinatorResult, ListOffsets, ListOffsetsResult, NetworkError
from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.simulate.engine.loop import draw_uuid
from kgctl.simulate.recording.history import Counted
from kgctl.simulate.recording.traffic import UNIT_PR, split_rate
from kgctl.simulate.scenario.model import MemberSet, Topic
from kgctl.simulate.scenario.vocabulary import Cause

if TYPE_CHECKING:
    from kgctl.simulate.engine.process import Process
    from kgctl.simulate.engine.simulation import Simulation


class Topics:
    """Changes the cluster's topics."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._rate_uhz: dict[str, int] = {}
        self._weights = {traffic.topic: traffic.weights for traffic in simulation.scenario.traffic}
        self._first = tuple(topic.name for topic in simulation.scenario.topics)
        self._given: dict[str, Topic] = {}

    def subscription_of(self, members: MemberSet) -> tuple[tuple[str, ...], str | None]:
        """(topics, pattern) as a consumer is told."""
        return ((), members.pattern) if members.pattern is not None else (members.topics or self._first, None)

    def create_all(self) -> None:
        """Those that the scenario begins with."""
        for topic in self._simulation.scenario.topics:
            self._add(topic)

    def create(self, topic: Topic) -> None:
        """A new one."""
        self._add(topic)
        self._announce()

    def grow(self, name: str, partitions: int) -> None:
        """More partitions: up to this many, which are more than there are."""
        simulation = self._simulation
        metadata = simulation.image.topics[name]
        added = partitions - metadata.partition_count
        self._replace(replace(metadata, partition_count=partitions, partition_racks=self._racks(self._given[name], partitions)))
        self._extend(name, added)
        self._share_out(name)
        self._announce()

    def delete(self, name: str) -> None:
        """It is gone, with its offsets."""
        simulation = self._simulation
        now_us = simulation.loop.now_us
        for pod in simulation.pods:
            process = pod.process
            if process is not None:
                process.flow.advance(now_us)
        gone = simulation.partitions.delete(name, now_us)
        for pod in simulation.pods:
            process = pod.process
            mine = [] if process is None else [number for number in gone if number in process.consuming]
            if process is not None and mine:
                simulation.ownership.end(process, mine, Cause.DISCOVERY)
        simulation.ledger.set_rates(gone, [0] * len(gone), now_us)
        simulation.owners.lighten([number for number in gone if number in simulation.owners.dark], now_us)
        simulation.owners.delete(gone, now_us)
        simulation.broker.observer.assignments.forget(gone)
        for number in gone:
            simulation.partitions.numbers.pop(simulation.partitions.names[number], None)
        simulation.topic_names.pop(simulation.image.topics[name].topic_id, None)
        topics = {key: value for key, value in simulation.image.topics.items() if key != name}
        simulation.recording.image = MetadataImage(topics, simulation.image.version + 1)
        self._announce()

    def set_rate(self, name: str, rate_uhz: int) -> None:
        """The rate of the whole topic from now on."""
        self._rate_uhz[name] = rate_uhz
        if name in self._simulation.image.topics:
            self._share_out(name)

    def _add(self, topic: Topic) -> None:
        simulation = self._simulation
        topic_id = draw_uuid(simulation.randomness.stream("topic", topic.name, str(simulation.image.version)))
        self._given[topic.name] = topic
        self._replace(TopicMetadata(topic.name, topic_id, topic.partitions, self._racks(topic, topic.partitions)))
        simulation.topic_names[topic_id] = topic.name
        self._extend(topic.name, topic.partitions)
        self._share_out(topic.name)

    def _extend(self, name: str, count: int) -> None:
        simulation = self._simulation
        now_us = simulation.loop.now_us
        counted = any(simulation.recording.subscribes(members, name) for members in simulation.scenario.members)
        added = simulation.partitions.add(name, count, now_us, counted=counted)
        cause = Cause.DISCOVERY if now_us else Cause.BOOT
        simulation.owners.add(added, cause, now_us)
        simulation.ledger.add(name, count, now_us)
        simulation.check.topic_has(name, simulation.image.topics[name].partition_count)
        if now_us and simulation.broker.coordination is not None:
            simulation.broker.coordination.leaders.look()

    def _share_out(self, name: str) -> None:
        simulation = self._simulation
        now_us = simulation.loop.now_us
        if now_us:  # commits follow the old rate until now: the sums of lag take those of a quiet time as even
            simulation.fast_forward.settle_commits(but_of_batches=True)
        numbers = [number for number in simulation.partitions.by_topic[name] if simulation.partitions.deleted_us[number] is None]
        for pod in simulation.pods:
            if pod.process is not None:
                pod.process.flow.advance(now_us)
        for number in numbers:
            if simulation.owners.owner[number] < 0 or number in simulation.owners.dark:
                simulation.ledger.account_waiting(number, now_us)
        rates = split_rate(self._rate_uhz.get(name, 0), len(numbers), self._weights.get(name, ()))
        simulation.ledger.set_rates(numbers, rates, now_us)

    def replicas(self, name: str, partition: int) -> tuple[int, ...]:
        """Return the brokers, from 1, that have a partition: as the scenario places it, else spread one after the other."""
        brokers = self._simulation.scenario.cluster.brokers
        topic = self._given[name]
        spread = range(partition, partition + min(topic.replicas, brokers))
        return topic.placement.get(partition) or tuple(broker % brokers + 1 for broker in spread)

    def _racks(self, topic: Topic, partitions: int) -> tuple[tuple[str, ...], ...]:
        """Replicas where the scenario places them, else spread over the brokers; brokers spread over the racks."""
        cluster = self._simulation.scenario.cluster
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
        simulation = self._simulation
        simulation.recording.image = MetadataImage(
            {**simulation.image.topics, metadata.name: metadata}, simulation.image.version + 1
        )

    def _announce(self) -> None:
        simulation = self._simulation
        simulation.fast_forward.resume_all()
        simulation.disturbed()
        simulation.broker.change_topics(simulation.image)
        simulation.changed()


class Cluster:
    """Answers what any broker can answer."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def find_coordinator(self, process: Process, correlation_id: int) -> None:
        """FindCoordinator."""
        self._ask(process, "FindCoordinator", (correlation_id, None))

    def metadata(self, process: Process, correlation_id: int) -> None:
        """Metadata."""
        self._ask(process, "Metadata", (correlation_id, None))

    def list_offsets(self, process: Process, action: ListOffsets) -> None:
        """ListOffsets."""
        self._ask(process, "ListOffsets", (action.correlation_id, action))

    def _ask(self, process: Process, api: str, question: tuple[int, ListOffsets | None]) -> None:
        simulation = self._simulation
        arrival_us = process.pod.link.arrival_us(simulation.loop.now_us, 0)
        if arrival_us is not None:
            simulation.loop.at(arrival_us, self._answer, (process, api, question))

    def _answer(self, message: tuple[Process, str, tuple[int, ListOffsets | None]]) -> None:
        process, api, (correlation_id, question) = message
        simulation = self._simulation
        simulation.history.requests.append(Counted(simulation.loop.now_us, 1, process.pod.number, api))
        arrival_us = process.pod.link.arrival_us(simulation.loop.now_us, 1)
        if arrival_us is None:
            return
        coordination = simulation.broker.coordination
        if coordination is not None and coordination.is_dark:
            simulation.loop.at(arrival_us, process.on_reply, (correlation_id, NetworkError(correlation_id)))
            return
        if api == "Metadata":
            simulation.loop.at(arrival_us, process.on_metadata, simulation.image)
            return
        result: Answer
        if question is not None:
            result = self._offsets(question)
        else:
            result = FindCoordinatorResult() if coordination is None else coordination.coordinator_for(process)
        simulation.loop.at(arrival_us, process.on_reply, (correlation_id, result))

    def _offsets(self, question: ListOffsets) -> ListOffsetsResult:
        simulation = self._simulation
        offsets = {}
        for partition in question.partitions:
            number = simulation.partitions.numbers.get(partition)
            if number is not None:
                total = simulation.ledger.arrivals.total_pr(number, simulation.loop.now_us) // UNIT_PR
                offsets[partition] = total if question.strategy == "latest" else 0
        return ListOffsetsResult(offsets)
