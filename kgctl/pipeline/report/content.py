"""What a page says of a history: which groups are drawn, and what has to be left out of a page for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kgctl import __version__
from kgctl.pipeline.report.figures import Figures, figures, reset_text
from kgctl.pipeline.report.overview import GroupOverview, overview, worst_first
from kgctl.pipeline.report.page import Content, undo_command

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

MOST_GROUPS = 40
"""Groups with charts of their own. A page with more of them takes a browser too long."""
MOST_ROWS = 1000
MOST_RESETS = 200


def content(history: History, groups: Sequence[str] | None, from_ms: int, to_ms: int, when: Callable[[int], str]) -> Content:
    """Of these groups, or of all, from ``from_ms`` on and before ``to_ms``; ``when`` writes a time down.

    Of very many groups those are drawn that were worst: most resets, then the worst status, most rebalances, the highest lag.
    """
    found = overview(history, groups, from_ms, to_ms)
    there = {each.group for each in found}
    found += [_idle(group) for group in groups or () if group not in there]
    drawn = [figures(history, each.group, from_ms, to_ms) for each in worst_first(found)[:MOST_GROUPS]]
    resets, notes = _resets(drawn, when)
    return Content(
        cluster=history.cluster,
        kgctl=__version__,
        span=f"{when(from_ms)} to {when(to_ms - 1)}",
        from_ms=from_ms,
        to_ms=to_ms,
        overview=worst_first(found)[:MOST_ROWS],
        figures=drawn,
        resets=resets,
        notes=[*_left_out(found, len(drawn)), *notes],
    )


def _idle(group: str) -> GroupOverview:
    """One of which nothing is known in that time, and that was asked for by name."""
    return GroupOverview(group, None, 0, None, 0, 0, None, None)


def _left_out(found: Sequence[GroupOverview], drawn: int) -> list[str]:
    notes = []
    if drawn < len(found):
        notes.append(f"Charts are there for {drawn} of {len(found)} groups, those that were worst; --group chooses others.")
    if len(found) > MOST_ROWS:
        notes.append(f"The {MOST_ROWS} groups that were worst are listed, of {len(found)}.")
    return notes


def _resets(drawn: Sequence[Figures], when: Callable[[int], str]) -> tuple[list[tuple[str, str, str]], list[str]]:
    rows = sorted((row["time_ms"], row["group"], reset_text(row)) for each in drawn for row in each.resets)
    notes = [f"The last {MOST_RESETS} of {len(rows)} resets are listed."] if len(rows) > MOST_RESETS else []
    listed = [(when(at), f"{group}: {text}", undo_command(group, when(at - 1))) for at, group, text in rows[-MOST_RESETS:]]
    return listed, notes
