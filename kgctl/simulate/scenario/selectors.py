"""Which pods are meant: ``app``, ``app/3``, ``app/0..9``, ``app/50%``, ``app/oldest``, ``app/leader``, ``not app/3``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from kgctl.simulate.scenario.quantities import parse_share
from kgctl.simulate.scenario.wording import shown

NODE = "node"
"""Stands for a set of members in ``node/2``: all pods on that node, of whatever set."""


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


_SELECTOR = re.compile(r"(not\s+)?([^\s/]+)(?:/(\S+))?")


def parse_selector(raw: object) -> Selector:
    """Which pods are meant. Whether there is such a set of members is for the reader of the file to check.

    Raises:
        ValueError: it is no selector.
    """
    match = _SELECTOR.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise ValueError(f"{shown(raw)} is no selector; write app, app/3, app/0..9, app/50%, app/oldest, app/leader or not app/3")
    negated, member_set, which = match.groups()
    named = None if member_set == "*" else member_set
    text = " ".join(str(raw).split())
    if which is None:
        return Selector(text=text, member_set=named, negated=bool(negated))
    choice, first, last, share_ppm = _which(which, text)
    return Selector(
        text=text, member_set=named, choice=choice, first=first, last=last, share_ppm=share_ppm, negated=bool(negated)
    )


def _which(which: str, text: str) -> tuple[Choice, int, int, int]:
    if re.fullmatch(r"\d{1,9}", which):
        return Choice.RANGE, int(which), int(which), 0
    if match := re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", which):
        first, last = int(match.group(1)), int(match.group(2))
        if first > last:
            raise ValueError(f"{text!r} ends before it begins")
        return Choice.RANGE, first, last, 0
    if which.endswith("%"):
        return Choice.SHARE, 0, 0, parse_share(which)
    if which in ("oldest", "leader"):
        return Choice(which), 0, 0, 0
    raise ValueError(f"{text!r}: after the slash stands a number, a range 0..9, a share 50%, oldest or leader")
