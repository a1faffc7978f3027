"""From the command line to a sweep: the file, the grid, the seeds."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.cli.output.report import Report
from kgctl.cli.session import Session
from kgctl.cli.simulate.running import RunOptions, WrongFile, progress
from kgctl.errors import InvariantViolation, UsageError
from kgctl.pipeline.engines import EngineOptions, open_engine

if TYPE_CHECKING:
    from kgctl.pipeline.spread import Engine
    from kgctl.simulate.sweep.plan import Axis, Sweep
    from kgctl.simulate.sweep.rows import RunRow


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
    from kgctl.cli.simulate.live_group import live_reader
    from kgctl.simulate.scenario.load import DEFAULT, load
    from kgctl.simulate.scenario.sources import read_source
    from kgctl.simulate.sweep.plan import Sweep, axes_of, require_axes_that_fit
    from kgctl.simulate.sweep.rows import checked_metrics
    from kgctl.yaml_files import FileError

    try:
        tree = read_source(file, session.environment.stdin, live_reader(session))
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
    from kgctl.simulate.scenario.quantities import parse_share

    try:
        return parse_share(text if text.strip() != "0" else 0) / 1_000_000
    except ValueError as error:
        raise UsageError(f"--verify: {error}") from None


class TimeIsUp(BaseException):
    """The time limit has been reached: like Ctrl-C, nothing may take it for an error of its own."""


@dataclass(slots=True)
class Swept:
    """What came of it. ``end``: "" for all of it, else why it ended before; ``verified``: how many runs were run again."""

    rows: list[RunRow]
    end: str = ""
    was_interrupted: bool = False
    verified: int = 0
    differences: Sequence[InvariantViolation] = ()


def run_sweep(session: Session, sweep: Sweep, engine: EngineOptions, *, limit_s: float | None, share: float) -> Swept:
    """All runs of a sweep, and a ``share`` of them once more in this process, to compare.

    Raises:
        UsageError: the engine needs what is not there. KgctlError: it does not start.
    """
    swept = Swept([])
    total = sweep.run_count()
    try:
        with _ends_early(limit_s):
            with progress(session.environment, sweep.name, total) as on_done, open_engine(engine) as opened:
                _collect(swept.rows, sweep, opened, on_done)
            _verify(session, swept, sweep, share)
    except KeyboardInterrupt:
        swept.end, swept.was_interrupted = f"interrupted: {len(swept.rows):,} of {total:,} runs are done", True
    except TimeIsUp:
        swept.end = f"stopped at the time limit: {len(swept.rows):,} of {total:,} runs are done"
    return swept


def _collect(rows: list[RunRow], sweep: Sweep, engine: Engine, on_done: Callable[[Any], None]) -> None:
    from kgctl.simulate.sweep.plan import blocks_of
    from kgctl.simulate.sweep.run import failed_rows, run_block

    blocks = blocks_of(sweep, engine.slots)
    for done in engine.stream(partial(run_block, sweep), blocks):
        failure = done.failure
        found = done.get() if failure is None else failed_rows(sweep, blocks[done.index], (failure.code, failure.message))
        rows += found
        for row in found:
            on_done(row)


def _verify(session: Session, swept: Swept, sweep: Sweep, share: float) -> None:
    from kgctl.simulate.sweep.run import chosen, differences

    again = chosen(sorted(swept.rows, key=lambda row: (row.number, row.variant, row.seed)), share)
    found = []
    with progress(session.environment, f"{sweep.name}, once more here", len(again)) as on_done:
        for difference in differences(sweep, again):
            swept.verified += 1
            on_done(difference)
            if difference is not None:
                found.append(difference)
    swept.differences = found


@contextmanager
def _ends_early(limit_s: float | None) -> Iterator[None]:
    """SIGTERM ends the work as Ctrl-C does, and so does the end of the time: all three leave what is done."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def time_is_up(*_: object) -> None:
        raise TimeIsUp

    handlers = {signal.SIGTERM: interrupt, signal.SIGINT: interrupt}
    if limit_s is not None:
        handlers[signal.SIGALRM] = time_is_up
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        if limit_s is not None:
            # again after a second: an exception that falls into a finaliser or a garbage collection's callback is lost
            signal.setitimer(signal.ITIMER_REAL, limit_s, 1.0)
        yield
    finally:
        if limit_s is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
