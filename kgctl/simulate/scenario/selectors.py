"""Which pods are meant: ``app``, ``app/3``, ``app/0..9``, ``app/50%``, ``app/oldest``, ``app/leader``, ``not app/3``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Choice(StrEnum):
    """How a selector picks among the pods of its set."""

    ALL = "all"
    RANGE = "range"
    SHARE = "share"
    OLDEST = "oldest"
    LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Pods of one set of members, or (``negated``) all others, those of other sets included.

    ``member_set`` None: of every set. ``first`` and ``last``, both included, are for RANGE (one pod: both the same);
    ``share_ppm`` is for SHARE, in millionths: that many of the pods, at least one, drawn by the seed. ``oldest`` is the pod that
    has run longest; ``leader`` the one that leads the classic group. ``text`` is what the file says.
    """

    text: str
    member_set: str | None = None
    choice: Choice = Choice.ALL
    first: int = 0
    last: int = 0
    share_ppm: int = 0
    negated: bool = False

    def matches(self, member_set: str, index: int) -> bool:
        """Whether a pod is meant; only for selectors that are fixed."""
        inside = self.member_set is None or self.member_set == member_set
        if self.choice is Choice.RANGE:
            inside = inside and self.first <= index <= self.last
        return inside != self.negated
