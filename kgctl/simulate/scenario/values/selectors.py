"""Selectors as text: ``app``, ``app/3``, ``app/0..9``, ``app/50%``, ``app/oldest``, ``app/leader``, ``not app/3``, ``*``."""

from __future__ import annotations

import re

from kgctl.simulate.scenario.selectors import Choice, Selector
from kgctl.simulate.scenario.values.rates import parse_share
from kgctl.simulate.scenario.wording import shown

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
