"""What a file says of its results: the files that a run writes, and what a sweep shows."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.fields import Section, as_written, key
from kgctl.simulate.scenario.quantities import shown


def in_terminal(raw: Any) -> str | None:
    """Return what ``gantt`` stands for: terminal, or true; None for false. Raises ValueError."""
    if raw not in ("terminal", True, False):
        raise ValueError(f"must be terminal, true or false, not {shown(raw)}")
    return "terminal" if raw else None


class Output(Section):
    """Files that a run writes beside its result, as the flags of the command do."""

    gantt: Annotated[str | None, as_written(in_terminal), WithJsonSchema({"enum": ["terminal", True, False]})] = None
    html: str | None = None
    junit: str | None = None
    markdown: str | None = None
    events: str | None = None
    metrics: str | None = None


class SweepReport(Section):
    """What a sweep shows."""

    x: str | None = key(
        "The parameter along which it is shown: a path of sweep, or its end (session.timeout.ms); default: the one "
        "with the most values.",
        None,
        min_length=1,
    )
    y: fields.MetricTexts | None = key(
        "Metrics, with filters or without: rebalances, unavailable(cause rebalance); default: rebalances, unavailable, max_gap.",
        None,
    )
