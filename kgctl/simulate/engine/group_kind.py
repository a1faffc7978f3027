"""What is special about one kind of group: who drives a pod's process, who notes what is read, what the coordinator has done.

Groups of consumers are the base; another kind is a subclass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kgctl.coordinator.config import GroupConfig
from kgctl.coordinator.effects import Effect
from kgctl.simulate.engine.broker import SimulatedBroker
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.ownership import Ownership
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, Surroundings
from kgctl.simulate.scenario.model import Topic


class TopicReplicas(Protocol):
    """Which brokers have a partition, the preferred leader first."""

    def replicas(self, name: str, partition: int) -> tuple[int, ...]: ...


class GroupKind:
    """One group of a run. It is made when the run has its broker, and before there are topics and pods."""

    def __init__(self, context: RunContext, pods: Sequence[Pod], broker: SimulatedBroker) -> None:
        self.context = context
        self.pods = pods
        self.broker = broker
        broker.perform = self.perform

    def new_ownership(self) -> Ownership:
        """Who writes down what is read: `Surroundings.ownership` of the processes."""
        return Ownership(self.context, self.pods, self.broker.observer.check, self.broker)

    def new_process(self, pod: Pod, around: Surroundings) -> Process:
        """A process of a pod, which has not begun to boot."""
        return Process(pod, around)

    def heartbeat_ms(self, config: GroupConfig) -> int:
        """How often the coordinator has members beat that do not say it themselves."""
        return config.consumer_heartbeat_interval_ms

    def perform(self, effect: Effect) -> None:
        """Do what the coordinator wants done, of what only this kind of group has done."""
        raise AssertionError(f"nothing does {type(effect).__name__} for a group of consumers")

    def own_topics(self) -> list[Topic]:
        """Topics that the group has beside those of the scenario, from the beginning on."""
        return []

    def topics_changed(self, topics: TopicReplicas) -> None:
        """Topics have come, grown or gone, or are written to at other rates from now on."""

    def poison_next(self, topic: str, records: int) -> bool:  # noqa: ARG002  # nobody can tell
        """The next records of a topic are bad; whether that matters to anybody here."""
        return False

    def settled(self) -> None:
        """The run is over and its accounts are settled: look at what must hold."""
        self.broker.observer.check.settled()
