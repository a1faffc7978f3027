"""``kgctl simulate run``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import Session, session_of
from kgctl.cli.simulate import options, outputs
from kgctl.errors import ExpectationError, KgctlError
from kgctl.simulate.recording.history import Identity

if TYPE_CHECKING:
    from kgctl.cli.simulate.outputs import Outputs
    from kgctl.cli.simulate.running import RunOptions
    from kgctl.simulate.report.outcome import Outcome
    from kgctl.simulate.scenario.load import LoadedFile

COLUMNS = (Column("variant"), Column("metric"), Column("min"), Column("median"), Column("p95"), Column("max"))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl simulate run deploy.yaml --runs 20 --gantt")(simulate_run)


def simulate_run(
    ctx: typer.Context,
    file: options.Scenario,
    *,
    seed: options.Seed = None,
    runs: options.Runs = None,
    variant: options.Variants = None,
    settings: options.Settings = None,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPR", help="Expect this instead of what the file expects; repeatable.", show_default=False),
    ] = None,
    identity: options.Who = Identity.POD,
    jobs: options.Jobs = None,
    time_limit: options.TimeLimit = None,
    check_determinism: Annotated[
        bool, typer.Option("--check-determinism", help="Run each seed twice and compare the event logs.")
    ] = False,
    gantt: outputs.Gantt = None,
    html: outputs.Html = None,
    junit: outputs.Junit = None,
    markdown: outputs.Markdown = None,
    events: outputs.Events = None,
    metrics: outputs.Metrics = None,
    records_out: outputs.RecordsOut = None,
    state_out: outputs.StateOut = None,
) -> Report:
    """Run a scenario: every variant with every seed, and hold the results against what the file expects."""
    from kgctl.cli.simulate.outputs import Outputs
    from kgctl.cli.simulate.running import RunOptions, WrongFile, load_scenario

    session = session_of(ctx)
    try:
        loaded = load_scenario(session, file, settings=settings, variants=variant, checks=check)
    except WrongFile as wrong:
        return wrong.report
    outputs = Outputs(
        session,
        loaded.output,
        gantt=gantt,
        html=html,
        junit=junit,
        markdown=markdown,
        events=events,
        metrics=metrics,
        records=records_out,
        state=state_out,
    )
    outputs.check(loaded)
    how = RunOptions(
        seed=seed,
        runs=runs,
        jobs=jobs,
        time_limit=time_limit,
        twice=check_determinism,
        pictures=outputs.need_pictures,
        identity=identity,
    )
    return _report(session, loaded, how, outputs, _words(file, settings or (), identity))


def _words(file: str, settings: Sequence[str], identity: Identity) -> list[str]:
    """How the command that runs one of the seeds again begins."""
    words = ["kgctl", "simulate", "run", file, *(word for each in settings for word in ("--set", each))]
    return words if identity is Identity.POD else [*words, "--identity", identity.value]


def _report(session: Session, loaded: LoadedFile, how: RunOptions, outputs: Outputs, words: list[str]) -> Report:
    from kgctl.cli.simulate.running import run_scenario
    from kgctl.simulate.batch.outcome import outcome_of, result_of
    from kgctl.simulate.report.text import summary_text

    if loaded.swept:
        session.notice(
            f"as the file stands; all values of {', '.join(loaded.swept)}: kgctl simulate sweep {shlex.quote(words[3])}"
        )
    seeds = how.seeds(loaded)
    values = run_scenario(session, loaded, how, seeds)
    outcome = outcome_of(loaded, seeds, values, replay_of=words)
    outputs.write(loaded, outcome)
    errors: list[KgctlError] = []
    if stopped := [note for note in outcome.notes if "stopped at" in note]:
        errors.append(KgctlError(stopped[0], code="LIMIT"))
    if outcome.failures:
        errors.append(ExpectationError(_verdict(outcome)))
    return Report(
        COLUMNS,
        _rows(outcome),
        errors,
        name_keys=("variant", "metric"),
        fixed_exit_code=_exit_code(errors),
        data=result_of(outcome),
        text=summary_text(outcome, outputs.width, outputs.gantt_of(outcome)),
    )


def _rows(outcome: Outcome) -> Sequence[Row]:
    from kgctl.simulate.batch.outcome import number

    return [
        {
            "variant": name,
            "metric": metric,
            "min": number(spread.minimum),
            "median": number(spread.median),
            "p95": number(spread.p95),
            "max": number(spread.maximum),
        }
        for name, variant in outcome.variants.items()
        for metric, spread in variant.metrics.items()
    ]


def _verdict(outcome: Outcome) -> str:
    count = len(outcome.failures)
    return f"{count} of {len(outcome.expectations)} expectations did not hold"


def _exit_code(errors: list[KgctlError]) -> ExitCode | None:
    if any(isinstance(error, ExpectationError) for error in errors):
        return ExitCode.EXPECTATION
    return ExitCode.FAILED if errors else None
