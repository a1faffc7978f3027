"""The lag as of a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.pipeline.answers.offsets import offsets_at
from kgctl.pipeline.answers.series import LAG, Row, rows_at

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History


def lag_at(history: History, groups: Sequence[str] | None, at_ms: int) -> list[Row]:
    """The last row of each partition that is known to have had a commit at ``at_ms``: one whose commit was removed has no lag."""
    found = offsets_at(history, groups, at_ms)
    committed = {(each.group, each.topic, each.partition) for each in found if each.offset is not None}
    return [row for row in rows_at(history, LAG, groups, at_ms) if (row["group"], row["topic"], row["partition"]) in committed]
