"""What became of each record of a share group: who has it, why it came back, when it was done; and that none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from kgctl.errors import InvariantViolation
from kgctl.model.share import DeliveryState, StateBatch
from kgctl.share.partition import SharePartition
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.share.requests import Grant
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.recording.recording import Archival, Counted, Intervals, RecordRange, Redelivery, Return, ShareHistory
from kgctl.simulate.recording.trace import Erred, RecordsRepeated, Shared
from kgctl.simulate.recording.traffic import LinearSeries, Wait
from kgctl.simulate.scenario.quantities import UNIT_PR
from kgctl.simulate.scenario.vocabulary import GivenBack


class _Had(NamedTuple):
    """Who has a record, and since when; or had it, and why no more."""

    pod: int
    since_us: int
    why: GivenBack = GivenBack.RELEASED


class _Records:
    """One partition's. ``done``: acknowledged or archived; ``begun``: delivered at least once."""

    __slots__ = ("begin", "begun", "done", "held", "processed", "returned")

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.held: dict[int, _Had] = {}
        self.returned: dict[int, _Had] = {}
        self.processed: set[int] = set()
        self.begun = self.done = 0


class ShareAccounts:
    """Follows every record from its first delivery until it is done, and holds that none is lost on the way."""

    def __init__(self, context: RunContext, history: ShareHistory, limit: Callable[[], int]) -> None:
        self._context = context
        self._history = history
        self._limit = limit
        self._of: dict[int, _Records] = {}

    def began(self, number: int, start_offset: int, done: int) -> None:
        """A leader goes on from here; what lies before the first one's beginning is no lag of the group's."""
        if number in self._of:
            return
        self._of[number] = _Records(start_offset + done)
        self._step(self._context.ledger.lag, number, -start_offset)
        self._step(self._context.ledger.backlog, number, -start_offset)

    def delivered(self, grant: Grant, pod: int, phase_pr: int) -> None:
        """A member has these records from now on."""
        records, now_us = self._of[grant.number], self._context.loop.now_us
        offsets = range(grant.first, grant.last + 1)
        again = {offset: had for offset in offsets if (had := records.returned.pop(offset, None)) is not None}
        records.held.update(dict.fromkeys(offsets, _Had(pod, now_us)))
        records.begun += len(offsets) - len(again)
        topic = self._context.ledger.topic[grant.number]
        self._history.delivered.append(Counted(now_us, len(offsets), pod, topic))
        self._step(self._history.in_flight, grant.number, len(offsets))
        self._step(self._context.ledger.backlog, grant.number, -len(offsets))
        for first, last, had in _runs(again):
            entry = Redelivery(now_us, grant.number, first, last, grant.deliveries, pod, had.pod, had.why)
            self._tell(entry, pod, f"delivered again: {had.why.label}", grant.deliveries)
        if not again:
            self._note_wait(grant, phase_pr)

    def _note_wait(self, grant: Grant, phase_pr: int) -> None:
        """How long records waited for their first delivery."""
        ledger, now_us = self._context.ledger, self._context.loop.now_us
        ends_pr = [(offset + 1) * UNIT_PR + phase_pr for offset in (grant.first, grant.last)]
        longest, shortest = (max(now_us - ledger.arrivals.arrived_us(grant.number, end_pr), 0) for end_pr in ends_pr)
        ledger.waits.append(Wait(now_us, grant.number, grant.amount * UNIT_PR, shortest, longest))

    def changed(self, number: int, batch: StateBatch, pod: int, why: GivenBack) -> None:
        """Records leave their member, by the state that the leader keeps of them."""
        records, now_us = self._of[number], self._context.loop.now_us
        offsets = range(batch.first_offset, batch.last_offset + 1)
        held = {offset: had for offset in offsets if (had := records.held.pop(offset, None)) is not None}
        if not held:
            return
        self._step(self._history.in_flight, number, -len(held))
        if batch.delivery_state == DeliveryState.AVAILABLE:
            self._come_back(number, records, held, batch.delivery_count, why)
            return
        records.done += len(held)
        records.processed.difference_update(held)
        self._step(self._context.ledger.lag, number, -len(held))
        topic = self._context.ledger.topic[number]
        if batch.delivery_state == DeliveryState.ACKNOWLEDGED:
            self._history.acknowledged.append(Counted(now_us, len(held), pod, topic))
            self._history.held.append((now_us, topic, Counter(now_us - had.since_us for had in held.values())))
            return
        if why is GivenBack.RELEASED and batch.delivery_count < self._limit():
            why = GivenBack.REJECTED
        for first, last, had in _runs(held):
            entry = Archival(now_us, number, first, last, batch.delivery_count, had.pod, why)
            self._tell(entry, had.pod, f"archived: {why.label}", batch.delivery_count)

    def _come_back(self, number: int, records: _Records, held: dict[int, _Had], count: int, why: GivenBack) -> None:
        now_us = self._context.loop.now_us
        records.returned.update({offset: had._replace(why=why) for offset, had in held.items()})
        self._step(self._context.ledger.backlog, number, len(held))
        for first, last, had in _runs(held):
            self._tell(Return(now_us, number, first, last, had.pod, why), had.pod, f"given back: {why.label}", count)

    def forgot(self, number: int, share_partition: SharePartition, why: GivenBack) -> None:
        """The leader is gone, and nobody has what its members had."""
        records = self._of.get(number)
        if records is not None and share_partition.records.batches:
            held, records.held = records.held, {}
            self._step(self._history.in_flight, number, -len(held))
            self._come_back(number, records, held, 0, why)

    def refused(self, number: int, amount: int, pod: int, error: str) -> None:
        """An acknowledgement came to nothing: the records were not the member's any more."""
        topic, now_us = self._context.ledger.topic[number], self._context.loop.now_us
        self._history.refused.append(Counted(now_us, amount, pod, topic))
        self._context.emit(Erred, self._name_of(pod), what=error)

    def processed(self, number: int, offsets: Iterable[int], pod: int) -> None:
        """The application is through with these, and what it does with a record it has done."""
        records = self._of[number]
        twice = 0
        for offset in offsets:
            twice += offset in records.processed or offset < records.begin or not self._is_open(records, offset)
            records.processed.add(offset)
        if twice:
            topic = self._context.ledger.topic[number]
            self._context.emit(RecordsRepeated, self._name_of(pod), twice, topic)

    @staticmethod
    def _is_open(records: _Records, offset: int) -> bool:
        return offset in records.held or offset in records.returned

    def waits(self, pod: int, *, is_so: bool) -> None:
        """An application waits for records from now on, or has some."""
        self._history.waiting.setdefault(pod, Intervals()).set(self._context.loop.now_us, is_so=is_so)

    def close(self) -> None:
        """The run is over: the ledger learns how far the group has read."""
        ledger = self._context.ledger
        for number, records in self._of.items():
            ledger.is_caught_up[number] = False
            ledger.read_to(number, records.begin + records.begun)

    # --- series and the log

    def _step(self, found: dict[str, LinearSeries], number: int, amount: int) -> None:
        if amount:
            topic = self._context.ledger.topic[number]
            series = found.get(topic)
            if series is None:
                series = found[topic] = LinearSeries()
            series.step(self._context.loop.now_us, amount * UNIT_PR)

    def _tell(self, entry: RecordRange, pod: int, what: str, count: int) -> None:
        context, label = self._context, self._context.partitions.labels[entry.number]
        context.emit(Shared, self._name_of(pod), what, label, entry.first, entry.last, count, entry)
        context.changed()

    def _name_of(self, pod: int) -> str:
        return "" if pod == NOBODY else self._context.history.pods[pod].name

    # --- what must hold

    def check(self, partitions: Iterable[tuple[int, SharePartition]]) -> None:
        """Each record is done, or with a member, or came back, or was never delivered. Raises `InvariantViolation`."""
        for number, share_partition in partitions:
            records = self._of.get(number)
            if records is None:
                continue
            waiting = len(records.held) + len(records.returned)
            if records.begun != records.done + waiting:
                self._broken(number, f"{records.begun} records were delivered, {records.done} are done and {waiting} are not")
            kept = share_partition.start_offset + share_partition.delivery_complete_count - records.begin
            if kept != records.done:
                self._broken(number, f"{records.done} records are done, and {kept} by what the leader knows")
        limit = self._limit()
        too_often = [each for each in self._history.redelivered if each.deliveries > limit]
        if too_often:
            self._broken(too_often[0].number, f"delivered for the {too_often[0].deliveries}th time, and the limit is {limit}")

    def _broken(self, number: int, what: str) -> None:
        context = self._context
        at_us = context.loop.now_us - context.warmup_us
        text = f"S1 broke at {at_us / 1_000_000:.6f} s: {context.partitions.labels[number]}: {what}"
        raise InvariantViolation(text, group=context.group_id)


def _runs(had: dict[int, _Had]) -> Iterator[tuple[int, int, _Had]]:
    """Offsets that follow each other and came from the same pod for the same reason: first, last, and what they share."""
    for _, group in groupby(enumerate(sorted(had)), key=lambda each: (each[1] - each[0], had[each[1]].pod, had[each[1]].why)):
        offsets = [offset for _, offset in group]
        yield offsets[0], offsets[-1], had[offsets[0]]
