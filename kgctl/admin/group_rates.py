"""Groups watched over time: how fast they read, how fast records come, when they will be done, and whether they are well."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

from kgctl.admin import GroupAdmin, GroupResults, PartitionResults, Results
from kgctl.admin.group_view import lag_from, unreadable
from kgctl.errors import KgctlError
from kgctl.model.groups import GroupDescription, GroupListing, LogOffsets, OffsetAndMetadata, TopicPartition, listing_of
from kgctl.model.lag import Flag, out_of_range, total_of
from kgctl.model.values import frozen_in_order

WINDOW = 10
"""How many samples a verdict looks back, as many as Burrow's window has by default."""


class Verdict(StrEnum):
    """How a partition or a group does, in Burrow's words; from the worst partition for a group.

    Burrow has no word for a commit outside of its log: ``LOST``.
    """

    OK = "OK"
    WARN = "WARN"
    STALL = "STALL"
    STOP = "STOP"
    REWIND = "REWIND"
    LOST = "LOST"
    UNKNOWN = "-"


WORST_LAST = (Verdict.OK, Verdict.UNKNOWN, Verdict.WARN, Verdict.STOP, Verdict.STALL, Verdict.REWIND, Verdict.LOST)
"""STALL above STOP: whoever has members has somebody who waits for them."""


@frozen_in_order
class Position:
    """Where a group is in a partition, and where its log begins and ends; None where that cannot be asked: ``why`` not."""

    committed: int
    start: int | None
    end: int | None
    why: Flag | None = None
    lag: int | None = None
    """The records still to read; None where that cannot be told."""

    @property
    def reached(self) -> int:
        """Return the offset that all that is read would come to: the commit, and past a start offset what is acknowledged."""
        return self.committed if self.end is None or self.lag is None else self.end - self.lag

    @property
    def flag(self) -> Flag | None:
        """Return what hides the lag."""
        return out_of_range(self.committed, self.start, self.end) or self.why


@frozen_in_order
class Sample:
    """All positions at one moment, by group; ``errors`` are what could not be asked, ``left_out`` the groups that are wanted and
    do not pass."""

    at_ms: int
    listings: Mapping[str, GroupListing]
    positions: Mapping[str, Mapping[TopicPartition, Position]]
    errors: tuple[KgctlError, ...] = ()
    left_out: tuple[str, ...] = ()


@frozen_in_order
class GroupRate:
    """One group of a frame. Rates are records a second, None before two samples; ``drain_s`` None where it never ends.

    ``lag`` is None where that of a partition is unknown; ``flags`` say why. ``verdicts`` are those of its
    partitions, `Verdict.UNKNOWN` where it has none.
    """

    group_id: str
    state: str
    lag: int | None
    consumed_per_s: float | None
    produced_per_s: float | None
    drain_s: float | None
    verdicts: frozenset[Verdict]
    flags: tuple[Flag, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return the worst of its partitions' verdicts."""
        return max(self.verdicts, key=WORST_LAST.index)


def take_sample(admin: GroupAdmin, wanted: Sequence[str], passes: Callable[[GroupListing], bool], at_ms: int) -> Sample:
    """Ask where the groups are that pass, all where none is ``wanted``: three rounds of requests, whatever their number."""
    listed = admin.list_groups()
    unlisted = [group_id for group_id in wanted if group_id not in listed.values] if not listed.unreachable else []
    described: GroupResults[GroupDescription] = admin.describe_groups(unlisted) if unlisted else Results()
    there = {**listed.values} | {group_id: listing_of(group) for group_id, group in described.values.items()}  # one that moves
    chosen = {group_id: each for group_id, each in there.items() if (not wanted or group_id in wanted) and passes(each)}
    committed = admin.list_committed_offsets(list(chosen))
    logs = admin.list_log_offsets(sorted({partition for offsets in committed.values.values() for partition in offsets}))
    positions = {
        group_id: {partition: _position(partition, commit, logs) for partition, commit in offsets.items()}
        for group_id, offsets in committed.values.items()
        if group_id not in committed.flaws  # what is left of its commits says nothing of the whole group
    }
    errors = [error.to_exception() for error in listed.unreachable.values()]
    errors += [error.to_exception(group=group_id) for group_id, error in described.errors.items()]
    errors += [error.to_exception(group=group_id) for group_id, error in committed.errors.items()]
    errors += [error.to_exception(partition=partition) for partition, error in logs.errors.items()]
    errors += [flaw for of_group in committed.flaws.values() for flaw in of_group]
    left_out = [group_id for group_id in wanted if group_id in listed.values and group_id not in chosen]
    return Sample(at_ms, chosen, positions, tuple(errors), tuple(left_out))


def _position(partition: TopicPartition, commit: OffsetAndMetadata, logs: PartitionResults[LogOffsets]) -> Position:
    log = logs.values.get(partition, LogOffsets())
    why, lag = unreadable(logs.errors.get(partition)), lag_from(commit, log.log_start_offset, log.log_end_offset)
    return Position(commit.offset, log.log_start_offset, log.log_end_offset, why, lag)


class RateWatch:
    """The last samples, and what they say of each group."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=WINDOW)

    def add(self, sample: Sample) -> None:
        """Take the next sample; the oldest is forgotten."""
        self._samples.append(sample)

    def rates(self) -> list[GroupRate]:
        """Return one entry for each group of the last sample, by id."""
        if not self._samples:
            return []
        last = self._samples[-1]
        return [self._rate(group_id, last) for group_id in sorted(last.listings)]

    def _rate(self, group_id: str, last: Sample) -> GroupRate:
        now = last.positions.get(group_id, {})
        history = [sample.positions.get(group_id, {}) for sample in self._samples]
        lag = total_of(position.lag for position in now.values()) if now else None
        consumed = produced = drain = None
        seconds = (last.at_ms - self._samples[0].at_ms) / 1000
        if seconds > 0 and now:
            first = history[0]
            both = [(first[partition], position) for partition, position in now.items() if partition in first]
            consumed = sum(after.reached - before.reached for before, after in both) / seconds
            ends = [(before.end, after.end) for before, after in both if before.end is not None and after.end is not None]
            produced = sum(after - before for before, after in ends) / seconds if len(ends) == len(both) else None
            drain = None if lag is None or produced is None else _drain_s(lag, consumed, produced)
        is_read = not last.listings[group_id].state.is_inactive
        verdicts = frozenset(_verdict([past[each] for past in history if each in past], is_read=is_read) for each in now)
        found = {position.flag for position in now.values()}
        flags = tuple(flag for flag in Flag if flag in found)
        state = last.listings[group_id].state.value
        return GroupRate(group_id, state, lag, consumed, produced, drain, verdicts or frozenset({Verdict.UNKNOWN}), flags)


def _drain_s(lag: int, consumed: float, produced: float) -> float | None:
    """Seconds until nothing is left to read at these rates; None where that is never."""
    if lag <= 0:
        return 0.0
    return lag / (consumed - produced) if consumed > produced else None


def _verdict(history: Sequence[Position], *, is_read: bool) -> Verdict:
    """Burrow's rules, in its order: a lag of zero anywhere is well; else rewound, stopped, stalled, falling behind.

    Source: Burrow's evaluator ``caching.go``, calculatePartitionStatus. It tells STOP (no commits any more) from STALL (commits
    that do not move) by the times of commits, which only it sees; here a group that has members stalls, one without has stopped.
    """
    if history and history[-1].lag is None:
        last = history[-1]
        return Verdict.LOST if out_of_range(last.committed, last.start, last.end) else Verdict.UNKNOWN
    known = [(position.committed, position.lag) for position in history if position.lag is not None]
    if any(lag == 0 for _, lag in known):
        return Verdict.OK
    if len(known) < 2:
        return Verdict.UNKNOWN
    steps = list(pairwise(known))
    if any(after < before for (before, _), (after, _) in steps):
        return Verdict.REWIND
    if known[0][0] == known[-1][0]:
        stuck = Verdict.STALL if is_read else Verdict.STOP
        return stuck if len(known) >= 3 else Verdict.UNKNOWN
    is_growing = all(after >= before for (_, before), (_, after) in steps)
    return Verdict.WARN if is_growing else Verdict.OK
