"""The other brokers: where the coordinator is, which topics there are, where partitions begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from kgctl.coordinator.effects import AppendRecord
from kgctl.member.api import Answer, FindCoordinatorResult, ListOffsets, ListOffsetsResult, NetworkError
from kgctl.model.partitions import TopicMetadata, TopicPartition
from kgctl.simulate.recording.history import Counted
from kgctl.simulate.recording.traffic import UNIT_PR

if TYPE_CHECKING:
    from kgctl.simulate.engine.process import Process
    from kgctl.simulate.engine.simulation import World


class Cluster:
    """Answers what any broker can answer."""

    def __init__(self, world: World) -> None:
        self._world = world

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
        world = self._world
        arrival_us = process.pod.link.arrival_us(world.loop.now_us, 0)
        if arrival_us is not None:
            world.loop.at(arrival_us, self._answer, (process, api, question))

    def _answer(self, message: tuple[Process, str, tuple[int, ListOffsets | None]]) -> None:
        process, api, (correlation_id, question) = message
        world = self._world
        world.history.requests.append(Counted(world.loop.now_us, 1, process.pod.number, api))
        arrival_us = process.pod.link.arrival_us(world.loop.now_us, 1)
        if arrival_us is None:
            return
        coordination = world.broker.coordination
        if coordination is not None and coordination.is_dark:
            world.loop.at(arrival_us, process.on_reply, (correlation_id, NetworkError(correlation_id)))
            return
        if api == "Metadata":
            world.loop.at(arrival_us, process.on_metadata, world.image)
            return
        result: Answer
        if question is not None:
            result = self._offsets(question)
        else:
            result = FindCoordinatorResult() if coordination is None else coordination.coordinator_for(process)
        world.loop.at(arrival_us, process.on_reply, (correlation_id, result))

    def _offsets(self, question: ListOffsets) -> ListOffsetsResult:
        world = self._world
        offsets = {}
        for partition in question.partitions:
            number = world.partitions.numbers.get(partition)
            if number is not None:
                total = world.ledger.arrivals.total_pr(number, world.loop.now_us) // UNIT_PR
                offsets[partition] = total if question.strategy == "latest" else 0
        return ListOffsetsResult(offsets)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster at ``now_ms`` on the coordinator's clock, the end of a run.

    ``records`` are all that the coordinator wrote, with their times on that clock, in order. ``end_offsets`` has each partition
    of ``topics``. ``properties``: the broker configs of the scenario.
    """

    now_ms: int
    records: tuple[tuple[int, AppendRecord], ...]
    topics: Mapping[str, TopicMetadata]
    end_offsets: Mapping[TopicPartition, int]
    properties: Mapping[str, str]


def cluster_state(world: World) -> ClusterState:
    """The cluster of a run as it is now. The run must have kept its records."""
    assert world.records is not None, "the run was not asked to keep its records"
    now_us = world.loop.now_us
    clock_ms = world.broker.clock_ms
    existing = (number for number, deleted_us in enumerate(world.partitions.deleted_us) if deleted_us is None)
    return ClusterState(
        now_ms=clock_ms(now_us),
        records=tuple((clock_ms(at_us), effect) for at_us, effect in sorted(world.records, key=itemgetter(0))),
        topics=dict(world.image.topics),
        end_offsets={
            world.partitions.names[number]: world.ledger.arrivals.total_pr(number, now_us) // UNIT_PR for number in existing
        },
        properties=dict(world.scenario.cluster.config),
    )
