"""Why nobody consumes a partition."""

from __future__ import annotations

from enum import IntEnum

from kgctl.model.quick_enum import quick_enum


@quick_enum
class Cause(IntEnum):
    """The causes of a gap. A gap is split where its cause changes."""

    REBALANCE = 0
    HANDOVER = 1
    DETECTION = 2
    STATIC_WAIT = 3
    BOOT = 4
    STALL = 5
    DISCOVERY = 6
    COORDINATOR = 7
    FETCH = 8

    @property
    def label(self) -> str:
        """As metrics and logs have it."""
        return self.name.lower()


MEANINGS = {
    Cause.REBALANCE: "the owner lives and had to give the partition up for a rebalance",
    Cause.HANDOVER: "given up to move, the next owner does not have it yet",
    Cause.DETECTION: "the owner is gone and the coordinator does not know",
    Cause.STATIC_WAIT: "the owner is down, the partition is kept for its instance id",
    Cause.BOOT: "no member is there that could take it",
    Cause.STALL: "the owner's process does not go on, or is past max.poll.interval.ms",
    Cause.DISCOVERY: "the partition exists and the group has not seen it",
    Cause.COORDINATOR: "there is no coordinator",
    Cause.FETCH: "the owner runs its callback or fetches its offset",
}

NOBODY = -1

FAILOVER = "CoordinatorFailover"
"""Begins the trigger of a rebalance that there is because the coordinator failed."""


_CAUSES = tuple(Cause)


def code_of(cause: Cause) -> int:
    """A cause as it stands in a lane, where owners are numbers of 0 and more."""
    return -1 - cause


def cause_of(code: int) -> Cause:
    """The cause that a negative number in a lane stands for."""
    return _CAUSES[-1 - code]
