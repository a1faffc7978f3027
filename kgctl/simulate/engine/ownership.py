"""Who consumes what: every start and stop goes through here, into the lanes, the ledger of records and the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kgctl.member.api import CommitDone, StopReason
from kgctl.member.runtime import draw
from kgctl.model.groups import TopicPartition
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.invariants import Invariants
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.recording.trace import (
    COMMIT_FAILED,
    CommitRefused,
    Committed,
    Discovered,
    Disowned,
    Kicked,
    Overtook,
    Owned,
    RecordsLost,
    RecordsRepeated,
)
from kgctl.simulate.recording.traffic import Flow, QuietCommits
from kgctl.simulate.scenario.fields import CommitMode
from kgctl.simulate.scenario.quantities import UNIT_PR
from kgctl.simulate.scenario.vocabulary import GapCause

MAX_POLL = "max.poll.interval.ms"


class Committing(Protocol):
    """The coordinator, as far as reading depends on it."""

    def cause_of_gap(self, numbers: list[int], cause: GapCause) -> GapCause: ...
    def commit_unseen(self, process: Process, offsets: dict[int, int]) -> None: ...
    def has_leader(self, number: int) -> bool: ...


class Ownership:
    """Starts and stops of consuming, and the commits between them."""

    def __init__(self, context: RunContext, pods: Sequence[Pod], check: Invariants, coordinator: Committing) -> None:
        self._context = context
        self._pods = pods
        self._check = check
        self._coordinator = coordinator
        self._partitions = context.partitions
        self._owners = context.owners
        self._ledger = context.ledger
        self._numbers = context.partitions.numbers
        self._stored = context.ledger.stored
        self._readers: dict[int, Process] = {}

    # --- what members do

    def start(self, process: Process, positions: Mapping[TopicPartition, int]) -> None:
        """The process reads these partitions from these offsets on."""
        now_us = self._context.loop.now_us
        numbers = self._partitions.numbers_of(positions)
        taken = self._taken(process, numbers)
        process.flow.advance(now_us)
        if self._context.has_traffic:
            for partition, offset in positions.items():
                number = self._numbers.get(partition)
                if number is not None and number not in taken:
                    self._begin(process, number, offset, now_us)
        if not process.consuming:
            process.polls.reads_from(now_us)
        process.consuming.update(dict.fromkeys(numbers))
        self._note_discoveries(numbers, now_us)
        if taken:
            self._owners.own_again(process.pod.number, taken, now_us)
            numbers = [number for number in numbers if number not in taken]
        self._owners.own(process.pod.number, numbers, now_us)
        self._context.emit(Owned, process.pod.name, self._names([*numbers, *taken]))
        self._context.changed()

    def stop(self, process: Process, partitions: Iterable[TopicPartition], reason: StopReason) -> None:
        """The member says that the process reads these no longer."""
        numbers = self._partitions.numbers_of(partitions)
        if process.hands_over:  # and reads on while others join: its last commit may be refused
            self.settle_unseen(process)
        if reason is StopReason.POLL_TIMEOUT and numbers:
            self._kicked(process, numbers)
        elif reason is not StopReason.CLOSED and numbers and _works_on_when_revoked(process):
            self._leaves_batch(process, numbers)
        if reason is not StopReason.CLOSED and process.config.behaviour.passes_on_late and self._context.has_traffic:
            self._pass_on(process, numbers)
        self.end(process, numbers, self._cause(process, reason))

    def _pass_on(self, process: Process, numbers: list[int]) -> None:
        """What fetches that are under way bring, the one record that ends their wait, is read, and again by the next owner."""
        ledger, rng = self._ledger, process.pod.rng("fetched late")
        late = [number for number in numbers if ledger.arrivals.rate_uhz[number] and ledger.is_caught_up[number]]
        by_topic = Counter(ledger.topic[number] for number in late if draw(rng, 1))
        for topic, count in by_topic.items():
            self._context.emit(RecordsRepeated, process.pod.name, count, topic)

    def _kicked(self, process: Process, numbers: list[int]) -> None:
        """It is out for want of polls, and processes the rest of its batch, which others read once more."""
        context = self._context
        process.lost_its_batch = True
        context.emit(Kicked, process.pod.name, what=MAX_POLL)
        self._rest_is_read_twice(process, numbers)

    def _leaves_batch(self, process: Process, numbers: list[int]) -> None:
        """Its client gives these up while the application works: that has committed what is behind it, and processes the rest."""
        now_us = self._context.loop.now_us
        process.polls.upcoming_us(now_us)
        process.unseen_commit_us = max(_committed_us(process, now_us), process.unseen_commit_us)
        self.settle_unseen(process)
        self._rest_is_read_twice(process, numbers)

    def _rest_is_read_twice(self, process: Process, numbers: list[int]) -> None:
        context = self._context
        left = process.polls.left(context.loop.now_us)
        by_topic = Counter(self._ledger.topic[number] for number in numbers)
        for topic, count in by_topic.items() if left else ():
            context.emit(RecordsRepeated, process.pod.name, left * count // len(numbers), topic)

    def end(self, process: Process, numbers: list[int], cause: GapCause) -> None:
        if not numbers:
            return
        context = self._context
        now_us = context.loop.now_us
        process.flow.advance(now_us)
        if context.has_traffic:
            for number in numbers:
                self._finish(process, number, now_us)
        if numbers == list(process.consuming):
            process.consuming.clear()
        else:
            for number in numbers:
                process.consuming.pop(number, None)
        if context.running == 0:
            cause = GapCause.BOOT
        if cause is not GapCause.REBALANCE:
            process.lost = tuple(numbers)
        cause = self._coordinator.cause_of_gap(numbers, cause)
        self._owners.release(process.pod.number, numbers, cause, now_us)
        if context.has_traffic and self._owners.had_doubles:
            self._hand_back(numbers)
        context.emit(Disowned, process.pod.name, cause.label, self._names(numbers))
        context.changed()

    def taken_over(self, process: Process, partitions: Iterable[TopicPartition]) -> None:
        """The member has got these: what is left is its callback and the offsets."""
        now_us = self._context.loop.now_us
        numbers = self._partitions.numbers_of(partitions)
        if process.consuming:
            numbers = [number for number in numbers if number not in process.consuming]
        cause = self._coordinator.cause_of_gap(numbers, GapCause.FETCH)
        self._owners.set_cause(numbers, cause, now_us)
        self._context.changed()

    # --- what happens to processes

    def crashed(self, process: Process, cause: GapCause) -> None:
        """The process is gone with everything that it read."""
        if process.commit.mode is CommitMode.BEFORE_BATCH and process.member is not None:
            self._lose_batch(process)
        self.settle_unseen(process)
        self.end(process, list(process.consuming), cause)

    def _lose_batch(self, process: Process) -> None:
        """The batch under way is committed: what is left of it is never processed."""
        now_us = self._context.loop.now_us
        process.unseen_commit_us = now_us
        process.flow.advance(now_us)
        left_us = process.polls.upcoming_us(now_us) - now_us
        before = self._positions_at(process, now_us - left_us) if self._context.has_traffic else {}
        for number, offset in before.items():
            lost = self._ledger.position(number, now_us) - offset
            self._context.emit(RecordsLost, process.pod.name, lost, self._ledger.topic[number])

    def suspend(self, process: Process, cause: GapCause) -> None:
        """The process cannot read at present: nobody consumes what it owns."""
        now_us = self._context.loop.now_us
        self._owners.release(process.pod.number, list(process.consuming), cause, now_us)
        self._context.changed()

    def resume(self, process: Process) -> None:
        """Record that a stopped process reads on, unaware of what happened meanwhile."""
        now_us = self._context.loop.now_us
        self._owners.own_again(process.pod.number, list(process.consuming), now_us)
        self._context.changed()

    # --- records

    def account(self, numbers: Iterable[int]) -> None:
        """Bring what is read up to the present, and what waits of these partitions where nobody reads them."""
        now_us = self._context.loop.now_us
        for pod in self._pods:
            if pod.process is not None:
                pod.process.flow.advance(now_us)
        for number in numbers:
            if self._owners.owner[number] < 0 or number in self._owners.dark:
                self._ledger.account_waiting(number, now_us)

    def positions_of(self, flow: Flow, partitions: Iterable[TopicPartition], now_us: int) -> dict[TopicPartition, int]:
        """What a commit would hold; without traffic only the first commit says something."""
        numbers = self._numbers
        if not self._context.has_traffic:
            if not self._ledger.never_stored:
                return {}
            stored = self._stored
            return {partition: 0 for partition in partitions if partition in numbers and stored[numbers[partition]] < 0}
        flow.advance(now_us)
        position = self._ledger.position
        return {partition: position(numbers[partition], now_us) for partition in partitions if partition in numbers}

    def committed(self, partition: TopicPartition, offset: int) -> None:
        number = self._partitions.numbers.get(partition)
        if number is not None:
            self._check.committed(number, self._ledger.stored[number], offset)
            self._ledger.store(number, offset, self._context.loop.now_us)

    def commit_answered(self, process: Process, action: CommitDone) -> None:
        context, records = self._context, sum(action.offsets.values())
        context.emit(Committed, process.pod.name, len(action.offsets), records, action.error.name)

    def commit_failed(self, process: Process) -> None:
        """The batch is over and its commit refused by the client: it is out of the group (Kafka: ``CommitFailedException``)."""
        self._context.emit(CommitRefused, process.pod.name, what=COMMIT_FAILED)

    def settle_unseen(self, process: Process) -> None:
        """Commits that were taken as done become the coordinator's: the process cannot do better any more."""
        if self._context.has_traffic and process.unseen_commit_us >= 0 and process.consuming and process.member is not None:
            process.flow.advance(self._context.loop.now_us)
            offsets = self._positions_at(process, process.unseen_commit_us)
            newer = {number: offset for number, offset in offsets.items() if offset > self._ledger.stored[number]}
            if newer:
                self._coordinator.commit_unseen(process, newer)
            process.unseen_commit_us = -1

    def committed_quietly(self, process: Process, from_us: int, at_us: int, every_us: int) -> None:
        """The process's last commit of a quiet time left at this moment; ``every_us``: the time between two, 0 by batch."""
        process.last_commit_us = process.unseen_commit_us = at_us
        if self._context.has_traffic and process.consuming:
            process.flow.advance(self._context.loop.now_us)
            self._ledger.commit_quietly(self._quiet_commits(process, from_us, at_us, every_us))

    def committed_unseen(self, process: Process, from_us: int, at_us: int, every_us: int) -> None:
        """As `committed_quietly`, for who looks at the lag: the process itself is where it was."""
        if self._context.has_traffic and process.consuming:
            self._ledger.commit_quietly(self._quiet_commits(process, from_us, at_us, every_us), is_guess=True)

    def _positions_at(self, process: Process, at_us: int) -> dict[int, int]:
        return self._quiet_commits(process, at_us, at_us, 0).offsets

    def _quiet_commits(self, process: Process, from_us: int, at_us: int, every_us: int) -> QuietCommits:
        """What it had read at a time of the recent past. Of a backlog: as if it had been read at the present rate since."""
        now_us, ledger = self._context.loop.now_us, self._ledger
        shares = process.flow.shares() if process.flow.rate_uhz else {}
        dark = dict.fromkeys((number for number in process.consuming if number in self._owners.dark), 0)
        behind = {number: shares.get(number, 0) for number in process.consuming if shares and not ledger.is_caught_up[number]}
        found = QuietCommits({}, from_us, at_us, every_us, behind | dark)
        for number in process.consuming:
            read_pr = found.read_pr(ledger.arrivals, number, at_us, now_us)
            found.offsets[number] = max(ledger.position_pr(number, now_us) - read_pr, 0) // UNIT_PR
        return found

    def _begin(self, process: Process, number: int, offset: int, now_us: int) -> None:
        context, ledger = self._context, self._ledger
        is_first = not ledger.has_position[number]
        if number in self._readers:
            self._readers[number].flow.advance(now_us)
            ledger.stop(number, now_us)
            if self._readers[number] is not process:
                other = self._readers[number].pod.name
                context.emit(Overtook, other, number, ledger.position_pr(number, now_us))
        repeated, skipped = ledger.start(number, offset, now_us)
        before = self._readers.get(number)
        if before is not None and before is not process:
            before.flow.partitions.pop(number, None)
        self._readers[number] = process
        self._read_on(process, number, now_us)
        topic, pod = ledger.topic[number], process.pod.name
        if repeated:
            context.emit(RecordsRepeated, pod, repeated, topic)
        if skipped and not (is_first and not self._partitions.created_us[number]):
            context.emit(RecordsLost, pod, skipped, topic)

    def _finish(self, process: Process, number: int, now_us: int) -> None:
        process.flow.partitions.pop(number, None)
        if self._readers.get(number) is process:
            del self._readers[number]
            if number not in self._owners.dark:
                self._ledger.stop(number, now_us)

    def _hand_back(self, numbers: Iterable[int]) -> None:
        """An older consumer is the only one again: it reads on."""
        for number in numbers:
            owner = self._owners.owner[number]
            process = self._pods[owner].process if owner >= 0 else None
            if process is not None and number not in self._readers and number in process.consuming:
                process.flow.advance(self._context.loop.now_us)
                self._readers[number] = process
                self._read_on(process, number, self._context.loop.now_us)

    # --- brokers that are away

    def reader_of(self, number: int) -> Process | None:
        """Who reads this partition, or would if it had a leader."""
        return self._readers.get(number)

    def darken(self, numbers: list[int]) -> None:
        """The broker that leads these is gone: whoever consumes them reads nothing."""
        now_us = self._context.loop.now_us
        for number in numbers:
            process = self._readers.get(number)
            if process is not None:
                process.settle()  # as long as it reads, so that it is known how far it had come at its last commit
                process.flow.advance(now_us)
                process.flow.partitions.pop(number, None)
                self._ledger.stop(number, now_us)
        self._owners.darken(numbers, now_us)
        self._context.changed()

    def lighten(self, numbers: list[int]) -> None:
        """Let whoever consumes these partitions read on: they have a leader again."""
        now_us = self._context.loop.now_us
        self._owners.lighten(numbers, now_us)
        for number in numbers:
            process = self._readers.get(number)
            if process is not None:
                process.flow.advance(now_us)
                self._ledger.account_waiting(number, now_us)
                self._read_on(process, number, now_us)
        self._context.changed()

    def _read_on(self, process: Process, number: int, now_us: int) -> None:
        if number in self._owners.dark:
            self._ledger.stop(number, now_us)
        else:
            process.flow.partitions[number] = None

    # --- small things

    def _taken(self, process: Process, numbers: Iterable[int]) -> list[int]:
        """Those whose reader is the one that the coordinator wants: who begins now comes with an assignment of the past."""
        owner, assigned = self._owners.owner, self._owners.assigned
        held = [number for number in numbers if owner[number] != NOBODY]
        return [number for number in held if owner[number] != process.pod.number and owner[number] == assigned[number]]

    def _cause(self, process: Process, reason: StopReason) -> GapCause:
        if reason is StopReason.POLL_TIMEOUT:
            return GapCause.STALL
        if reason is StopReason.CLOSED:
            return process.end_cause
        if reason is StopReason.REVOKED and process.hands_over:
            return GapCause.HANDOVER
        return GapCause.REBALANCE

    def _note_discoveries(self, numbers: Iterable[int], now_us: int) -> None:
        created_us, last_owner = self._partitions.created_us, self._owners.last_owner
        for number in numbers:
            if created_us[number] and last_owner[number] < 0:
                topic = self._partitions.names[number].topic
                self._context.emit(Discovered, topic, now_us - created_us[number])

    def _names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(map(self._partitions.labels.__getitem__, numbers))


def _works_on_when_revoked(process: Process) -> bool:
    """Whether partitions are given up in the middle of a batch, whose records only the application would have committed."""
    is_late = process.commit.mode in (CommitMode.AFTER_BATCH, CommitMode.EVERY)
    return is_late and process.config.behaviour.calls_back_itself and process.context.has_traffic


def _committed_us(process: Process, now_us: int) -> int:
    """When the application, whose calls nobody watched, has committed last; or its client, of what it gives up."""
    if process.commit.mode is CommitMode.EVERY and not process.config.behaviour.collects_commits:
        return process.polls.committed_us(now_us, process.last_commit_us, process.commit.interval_us)
    return process.polls.previous_us(now_us)
