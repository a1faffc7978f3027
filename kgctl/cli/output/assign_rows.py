"""Answers of assignors as rows for people and as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kgctl.cli.output.formats import OutputFormat
from kgctl.cli.output.report import Column, Row

if TYPE_CHECKING:
    from kgctl.simulate.assign.evaluation import Answer

DATA_FORMATS = (OutputFormat.JSON, OutputFormat.YAML)
COLUMNS = (
    Column("id"),
    Column("assignor"),
    Column("round", wide=True),
    Column("member"),
    Column("partitions", "#PARTITIONS"),
    Column("topics", "#TOPICS"),
    Column("kept"),
    Column("gained"),
    Column("lost"),
    Column("rack", wide=True),
    Column("group_instance_id", wide=True),
    Column("assignment", wide=True),
)

ROUND_COLUMNS = tuple(Column("round") if column.key == "round" else column for column in COLUMNS)
"""Where each round is shown, the table says which is which."""


def rows_of(rounds: Sequence[Answer]) -> list[Row]:
    """One row a member, in the order of the group; round after round."""
    rows: list[Row] = []
    for number, answer in enumerate(rounds, 1):
        for change in answer.changes:
            topics = answer.assignment[change.member.member_id]
            rows.append(
                {
                    "id": answer.id,
                    "assignor": answer.assignor,
                    "round": number,
                    "member": change.member.member_id,
                    "partitions": change.partitions,
                    "topics": len(topics),
                    "kept": change.kept,
                    "gained": change.gained,
                    "lost": change.lost,
                    "rack": change.member.rack or None,
                    "group_instance_id": change.member.instance_id,
                    "assignment": " ".join(f"{topic}:{ranges(numbers)}" for topic, numbers in topics.items()) or None,
                }
            )
    return rows


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers with runs drawn together: ``0,2-5``."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1:
            previous = number
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        if number is not None:
            start = previous = number
    return ",".join(parts)


def data_of(rounds: Sequence[Answer], *, with_rounds: bool) -> dict[str, Any]:
    """The entry of one document and assignor: the first round's answer, and with ``with_rounds`` what each round did."""
    first = rounds[0]
    entry: dict[str, Any] = {"id": first.id, "assignor": first.assignor, **_figures(first)}
    if with_rounds:
        entry["rounds"] = [{"round": number, **_figures(answer)} for number, answer in enumerate(rounds, 1)]
    return entry


def _figures(answer: Answer) -> dict[str, Any]:
    by_member = dict(answer.assignment)
    return {
        "assignment": by_member,
        "moved": answer.moved,
        "moves_needed": answer.moves_needed,
        "unassigned": answer.unassigned,
        "spread": answer.spread,
        "topic_spread": answer.topic_spreads(by_member),
        "cross_rack_share": answer.cross_rack_share,
    }


def summaries_of(rounds: Sequence[Answer]) -> list[str]:
    """A line for each round about the whole: how even, what moved and what had to, racks."""
    if len(rounds) == 1:
        return [_summary(rounds[0], "")]
    return [_summary(answer, f", round {number}") for number, answer in enumerate(rounds, 1)]


def _summary(answer: Answer, which: str) -> str:
    sizes = [change.partitions for change in answer.changes] or [0]
    even = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    parts = [f"{sum(sizes)} partitions on {len(answer.changes)} members, {even} each"]
    if any(change.kept or change.lost for change in answer.changes):
        parts.append(f"{answer.moved} moved, at least {answer.moves_needed} had to")
    if answer.unassigned:
        parts.append(f"{answer.unassigned} wait until they are revoked")
    if answer.cross_rack_share is not None:
        parts.append(f"{answer.cross_rack_share:.0%} across racks")
    return f"{answer.id} {answer.assignor}{which}: {'; '.join(parts)}"
