"""How many records a group still has to read in a partition, and what keeps that from being told.

One rule for commands, tables, metrics and alerts. It is on plain integers; what computes many at once, on arrays, makes the same
comparisons, and a test of its own holds it to `lag_of`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.model.meanings import MeantText


class Flag(MeantText):
    """What stands out about a partition of a group. ``meaning`` is its line in the manual.

    With a flag that ``hides_lag`` the lag is unknown: it is never shown as a number, and no limit holds for it.
    """

    BELOW_LOG_START = (
        "below-log-start",
        "the commit lies before the first record that is left; consumers go where `auto.offset.reset` says",
    )
    PAST_LOG_END = (
        "past-log-end",
        "the commit lies behind the end of the log, as in a topic that was made anew; consumers as above",
    )
    NO_LEADER = "no-leader", "the partition has no leader, so that nobody can ask for the end of its log"
    UNKNOWN_TOPIC = "unknown-topic", "there is no such partition (any more), or this user may not see it"
    NO_CONSUMER = "no-consumer", "no member of a stable group reads the partition"
    STALE = "stale", "no member of a stable group subscribes to the topic any more"

    @property
    def hides_lag(self) -> bool:
        return self not in (Flag.NO_CONSUMER, Flag.STALE)


def out_of_range(committed: int, start: int | None, end: int | None) -> Flag | None:
    """Return the flag of a commit at which no consumer can go on, as the log has no such offset; None for one in its range.

    ``start`` is the first offset of the log, ``end`` the one that its next record gets; a commit at the end is in range. A bound
    that is None is unknown, and nothing is held against it. Kafka: a fetch outside of this range is answered with
    OFFSET_OUT_OF_RANGE (UnifiedLog#read).
    """
    if start is not None and committed < start:
        return Flag.BELOW_LOG_START
    if end is not None and committed > end:
        return Flag.PAST_LOG_END
    return None


def lag_of(committed: int | None, start: int | None, end: int | None) -> int | None:
    """Return how many records lie between a commit and the end of its log: 0 or more.

    None is unknown, which is neither 0 nor within any limit: nothing is committed, the end is not known, or the commit is
    `out_of_range`, from where a consumer jumps to one end of the log or the other.
    """
    if committed is None or end is None or out_of_range(committed, start, end) is not None:
        return None
    return end - committed


def total_of(lags: Iterable[int | None]) -> int | None:
    """Return the sum of lags; None where one of them is unknown, as the rest would pass for the whole."""
    total = 0
    for lag in lags:
        if lag is None:
            return None
        total += lag
    return total
