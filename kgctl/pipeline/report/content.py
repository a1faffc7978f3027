"""What a page says of a history: which groups are drawn, and what has to be left out of a page for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgctl import __version__
from kgctl.pipeline.report.figures import Figures, figures, reset_id, reset_text
from kgctl.pipeline.report.overview import GroupOverview, overview, worst_first
from kgctl.pipeline.report.page import Content, ListedReset, undo_command

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

MOST_GROUPS = 40
"""Groups with charts of their own. A page with more of them takes a browser too long."""
MOST_ROWS = 1000
MOST_RESETS = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """A cluster's history and the groups of it that are wanted; None: all."""

    history: History
    groups: Sequence[str] | None = None


def content(asked: Sequence[Asked], from_ms: int, to_ms: int, when: Callable[[int], str]) -> Content:
    """Of these groups of one cluster or several, from ``from_ms`` on and before ``to_ms``; ``when`` writes a time down.

    Of very many groups those are drawn that were worst: most resets, then the worst status, most rebalances, the highest lag.
    """
    found = worst_first([each for one in asked for each in _overview(one, from_ms, to_ms)])
    histories = {one.history.cluster: one.history for one in asked}
    drawn = [figures(histories[each.cluster], each.group, from_ms, to_ms) for each in found[:MOST_GROUPS]]
    resets, notes = _resets(drawn, when, is_of_several=len(asked) > 1)
    return Content(
        clusters=list(histories),
        kgctl=__version__,
        span=f"{when(from_ms)} to {when(to_ms - 1)}",
        from_ms=from_ms,
        to_ms=to_ms,
        overview=found[:MOST_ROWS],
        figures=drawn,
        resets=resets,
        notes=[*_left_out(found, len(drawn)), *notes],
    )


def _overview(asked: Asked, from_ms: int, to_ms: int) -> list[GroupOverview]:
    found = overview(asked.history, asked.groups, from_ms, to_ms)
    there = {each.group for each in found}
    return found + [_idle(asked.history.cluster, group) for group in asked.groups or () if group not in there]


def _idle(cluster: str, group: str) -> GroupOverview:
    """One of which nothing is known in that time, and that was asked for by name."""
    return GroupOverview(group, None, 0, None, 0, 0, None, None, cluster)


def _left_out(found: Sequence[GroupOverview], drawn: int) -> list[str]:
    notes = []
    if drawn < len(found):
        notes.append(f"Charts are there for {drawn} of {len(found)} groups, those that were worst; --group chooses others.")
    if len(found) > MOST_ROWS:
        notes.append(f"The {MOST_ROWS} groups that were worst are listed, of {len(found)}.")
    return notes


def _resets(
    drawn: Sequence[Figures], when: Callable[[int], str], *, is_of_several: bool = False
) -> tuple[list[ListedReset], list[str]]:
    found = sorted(
        ((row["time_ms"], each.cluster, each.group, row["log_offset"], each, row) for each in drawn for row in each.resets),
        key=lambda one: one[:4],
    )
    notes = [f"The last {MOST_RESETS} of {len(found)} resets are listed."] if len(found) > MOST_RESETS else []
    listed = [
        ListedReset(
            reset_id(each, row),
            cluster,
            group,
            at_ms,
            when(at_ms),
            reset_text(row),
            undo_command(group, when(at_ms - 1), cluster if is_of_several else None),
        )
        for at_ms, cluster, group, _, each, row in found[-MOST_RESETS:]
    ]
    return listed, notes
