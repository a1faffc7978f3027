"""A share of the runs once more, here: they must come out as wherever they were run the first time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kgctl.errors import InvariantViolation
from kgctl.simulate.sweep.plan import Block, Sweep
from kgctl.simulate.sweep.rows import RunRow
from kgctl.simulate.sweep.run import replay_of, run_block


def chosen(rows: Sequence[RunRow], share: float) -> list[RunRow]:
    """Rows spread evenly over all that were run to their end; at least one, unless the share is 0."""
    complete = [row for row in rows if row.digest is not None]
    count = min(math.ceil(len(complete) * share), len(complete))
    return [complete[place * len(complete) // count] for place in range(count)]


def differences(sweep: Sweep, rows: Sequence[RunRow]) -> Iterator[InvariantViolation | None]:
    """Runs each of ``rows`` again; gives None, or what is wrong where the second run differs."""
    points = sweep.points()
    for row in rows:
        point = points[row.number]
        again = {one.variant: one for one in run_block(sweep, Block(row.number, point, (row.seed,)))}[row.variant]
        if (again.digest, again.metrics) == (row.digest, row.metrics):
            yield None
            continue
        replay = replay_of(sweep, point, row.variant, row.seed)
        yield InvariantViolation(f"two runs of one seed differ, digests {row.digest} and {again.digest}: {replay}")
