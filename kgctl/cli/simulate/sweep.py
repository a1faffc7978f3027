"""``kgctl simulate sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgctl.cli.report import Report
from kgctl.cli.session import session_of
from kgctl.cli.simulate import running
from kgctl.cli.simulate.running import RunOptions
from kgctl.pipeline.engines import EngineName, EngineOptions


def register(app: typer.Typer) -> None:
    example = (
        "Example: kgctl simulate sweep deploy.yaml --set group.config.session.timeout.ms=10s,45s --runs 50 --out runs.parquet"
    )
    app.command(epilog=example)(simulate_sweep)


Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=V1,V2,...",
        help="A parameter: values, or a range as in 10s..60s step 10s; one value alone holds for all runs. Repeatable.",
        show_default=False,
    ),
]
Grid = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="YAML: paths with lists of values or ranges, as in the file's `sweep:`.", show_default=False
    ),
]
Runs = Annotated[int | None, typer.Option("--runs", "--seeds", min=1, metavar="N", help="How many seeds.", show_default=False)]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes; one for each processor.", show_default=False)]
Master = Annotated[str | None, typer.Option(metavar="URL", help="Spark's master; local[*] otherwise.", show_default=False)]
Remote = Annotated[str | None, typer.Option(metavar="URL", help="A server of Spark Connect: sc://HOST:PORT.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a row for each run: .parquet (needs the extra spark), .csv, .json or .jsonl.",
        show_default=False,
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Sum up this metric, as max_gap or unavailable(cause rebalance), instead of the file's; repeatable.",
        show_default=False,
    ),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write charts as one HTML page.", show_default=False)]


def simulate_sweep(
    ctx: typer.Context,
    file: running.Scenario,
    *,
    settings: Settings = None,
    grid: Grid = None,
    seed: running.Seed = None,
    runs: Runs = None,
    variant: running.Variants = None,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPR", help="Expect this instead of what the file expects; repeatable.", show_default=False),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="Processes of this machine, or Spark; auto takes Spark where a master is given.")
    ] = EngineName.AUTO,
    jobs: Jobs = None,
    master: Master = None,
    remote: Remote = None,
    time_limit: running.TimeLimit = None,
    verify: Annotated[
        str, typer.Option(metavar="SHARE", help="How many of the runs to run again here, to compare; 0 for none.")
    ] = "1%",
    metric: Metrics = None,
    rows: Annotated[bool, typer.Option("--rows", help="Show each run instead of a summary.")] = False,
    out: Out = None,
    html: Html = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show what Spark logs.")] = False,
) -> Report:
    """Run a scenario over a grid of parameters, with every variant and seed: one row a run, whatever comes of it."""
    from kgctl.cli.simulate.running import WrongFile
    from kgctl.cli.simulate.sweep_report import Shown, planned_sweep, report_of, run_sweep, share_of

    session = session_of(ctx)
    how = RunOptions(seed=seed, runs=runs, time_limit=time_limit)
    _check_files(out, html)
    limit_s, share = how.time_limit_s(), share_of(verify)
    try:
        sweep = planned_sweep(
            session, file, grid, settings or (), variants=variant or (), checks=check, seeds=how, metrics=metric or ()
        )
    except WrongFile as wrong:
        return wrong.report
    what = EngineOptions(name=engine, jobs=jobs, master=master, remote=remote, shows_log=verbose)
    swept = run_sweep(session, sweep, what, limit_s=limit_s, share=share)
    return report_of(session, sweep, swept, Shown.of(sweep, each_run=rows, out=out, html=html))


def _check_files(out: Path | None, html: Path | None) -> None:
    """Before minutes of work: whether all of it can be written."""
    from kgctl.cli.simulate.sweep_report import check_out, check_page

    if out is not None:
        check_out(out)
    if html is not None:
        check_page(html)
