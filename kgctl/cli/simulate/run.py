"""``kgctl simulate run``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.options import Yes
from kgctl.cli.report import Column, Report, Row
from kgctl.cli.session import Session, session_of
from kgctl.cli.simulate import against as real
from kgctl.cli.simulate import outputs, running
from kgctl.errors import ExpectationError, KgctlError, UsageError
from kgctl.simulate.recording.history import Identity

if TYPE_CHECKING:
    from kgctl.cli.simulate.outputs import Outputs
    from kgctl.cli.simulate.running import RunOptions
    from kgctl.simulate.report.outcome import Outcome
    from kgctl.simulate.scenario.load import LoadedFile

COLUMNS = (Column("variant"), Column("metric"), Column("min"), Column("median"), Column("p95"), Column("max"))
COLUMNS_BESIDE = (
    Column("variant"),
    Column("metric"),
    Column("simulated_min"),
    Column("simulated_median"),
    Column("simulated_max"),
    Column("measured_min"),
    Column("measured_median"),
    Column("measured_max"),
    Column("place"),
)
"""With ``--against``: what the seeds span beside what the plays span."""


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl simulate run deploy.yaml --runs 20 --gantt")(simulate_run)


def simulate_run(
    ctx: typer.Context,
    file: running.Scenario,
    *,
    seed: running.Seed = None,
    runs: running.Runs = None,
    variant: running.Variants = None,
    settings: running.Settings = None,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPR", help="Expect this instead of what the file expects; repeatable.", show_default=False),
    ] = None,
    identity: running.Who = Identity.POD,
    jobs: running.Jobs = None,
    time_limit: running.TimeLimit = None,
    check_determinism: Annotated[
        bool, typer.Option("--check-determinism", help="Run each seed twice and compare the event logs.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Tell why: the worst moment, and what each of its causes was worth.")
    ] = False,
    assumptions: Annotated[
        bool, typer.Option("--assumptions", help="Print what the runs assume: latencies, the poll loop, how the clients behave.")
    ] = False,
    gantt: outputs.Gantt = None,
    html: outputs.Html = None,
    junit: outputs.Junit = None,
    markdown: outputs.Markdown = None,
    events: outputs.Events = None,
    metrics: outputs.Metrics = None,
    records_out: outputs.RecordsOut = None,
    state_out: outputs.StateOut = None,
    against: real.Against = None,
    plays: real.Plays = 1,
    client: real.RealClient = None,
    kafka_libs: real.KafkaLibs = None,
    yes: Yes = False,
) -> Report:
    """Run a scenario: every variant with every seed, and hold the results against what the file expects."""
    from kgctl.cli.simulate.outputs import Outputs
    from kgctl.cli.simulate.running import RunOptions, WrongFile, load_scenario

    session = session_of(ctx)
    asked = None if against is None else real.AgainstOptions(against, plays, client, kafka_libs, yes)
    if asked is None and client is not None:
        raise UsageError("--client is what --against HOST:PORT plays with; without it nothing is played")
    files = {"html": html, "junit": junit, "markdown": markdown, "events": events, "metrics": metrics}
    folders = {"records": records_out, "state": state_out}
    words = _words(file, settings or (), identity)
    how = RunOptions(seed, runs, jobs, time_limit, twice=check_determinism, identity=identity, words=words)
    try:
        loaded = load_scenario(session, file, settings=settings, variants=variant, checks=check)
        outputs = Outputs(session, loaded.output, gantt=gantt, **files, **folders)
        outputs.check(loaded)
        how = replace(how, pictures=outputs.need_pictures, stories=explain or outputs.tells_why, ablations=explain)
        if asked is not None:
            return _against(session, loaded, how, outputs, asked, assumes=assumptions)
        return _report(loaded, outputs, _simulated(session, loaded, how), explains=explain, assumes=assumptions)
    except WrongFile as wrong:
        return wrong.report


def _against(
    session: Session, loaded: LoadedFile, how: RunOptions, outputs: Outputs, asked: real.AgainstOptions, *, assumes: bool
) -> Report:
    """Everything that can be wrong is found before anything is played; what is simulated are the clients that play."""
    from kgctl.simulate.batch.against import as_played

    kind = real.client_of(asked, loaded)
    real.check_playable(loaded, kind)
    loaded = as_played(loaded, kind.profile)
    real.ask_first(session, asked, loaded, kind)
    with real.staged(session, asked, kind) as stage:
        outcome = _simulated(session, loaded, how)
        try:
            outcome = real.play_beside(session, loaded, outcome, stage, draws=outputs.need_pictures)
        except real.Stopped as stopped:
            return stopped.report
    return _report(loaded, outputs, outcome, explains=how.ablations, assumes=assumes)


def _words(file: str, settings: Sequence[str], identity: Identity) -> tuple[str, ...]:
    """How the command that runs one of the seeds again begins."""
    words = ("kgctl", "simulate", "run", file, *(word for each in settings for word in ("--set", each)))
    return words if identity is Identity.POD else (*words, "--identity", identity.value)


def _simulated(session: Session, loaded: LoadedFile, how: RunOptions) -> Outcome:
    from kgctl.cli.simulate.running import look_closer, run_scenario
    from kgctl.simulate.batch.outcome import outcome_of

    if loaded.swept:
        session.notice(
            f"as the file stands; all values of {', '.join(loaded.swept)}: kgctl simulate sweep {shlex.quote(how.words[3])}"
        )
    seeds = how.seeds(loaded)
    outcome = outcome_of(loaded, seeds, run_scenario(session, loaded, how, seeds), replay_of=how.words)
    return look_closer(session, loaded, how, outcome)


def _report(loaded: LoadedFile, outputs: Outputs, outcome: Outcome, *, explains: bool, assumes: bool) -> Report:
    """Write the files, which have the stories in any case, and make the report, which has them where they were asked for."""
    from kgctl.simulate.batch.outcome import result_of
    from kgctl.simulate.report.text import summary_text

    outputs.write(loaded, outcome)
    errors: list[KgctlError] = []
    if stopped := [note for note in outcome.notes if "stopped at" in note]:
        errors.append(KgctlError(stopped[0], code="LIMIT"))
    if outcome.failures:
        errors.append(ExpectationError(_verdict(outcome)))
    is_beside = outcome.measured is not None
    return Report(
        COLUMNS_BESIDE if is_beside else COLUMNS,
        _rows_beside(outcome) if is_beside else _rows(outcome),
        errors,
        name_keys=("variant", "metric"),
        fixed_exit_code=_exit_code(errors),
        data=result_of(outcome),
        text=summary_text(outcome, outputs.width, outputs.gantt_of(outcome), explains=explains, assumes=assumes),
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


def _rows_beside(outcome: Outcome) -> Sequence[Row]:
    """The rows of a result: simulated and measured, metric by metric."""
    from kgctl.simulate.batch.outcome import number
    from kgctl.simulate.report.tables import beside

    return [
        {
            "variant": each.variant,
            "metric": each.metric,
            "simulated_min": number(each.simulated.minimum),
            "simulated_median": number(each.simulated.median),
            "simulated_max": number(each.simulated.maximum),
            "measured_min": number(each.measured.minimum),
            "measured_median": number(each.measured.median),
            "measured_max": number(each.measured.maximum),
            "place": str(each.place),
        }
        for each in beside(outcome)
    ]


def _verdict(outcome: Outcome) -> str:
    measured = outcome.measured
    asked = len(outcome.expectations) + (len(measured.expectations) if measured else 0)
    return f"{len(outcome.failures)} of {asked} expectations did not hold"


def _exit_code(errors: list[KgctlError]) -> ExitCode | None:
    if any(isinstance(error, ExpectationError) for error in errors):
        return ExitCode.EXPECTATION
    return ExitCode.FAILED if errors else None
