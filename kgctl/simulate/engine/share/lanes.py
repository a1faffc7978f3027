"""Who reads the partitions of a share group: several members each. It is without a consumer when none of them goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kgctl.member.api import StopReason
from kgctl.model.groups import TopicPartition
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.invariants import Invariants
from kgctl.simulate.engine.ownership import MAX_POLL, Committing, Ownership
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.engine.share.leaders import ShareBrokers
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.recording.trace import Disowned, Kicked, Owned
from kgctl.simulate.recording.traffic import Flow
from kgctl.simulate.scenario.vocabulary import GapCause


class SharedOwnership(Ownership):
    """A lane has the first member that goes on; another one takes its place without a gap."""

    def __init__(
        self, context: RunContext, pods: Sequence[Pod], check: Invariants, coordinator: Committing, leaders: ShareBrokers
    ) -> None:
        super().__init__(context, pods, check, coordinator)
        self._leaders = leaders
        self._readers_of: dict[int, dict[Process, None]] = {}

    def start(self, process: Process, positions: Mapping[TopicPartition, int]) -> None:
        """The process may fetch these partitions."""
        context, numbers = self._context, self._partitions.numbers_of(positions)
        process.consuming.update(dict.fromkeys(numbers))
        for number in numbers:
            self._readers_of.setdefault(number, {})[process] = None
        self._note_discoveries(numbers, context.loop.now_us)
        self._seat(numbers, GapCause.FETCH)
        context.emit(Owned, process.pod.name, self._names(numbers))
        context.changed()

    def stop(self, process: Process, partitions: Iterable[TopicPartition], reason: StopReason) -> None:
        """The process fetches these no more."""
        numbers = self._partitions.numbers_of(partitions)
        if reason is StopReason.POLL_TIMEOUT and numbers:
            self._context.emit(Kicked, process.pod.name, what=MAX_POLL)
        self.end(process, numbers, self._cause(process, reason))

    def end(self, process: Process, numbers: list[int], cause: GapCause) -> None:
        """Whatever the reason, these are fetched by the others alone."""
        if not numbers:
            return
        context = self._context
        for number in numbers:
            process.consuming.pop(number, None)
            self._readers_of.get(number, {}).pop(process, None)
        process.lost = tuple(numbers)
        cause = self._coordinator.cause_of_gap(numbers, GapCause.BOOT if context.running == 0 else cause)
        self._seat(numbers, cause)
        context.emit(Disowned, process.pod.name, cause.label, self._names(numbers))
        context.changed()

    def _seat(self, numbers: Iterable[int], cause: GapCause) -> None:
        owners, now_us = self._owners, self._context.loop.now_us
        for number in numbers:
            before = owners.owner[number]
            going_on = [process for process in self._readers_of.get(number, ()) if _goes_on(process)]
            pods = [process.pod.number for process in going_on]
            after = before if before in pods else next(iter(pods), NOBODY)
            if after == before:
                continue
            if before != NOBODY:
                owners.release(before, [number], cause, now_us)
            owners.assign(after, [number])
            if after != NOBODY:
                owners.own(after, [number], now_us)

    def crashed(self, process: Process, cause: GapCause) -> None:
        """The process is gone."""
        self.end(process, list(process.consuming), cause)

    def suspend(self, process: Process, cause: GapCause) -> None:
        """The process cannot go on at present."""
        self._seat(process.consuming, cause)
        self._context.changed()

    def resume(self, process: Process) -> None:
        """The process goes on."""
        self._seat(process.consuming, GapCause.FETCH)
        self._context.changed()

    def positions_of(self, flow: Flow, partitions: Iterable[TopicPartition], now_us: int) -> dict[TopicPartition, int]:  # noqa: ARG002
        """Return nothing: share groups have no positions."""
        return {}

    def settle_unseen(self, process: Process) -> None:  # whoever it is
        """Do nothing: what was acknowledged was told."""

    def reader_of(self, number: int) -> Process | None:  # noqa: ARG002  # whichever it is
        """Return none: any member may be the first to find a new leader."""
        return None

    def darken(self, numbers: list[int]) -> None:
        """The broker that leads these is gone, with what it knew."""
        self._leaders.lose([number for number in numbers if not self._coordinator.has_leader(number)])
        self._owners.darken(numbers, self._context.loop.now_us)
        self._context.changed()

    def lighten(self, numbers: list[int]) -> None:
        """Another broker leads these."""
        self._owners.lighten(numbers, self._context.loop.now_us)
        self._leaders.lead(numbers)
        self._context.changed()


def _goes_on(process: Process) -> bool:
    return not process.is_suspended and not process.is_cut_off
