"""The other brokers: where the coordinator is, which topics there are, where partitions begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.member.api import Answer, FindCoordinatorResult, ListOffsets, ListOffsetsResult, NetworkError
from kgctl.simulate.recording.history import Counted
from kgctl.simulate.recording.traffic import UNIT_PR

if TYPE_CHECKING:
    from kgctl.simulate.engine.process import Process
    from kgctl.simulate.engine.simulation import Simulation


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
