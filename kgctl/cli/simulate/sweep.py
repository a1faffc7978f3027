"""``kgctl simulate sweep``."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from kgctl.cli.environment import handling, interrupt
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import ANY, NUMBER, WHOLE, Column, Report, shows
from kgctl.cli.session import Session
from kgctl.cli.simulate import running
from kgctl.cli.simulate.running import DIGEST, VARIANT, RunOptions, progress
from kgctl.errors import ExpectationError, InvariantViolation, KgctlError, UsageError
from kgctl.files import check_place, write_whole
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.engines import EngineName, EngineOptions, open_engine

if TYPE_CHECKING:
    from kgctl.pipeline.engines import Engine
    from kgctl.simulate.metrics.troubles import Trouble
    from kgctl.simulate.sweep.plan import Cell, RunRow, Sweep

_PARAMETER = Column("PARAMETER", "a parameter of `--set` or `--grid`: its value", ANY)
SUMMED_UP = (
    _PARAMETER,
    VARIANT,
    Column("runs", "how many runs", WHOLE),
    Column("errors", "of them without a result", WHOLE),
    Column("failed", "of the others, those with an expectation that did not hold", WHOLE),
    *(
        Column(f"METRIC_{key}", f"the metric's {key}; null: never ends, or no run has it", NUMBER)
        for key in ("median", "p95", "max")
    ),
    Column("worst_seed", "the seed to look at; null: all are alike", WHOLE),
)
EACH_RUN = (
    _PARAMETER,
    VARIANT,
    Column("seed", "the seed", WHOLE),
    DIGEST,
    Column("METRIC", "a metric's value; null: never ends, or nothing to measure", NUMBER),
    Column("events", "how many events the run had", WHOLE),
    Column("expectations_passed", "expectations that hold", WHOLE),
    Column("expectations_failed", "expectations that do not", WHOLE),
    Column("failed_checks", "those that do not, joined by `; `"),
    Column("trouble", "the first thing that went wrong though nobody asked"),
    Column("stopped", "why it ended early"),
    Column("error_code", "the code of the error that left it without a result"),
    Column("error", "that error"),
    Column("replay", "the line that runs it again, where something was wrong"),
)


EXAMPLES = "kgctl simulate sweep deploy.yaml --set group.config.session.timeout.ms=10s,45s --runs 50 --out runs.parquet"


Settings = Annotated[
    list[str] | None,
    option(
        "PATH=V1,V2,...",
        "A parameter: values, or a range as in 10s..60s step 10s; one value alone holds for all runs. Repeatable.",
        "--set",
    ),
]
Grid = Annotated[Path | None, option("FILE", "YAML: paths with lists of values or ranges, as in the file's `sweep:`.")]
Runs = Annotated[int | None, option("N", "How many seeds.", "--runs", "--seeds", min=1)]
Jobs = Annotated[int | None, option("N", "Processes; one for each processor.", min=1)]
Master = Annotated[str | None, option("URL", "Spark's master; local[*] otherwise.")]
Remote = Annotated[str | None, option("URL", "A server of Spark Connect: sc://HOST:PORT.")]
Out = Annotated[Path | None, option("FILE", "Write a row for each run: .parquet (needs the extra spark), .csv, .json or .jsonl.")]
Metrics = Annotated[
    list[str] | None,
    option(
        "NAME", "Sum up this metric, as max_gap or unavailable(cause rebalance), instead of the file's; repeatable.", "--metric"
    ),
]
Html = Annotated[Path | None, option("FILE", "Write charts as one HTML page.", "--html")]


@shows(SUMMED_UP, EACH_RUN, examples=EXAMPLES)
def simulate_sweep(
    session: Session,
    file: running.Scenario,
    *,
    settings: Settings = None,
    grid: Grid = None,
    seed: running.Seed = None,
    runs: Runs = None,
    variant: running.Variants = None,
    check: running.Checks = None,
    engine: Annotated[
        EngineName, option("", "Processes of this machine, or Spark; auto takes Spark where a master is given.")
    ] = EngineName.AUTO,
    jobs: Jobs = None,
    master: Master = None,
    remote: Remote = None,
    time_limit: running.TimeLimit = None,
    verify: Annotated[str, option("SHARE", "How many of the runs to run again here, to compare; 0 for none.")] = "1%",
    metric: Metrics = None,
    must_hold: Annotated[
        bool, flag("--must-hold", "Exit with 6 where an expectation fails anywhere, not only where none holds.")
    ] = False,
    rows: Annotated[bool, flag("--rows", "Show each run instead of a summary.")] = False,
    out: Out = None,
    html: Html = None,
    verbose: Annotated[bool, flag("--verbose", "Show what Spark logs.")] = False,
) -> Report:
    """Run a scenario over a grid of parameters, with every variant and seed: one row a run, whatever comes of it."""
    from kgctl.simulate.scenario.expressions import key_of

    how = RunOptions(seed=seed, runs=runs, time_limit=time_limit)
    if out is not None:
        check_out(out)
    if html is not None:
        check_page(html)
        if html == out:
            raise UsageError(f"{html}: each output needs a file of its own")
    limit_s, share = how.time_limit_s(), share_of(verify)
    sweep = planned_sweep(
        session, file, grid, settings or (), variants=variant or (), checks=check, seeds=how, metrics=metric or ()
    )
    what = EngineOptions(name=engine, jobs=jobs, master=master, remote=remote, shows_log=verbose)
    swept = run_sweep(session, sweep, what, limit_s=limit_s, share=share)
    return report_of(session, sweep, swept, SweepShown(tuple(map(key_of, sweep.metrics)), rows, must_hold, out, html))


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
        FileError: file or grid have mistakes. UsageError, NotFoundError: something cannot be read, or there is nothing to vary.
    """
    from kgctl.simulate.scenario.load import DEFAULT, load
    from kgctl.simulate.scenario.sources import read_source
    from kgctl.simulate.sweep.plan import Sweep, axes_of, checked_metrics, require_axes_that_fit

    tree = running.read_scenario(session, file)
    axes, fixed = axes_of(tree, None if grid is None else read_source(str(grid)), settings)
    loaded = load(tree, settings=fixed, variants=variants, checks=checks)
    sweep = Sweep(
        tree=tree,
        name=loaded.name,
        axes=tuple(sorted(axes, key=lambda axis: axis.path == loaded.report.x)),  # what a report runs along changes first
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
    if not axes and sweep.run_count() == 1:
        raise UsageError(f"nothing to vary: give --set PATH=V1,V2, --grid, --runs, or a `sweep:` section in {file}")
    return sweep


def share_of(text: str) -> float:
    """Parse ``--verify``: 1%, or 0. Raises `UsageError`."""
    from kgctl.simulate.scenario.quantities import parse_share

    return running.option_value("--verify", parse_share, text if text.strip() != "0" else 0) / 1_000_000


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
    from kgctl.simulate.sweep.plan import blocks_of, failed_rows, run_block

    blocks = blocks_of(sweep, engine.slots)
    for done in engine.stream(partial(run_block, sweep), blocks):
        failure = done.failure
        found = done.get() if failure is None else failed_rows(sweep, blocks[done.index], (failure.code, failure.message))
        rows += found
        for row in found:
            on_done(row)


def _verify(session: Session, swept: Swept, sweep: Sweep, share: float) -> None:
    from kgctl.simulate.sweep.plan import chosen, differences

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

    def time_is_up(*_: object) -> None:
        raise TimeIsUp

    with handling({signal.SIGTERM: interrupt, signal.SIGINT: interrupt, signal.SIGALRM: time_is_up}):
        try:
            # again after a second: an exception that falls into a finaliser or a garbage collection's callback is lost
            signal.setitimer(signal.ITIMER_REAL, limit_s or 0, 1.0 if limit_s else 0)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


Records = Sequence["Mapping[str, Cell]"]


def check_out(path: Path) -> None:
    """Before minutes of work: raise `kgctl.errors.UsageError` for what could not be written after them."""
    if path.suffix not in _WRITERS:
        raise UsageError(f"--out {path}: its name must end in one of {', '.join(_WRITERS)}")
    if path.suffix == ".parquet":
        from kgctl.extras import require

        require(f"--out {path}", "pyarrow")
    check_place(path)


def check_page(path: Path) -> None:
    """Check the path of ``--html``. Raises `UsageError`."""
    from kgctl.charts.page import require_library

    require_library()
    check_place(path)


def _parquet(file: BinaryIO, kinds: Mapping[str, type], records: Records, metadata: Mapping[str, str]) -> None:
    from kgctl.pipeline.store.files import write_rows

    write_rows(file, kinds, records, metadata=metadata)


def _csv(file: BinaryIO, kinds: Mapping[str, type], records: Records, _: Mapping[str, str]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kinds)
    writer.writerows([record[name] for name in kinds] for record in records)
    file.write(text.getvalue().encode())


def _json_lines(file: BinaryIO, _: Mapping[str, type], records: Records, __: Mapping[str, str]) -> None:
    file.writelines(f"{json.dumps(record, ensure_ascii=False)}\n".encode() for record in records)


def _json(file: BinaryIO, _: Mapping[str, type], records: Records, metadata: Mapping[str, str]) -> None:
    file.write((json.dumps({**metadata, "rows": list(records)}, indent=1, ensure_ascii=False) + "\n").encode())


_WRITERS: Mapping[str, Callable[[BinaryIO, Mapping[str, type], Records, Mapping[str, str]], None]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _json_lines,
}


_MOST_TOLD = 5


@frozen_in_order
class SweepShown:
    """``metrics`` are summed up; ``each_run``: a line for each run instead. ``out``, ``html``: files to write.

    ``must_hold``: a grid is no search, which ends well where some of it holds, but a test.
    """

    metrics: tuple[str, ...]
    each_run: bool
    must_hold: bool
    out: Path | None
    html: Path | None


def report_of(session: Session, sweep: Sweep, swept: Swept, shown: SweepShown) -> Report:
    from kgctl.simulate.sweep.plan import RowLayout, summary_columns, summary_rows

    layout = RowLayout(sweep)
    swept.rows = layout.ordered(swept.rows)
    for line in (*_trouble_lines(swept), *_left_out_lines(sweep, swept)):
        session.notice(line)  # before the table
    _write(session, sweep, swept, shown)
    summary = list(summary_rows(sweep, swept.rows, shown.metrics))
    rows = layout.records(swept.rows) if shown.each_run else summary
    columns = list(layout.kinds()) if shown.each_run else summary_columns(sweep, shown.metrics)
    errors = _errors(sweep, swept, shown)
    return Report(
        [Column(name) for name in columns],
        rows,
        errors,
        notices=_notices(sweep, swept, shown),
        name_keys=("digest",) if shown.each_run else layout.parameters or ("runs",),
        fixed_exit_code=_exit_code(swept, errors),
    )


def _write(session: Session, sweep: Sweep, swept: Swept, shown: SweepShown) -> None:
    from kgctl import __version__
    from kgctl.simulate.sweep.plan import RowLayout, digest_of_rows

    if shown.out is not None:
        layout = RowLayout(sweep)
        metadata = {"scenario": sweep.name, "kgctl": __version__, "digest": digest_of_rows(swept.rows)}
        write, records = _WRITERS[shown.out.suffix], layout.records(swept.rows)
        write_whole(shown.out, lambda file: write(file, layout.kinds(), records, metadata))
        session.notice(f"written: {shown.out}")
    if shown.html is not None:
        from kgctl.simulate.sweep.html import sweep_page

        page = sweep_page(sweep, swept.rows, shown.metrics)
        write_whole(shown.html, lambda file: file.write(page.encode()))
        session.notice(f"written: {shown.html}")


def _trouble_lines(swept: Swept) -> Iterator[str]:
    """What went wrong unasked, each kind as it was in the first run that has it; then what did so and is let through."""
    kinds: dict[tuple[bool, str], list[tuple[Trouble, RunRow]]] = {}
    for row in swept.rows:
        for each in (*row.troubles, *row.allowed):
            kinds.setdefault((each.is_allowed, each.kind), []).append((each, row))
    for (is_allowed, _), found in sorted(kinds.items(), key=lambda kind: kind[0][0]):
        first, row = found[0]
        often = f"{len(found):,} of {len(swept.rows):,} runs"
        yield f"allowed: {first.text} ({often})" if is_allowed else f"FAIL {first.text} ({often}; this one: {row.replay})"


def _left_out_lines(sweep: Sweep, swept: Swept) -> Iterator[str]:
    """The events that happened with no seed of a point, of each variant: it is another question than where they happen."""
    from kgctl.simulate.batch.outcome import never_happened

    for name in sweep.variant_names:
        ran = [row for row in swept.rows if row.variant == name and row.error is None]
        points = [[row.left_out for row in group] for _, group in groupby(ran, key=attrgetter("number"))]
        often = Counter(each for of_point in points for each in never_happened(of_point))
        for (check, why), number in often.items():
            where = f" at {number:,} of {len(points):,} points" if sweep.axes else ""
            yield f"WARN {f'{name}: ' if sweep.has_variants else ''}{check}: {why}{where}"


def _errors(sweep: Sweep, swept: Swept, shown: SweepShown) -> list[KgctlError]:
    """A grid is a search, in which some points of a variant hold; a failure is one of which none does, and one where all must."""
    from kgctl.simulate.sweep.holding import held_points

    errors: list[KgctlError] = list(swept.differences)
    if swept.end:
        errors.append(KgctlError(swept.end, code="LIMIT"))
    broken = [row for row in swept.rows if row.error is not None]
    kinds = dict.fromkeys((row.error_code, row.error) for row in broken)
    for code, message in list(kinds)[:_MOST_TOLD]:
        alike = [row for row in broken if (row.error_code, row.error) == (code, message)]
        errors.append(_error_of(alike, len(swept.rows)))
    if len(kinds) > _MOST_TOLD:
        errors.append(KgctlError(f"{len(kinds) - _MOST_TOLD} more kinds of errors; --rows and --out have them all"))
    failed = [row for row in swept.rows if row.expectations_failed]
    is_search = bool(sweep.axes) and not shown.must_hold
    if failed and not (is_search and all(held_points(sweep, swept.rows, name) for name in {row.variant for row in failed})):
        text = f"expectations did not hold in {len(failed):,} of {len(swept.rows):,} runs; the first: {failed[0].replay}"
        errors.append(ExpectationError(text))
    return errors


def _error_of(alike: Sequence[RunRow], total: int) -> KgctlError:
    first = alike[0]
    text = f"{len(alike):,} of {total:,} runs failed: {first.error}; the first: {first.replay}"
    return InvariantViolation(text) if is_bug(first) else KgctlError(text, code=first.error_code)


def is_bug(row: RunRow) -> bool:
    """Whether a run failed by what no scenario should be able to cause."""
    from kgctl.simulate.sweep.plan import INTERNAL_ERROR

    return row.error_code in (InvariantViolation.slug, INTERNAL_ERROR)


def _notices(sweep: Sweep, swept: Swept, shown: SweepShown) -> list[str]:
    from kgctl.simulate.sweep.holding import idle_axes, smallest_lines
    from kgctl.simulate.sweep.plan import replay_of, worst_of

    worst = None if shown.each_run else worst_of(swept.rows, shown.metrics[0])
    told = [] if worst is None else [replay_of(sweep, sweep.points()[worst.number], worst.variant, worst.seed)]
    notices = [*(smallest_lines(sweep, swept.rows) if sweep.axes and not swept.end else ())]
    notices += [
        f"{path} changes nothing: the runs are the same with each of its values"
        for path in (() if swept.end else idle_axes(sweep, swept.rows))
    ]
    notices += [f"not asked in any run{where}: {text}" for where, text in _never_asked(sweep, swept)]
    notices += [f"the worst by {shown.metrics[0]}: {command}" for command in told]
    if not swept.verified:
        return notices
    runs = "1 run" if swept.verified == 1 else f"{swept.verified:,} runs"
    same = swept.verified - len(swept.differences)
    return [*notices, f"{runs} repeated here: {'the same' if same == swept.verified else f'{same:,} the same'}"]


def _never_asked(sweep: Sweep, swept: Swept) -> Iterator[tuple[str, str]]:
    """The expectations of which nothing is known, of each variant: they have not held."""
    from kgctl.simulate.sweep.holding import never_asked

    for name in sweep.variant_names:
        if never := never_asked([row for row in swept.rows if row.variant == name]):
            yield f" of {name}" if sweep.has_variants else "", "; ".join(never)


def _exit_code(swept: Swept, errors: Sequence[KgctlError]) -> ExitCode | None:
    """The worst that there is: a bug, then an interruption, expectations, the time limit, runs without a result."""
    if any(isinstance(error, InvariantViolation) for error in errors):
        return ExitCode.BUG
    if swept.was_interrupted:
        return ExitCode.INTERRUPTED
    if any(isinstance(error, ExpectationError) for error in errors):
        return ExitCode.EXPECTATION
    if swept.end:
        return ExitCode.FAILED
    if all(row.error is None for row in swept.rows):
        return None
    return ExitCode.PARTIAL if any(row.error is None for row in swept.rows) else ExitCode.FAILED
