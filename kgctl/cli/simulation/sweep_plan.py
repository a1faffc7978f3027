"""From the command line to a sweep: the file, the grid, the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.cli.output.report import Report
from kgctl.cli.session import Session
from kgctl.cli.simulation.files import WrongFile
from kgctl.cli.simulation.running import RunOptions
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.simulate.sweep.axes import Axis
    from kgctl.simulate.sweep.plan import Sweep


def planned_sweep(
    session: Session,
    file: str,
    grid: Path | None,
    settings: Sequence[str],
    *,
    variants: Sequence[str],
    checks: Sequence[str] | None,
    seeds: RunOptions,
    metrics: Sequence[str],
) -> Sweep:
    """The sweep that was asked for; the file is checked as it stands, and each parameter for whether it can fit at all.

    ``metrics``: to sum up, instead of the file's.

    Raises:
        WrongFile: file or grid have mistakes. UsageError, NotFoundError: something cannot be read, or there is nothing to vary.
    """
    from kgctl.simulate.scenario.load import DEFAULT, load
    from kgctl.simulate.scenario.sources import read_source
    from kgctl.simulate.sweep.axes import axes_of
    from kgctl.simulate.sweep.plan import Sweep, require_axes_that_fit
    from kgctl.simulate.sweep.summary import checked_metrics
    from kgctl.yaml_files import FileError

    try:
        tree = read_source(file, session.environment.stdin)
        axes, fixed = axes_of(tree, None if grid is None else read_source(str(grid)), settings)
        loaded = load(tree, settings=fixed, variants=variants, checks=checks)
        sweep = Sweep(
            tree=tree,
            name=loaded.name,
            axes=_with_last(axes, loaded.report.x),
            fixed=fixed,
            variant_names=tuple(variant.name for variant in loaded.variants),
            has_variants=loaded.variant_names != (DEFAULT,),
            seeds=tuple(seeds.seeds(loaded)),
            words=("kgctl", "simulate", "run", file, *(word for each in checks or () for word in ("--check", each))),
            checks=None if checks is None else tuple(checks),
            metrics=checked_metrics(metrics, loaded),
            along=loaded.report.x,
        )
        require_axes_that_fit(sweep)
    except FileError as error:
        raise WrongFile(Report(errors=[UsageError(str(problem)) for problem in error.problems])) from None
    if not axes and sweep.run_count() == 1:
        raise UsageError(f"nothing to vary: give --set PATH=V1,V2, --grid, --runs, or a `sweep:` section in {file}")
    return sweep


def _with_last(axes: Sequence[Axis], path: str | None) -> tuple[Axis, ...]:
    """The parameter that a report runs along is the one that changes first."""
    return tuple(sorted(axes, key=lambda axis: axis.path == path))


def share_of(text: str) -> float:
    """``--verify``: 1%, or 0. Raises `UsageError`."""
    from kgctl.simulate.scenario.values.rates import parse_share

    try:
        return parse_share(text if text.strip() != "0" else 0) / 1_000_000
    except ValueError as error:
        raise UsageError(f"--verify: {error}") from None
