"""``kgctl simulate run``: what to run, what to show, and what to write beside the result."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kgctl.cli.options import Yes
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import ANY, BOOL, NUMBER, NUMBERS, TEXTS, WHOLE, Column, Report, Row, below, shows
from kgctl.cli.session import Session
from kgctl.cli.simulate import against as real
from kgctl.cli.simulate import running
from kgctl.cli.simulate.running import DIGEST, METRIC, VARIANT
from kgctl.errors import ExpectationError, KgctlError, StorageError, UsageError, plural
from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.vocabulary import Identity

if TYPE_CHECKING:
    from kgctl.cli.simulate.running import RunOptions
    from kgctl.simulate.batch.baseline import Baseline
    from kgctl.simulate.report.outcome import Outcome
    from kgctl.simulate.scenario.load import LoadedFile


@frozen_in_order
class OutputOptions:
    """A block of options: what is written beside the result."""

    gantt: Annotated[bool | None, flag("--gantt/--no-gantt", "Draw who consumed which partition when, of the worst seed.")] = None
    html: Annotated[Path | None, option("FILE", "Write one HTML page that needs nothing else.")] = None
    junit: Annotated[Path | None, option("FILE", "Write JUnit XML.")] = None
    markdown: Annotated[Path | None, option("FILE", "Write a summary for a pull request.")] = None
    events: Annotated[Path | None, option("FILE", "Write the event log of every run as JSON lines.")] = None
    metrics: Annotated[Path | None, option("FILE", "Write the data of -o json.")] = None
    records: Annotated[Path | None, option("DIR", "Write the coordinator's log, of the first seed.", "--records-out")] = None
    state: Annotated[Path | None, option("DIR", "Write the group as it is left, for --embedded DIR.", "--state-out")] = None


Stored = Annotated[Path | None, option("FILE", "Hold it beside a result that --metrics FILE has written.", "--baseline")]
Explain = Annotated[bool, flag("--explain", "Tell why: the worst moment, and what each of its causes was worth.")]


_WIDTH = 100
_MOST_LANES, _MOST_LANES_OF_SEVERAL = 24, 12
_JOB_SUMMARY = "GITHUB_STEP_SUMMARY"


class Outputs:
    """Flags, and what the file asks for where they say nothing."""

    def __init__(self, session: Session, in_file: Mapping[str, str], options: OutputOptions) -> None:
        from kgctl.simulate.batch.files import OutputFiles

        given = {name: value for name, value in asdict(options).items() if value is not None}
        summary = session.environment.variables.get(_JOB_SUMMARY)
        self._session = session
        self._gantt = bool(given.pop("gantt", in_file.get("gantt")))
        from_file: dict[str, Any] = {name: Path(text) for name, text in in_file.items() if name != "gantt"}
        self.files = OutputFiles(**{**from_file, **given}, appended=(Path(summary),) if summary else ())

    @property
    def need_pictures(self) -> bool:
        """Whether something shows who consumed what when."""
        return self._gantt or self.files.wants_pictures

    @property
    def width(self) -> int:
        """The columns that a person has; 100 where nobody looks."""
        return shutil.get_terminal_size((_WIDTH, 0)).columns if self._session.environment.stdout_is_terminal else _WIDTH

    def gantt_of(self, outcome: Outcome) -> list[str]:
        """The lines of all variants' pictures, if they are wanted; those first of which an expectation failed."""
        from kgctl.simulate.batch.plan import in_order_of_interest
        from kgctl.simulate.report.text import LEGEND, gantt_lines

        if not self._gantt:
            return []
        is_lone = len(outcome.variants) == 1
        most = _MOST_LANES if is_lone else _MOST_LANES_OF_SEVERAL
        names = in_order_of_interest(outcome)
        drawn = [(name, variant.picture) for name in names if (variant := outcome.variants[name]).picture is not None]
        lines = [line for name, each in drawn for line in gantt_lines(each, self.width, most, title="" if is_lone else name)]
        return [*lines, LEGEND] if lines else []

    def write(self, loaded: LoadedFile, outcome: Outcome) -> list[KgctlError]:
        """Write them, and return what could not be written: the result is shown all the same."""
        errors: list[KgctlError] = []
        try:
            for path in self.files.write(loaded, outcome):
                self._session.notice(f"written: {path}")
        except StorageError as error:
            errors.append(error)
        if self._session.environment.variables.get("GITHUB_ACTIONS") == "true":
            for line in github_annotations(outcome, loaded.source):
                self._session.notice(line)
        return errors


def github_annotations(outcome: Outcome, file: str) -> list[str]:
    """What GitHub shows beside the file in a pull request: a line for each expectation that did not hold."""
    from kgctl.simulate.report.outcome import show
    from kgctl.simulate.report.tables import allowed_lines, metric_of

    found = [f"::notice file={_property(file)},title=kgctl simulate::{_escaped(text)}" for text in allowed_lines(outcome)]
    for each in (*outcome.failures, *outcome.warnings):
        level = "error" if each.severity == "fail" else "warning"
        variant = "" if [*outcome.variants] == ["default"] else f" in variant {each.variant}"
        why = f" ({each.note})" if each.note else ""
        what = f"observed {show(metric_of(each.check), each.observed)} with seed {each.seed}{why}"
        text = f"{each.note}{variant}" if each.is_unasked else f"{each.check} does not hold{variant}: {what}"
        text += f"\nreplay: {each.replay}" if each.replay else ""
        found.append(f"::{level} file={_property(file)},title=kgctl simulate::{_escaped(text)}")
    return found


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


_MOST_DOUBTS = 3
_OF = (VARIANT, METRIC)
_STATISTICS = {
    "min": "the lowest",
    "median": "the one in the middle",
    "p95": "the one that 95 % do not exceed",
    "max": "the highest",
}
COLUMNS = (
    *_OF,
    *(Column(key, f"{meaning} of the seeds", NUMBER) for key, meaning in _STATISTICS.items()),
)
_BESIDE = ("min", "median", "max")
COLUMNS_BESIDE = (
    *_OF,
    *(
        Column(f"{what}_{key}", f"{_STATISTICS[key]} of the {of}", NUMBER)
        for what, of in (("simulated", "seeds"), ("measured", "plays"))
        for key in _BESIDE
    ),
    Column("place", "where what was measured lies, as seen from what the seeds span"),
)
"""With ``--against``: what the seeds span beside what the plays span."""

_SPREAD = (
    Column("min", "the lowest of the seeds; null: never ends, or nothing to measure", NUMBER),
    *(Column(key, _STATISTICS[key], NUMBER) for key in ("median", "p95", "max")),
    Column("per_seed", "each, in the order of `seeds`", NUMBERS),
    Column("never", "the seeds of which null stands for a time that never ends", NUMBERS),
)
_VARIANT = (
    *below("metrics.METRIC", _SPREAD),
    Column("final_assignment.MEMBER.TOPIC", "the partitions that the pod has in the end, first seed", NUMBERS),
    Column("longest_gaps.PARTITION", "its longest time without a consumer, worst seed", NUMBER, "s"),
    Column("assumptions.NAME", "what was assumed since the file does not say it"),
    Column(
        "rehearsed", "the question of its runs: topics with what is written to them, events, and what else is not tried", TEXTS
    ),
)
_EXPECTATION = (
    Column("check", "the line of `expect:`"),
    Column("variant", "the variant that it was asked of; null: of all together"),
    Column("passed", "whether it holds", BOOL),
    Column("observed", "what was found, of the seed that decides", ANY),
    Column("seed", "that seed", WHOLE),
    Column("severity", "error or warning"),
    Column("replay", "the line that plays it again"),
)
_MEASURED = (
    Column("cluster", "the cluster that it was played on"),
    Column("client", "the client that played"),
    Column("plays", "how many times", WHOLE),
    *below("variants.VARIANT", _VARIANT),
    Column("places.VARIANT.METRIC", "where what was measured lies, as seen from what the seeds span"),
    *below("expectations[]", _EXPECTATION),
)
DOCUMENT = (
    Column("scenario", "the scenario's name"),
    Column("kgctl", "the version that ran it"),
    DIGEST,
    Column("seeds", "the seeds", NUMBERS),
    *below("variants.VARIANT", _VARIANT),
    Column("troubles[].check", "the kind of what went wrong though nobody asked"),
    Column("troubles[].variant", "in which variant"),
    Column("troubles[].text", "what went wrong, who, when and by which rule"),
    Column("troubles[].seed", "with which seed", WHOLE),
    Column("troubles[].replay", "the line that plays it again"),
    Column("allowed[].check", "the kind of what went wrong and is let through, as the file allows it"),
    Column("allowed[].variant", "in which variant"),
    Column("allowed[].text", "what went wrong, who, when and by which rule"),
    Column("allowed[].seed", "with which seed", WHOLE),
    *below("expectations[]", _EXPECTATION),
    *below("measured", _MEASURED),
)
"""What JSON and YAML have in the place of rows, by paths."""


@shows(COLUMNS, COLUMNS_BESIDE, document=DOCUMENT, examples="kgctl simulate run deploy.yaml --runs 20 --gantt")
def simulate_run(
    session: Session,
    file: running.Scenario,
    *,
    seed: running.Seed = None,
    runs: running.Runs = None,
    variant: running.Variants = None,
    settings: running.Settings = None,
    check: running.Checks = None,
    identity: running.Who = Identity.POD,
    jobs: running.Jobs = None,
    time_limit: running.TimeLimit = None,
    check_determinism: Annotated[bool, flag("--check-determinism", "Run each seed twice and compare the event logs.")] = False,
    explain: Explain = False,
    assumptions: Annotated[
        bool, flag("--assumptions", "Print what the runs assume: latencies, the poll loop, how the clients behave.")
    ] = False,
    baseline: Stored = None,
    fail_if_worse: running.FailIfWorse = None,
    files: OutputOptions,
    play: real.AgainstOptions,
    yes: Yes = False,
) -> Report:
    """Run a scenario: every variant with every seed, and hold the results against what the file expects."""

    if baseline is None and fail_if_worse:
        raise UsageError("--fail-if-worse: worse than what? name a stored result by --baseline FILE")
    words = _words(file, settings or (), identity)
    how = running.RunOptions(seed, runs, jobs, time_limit, twice=check_determinism, identity=identity, words=words)
    loaded = running.load_scenario(session, file, settings=settings, variants=variant, checks=check)
    outputs = Outputs(session, loaded.output, files)
    outputs.files.check(loaded)
    beside = None if baseline is None else _baseline(loaded, how, baseline, fail_if_worse or ())
    how = replace(how, pictures=outputs.need_pictures, stories=explain or outputs.files.tells_why, ablations=explain)
    if play.against is not None:
        return _against(session, loaded, how, outputs, play, assumes=assumptions, beside=beside, yes=yes)
    _tell_doubts(session, loaded, file)
    return _report(loaded, outputs, _simulated(session, loaded, how, beside), explains=explain, assumes=assumptions)


def _tell_doubts(session: Session, loaded: LoadedFile, file: str) -> None:
    """What is legal in the file and most likely not meant: the run goes by it all the same."""
    from kgctl.simulate.lint.rules import lint

    doubts = lint(loaded)
    for doubt in doubts[:_MOST_DOUBTS]:
        session.notice(f"warning: {doubt}")
    if len(doubts) > _MOST_DOUBTS:
        session.notice(f"and {plural(len(doubts) - _MOST_DOUBTS, 'warning')} more: kgctl simulate check {shlex.quote(file)}")


def _baseline(loaded: LoadedFile, how: RunOptions, path: Path, asked: Sequence[str]) -> Baseline:
    from kgctl.simulate.batch.baseline import read_baseline

    found = read_baseline(path, loaded.name, asked)
    found.require_common([variant.name for variant in loaded.variants], how.seeds(loaded))
    return found


def _against(
    session: Session,
    loaded: LoadedFile,
    how: RunOptions,
    outputs: Outputs,
    play: real.AgainstOptions,
    *,
    assumes: bool,
    beside: Baseline | None,
    yes: bool,
) -> Report:
    """Everything that can be wrong is found before anything is played; what is simulated are the clients that play."""
    from kgctl.simulate.batch.against import as_played

    kind = real.client_of(play, loaded)
    real.check_playable(loaded, kind)
    loaded = as_played(loaded, kind.profile)
    real.ask_first(session, play, loaded, kind, yes=yes)
    with real.staged(session, play, kind) as stage:
        outcome = _simulated(session, loaded, how, beside)
        try:
            outcome = real.play_beside(session, loaded, outcome, stage, draws=outputs.need_pictures)
        except real.Stopped as stopped:
            return stopped.report
    return _report(loaded, outputs, outcome, explains=how.ablations, assumes=assumes)


def _words(file: str, settings: Sequence[str], identity: Identity) -> tuple[str, ...]:
    """How the command that runs one of the seeds again begins."""
    words = ("kgctl", "simulate", "run", file, *(word for each in settings for word in ("--set", each)))
    return words if identity is Identity.POD else (*words, "--identity", identity.value)


def _simulated(session: Session, loaded: LoadedFile, how: RunOptions, beside: Baseline | None) -> Outcome:
    from kgctl.simulate.batch.outcome import outcome_of

    if loaded.swept:
        session.notice(
            f"as the file stands; all values of {', '.join(loaded.swept)}: kgctl simulate sweep {shlex.quote(how.words[3])}"
        )
    seeds = how.seeds(loaded)
    values = running.run_scenario(session, loaded, how, seeds)
    outcome = outcome_of(loaded, seeds, values, replay_of=how.words, identity=how.identity)
    if beside is not None and outcome.seeds:
        from kgctl.simulate.batch.baseline import held_beside  # few runs have one

        outcome = held_beside(outcome, beside, how.words)
    return running.look_closer(session, loaded, how, outcome)


def _report(loaded: LoadedFile, outputs: Outputs, outcome: Outcome, *, explains: bool, assumes: bool) -> Report:
    """Write the files, which have the stories in any case, and make the report, which has them where they were asked for."""
    from kgctl.simulate.batch.outcome import result_of
    from kgctl.simulate.report.text import summary_text

    errors = outputs.write(loaded, outcome)
    if outcome.stopped:
        errors.append(KgctlError(outcome.stopped, code="LIMIT"))
    if outcome.troubles:
        errors.append(ExpectationError(_troubles(outcome)))
    if len(outcome.failures) > len(outcome.troubles):
        errors.append(ExpectationError(_verdict(outcome)))
    troubles = {_troubles(outcome): _allowed(outcome)} if outcome.troubles else {}
    is_beside = outcome.measured is not None
    return Report(
        COLUMNS_BESIDE if is_beside else COLUMNS,
        _rows_beside(outcome) if is_beside else _rows(outcome),
        errors,
        name_keys=("variant", "metric"),
        something_done=False,  # where there are errors: of a part of the seeds, or of the files, nothing is settled
        data=result_of(outcome),
        text=summary_text(outcome, outputs.width, outputs.gantt_of(outcome), explains=explains, assumes=assumes),
        brief=[troubles.get(error.message, error.message) for error in errors],
    )


def _rows(outcome: Outcome) -> Sequence[Row]:
    from kgctl.simulate.batch.outcome import figures_of

    return [
        {"variant": name, "metric": metric, **figures_of(spread)}
        for name, variant in outcome.variants.items()
        for metric, spread in variant.metrics.items()
    ]


def _rows_beside(outcome: Outcome) -> Sequence[Row]:
    """The rows of a result: simulated and measured, metric by metric."""
    from kgctl.simulate.batch.outcome import figures_of
    from kgctl.simulate.report.tables import beside

    rows = []
    for each in beside(outcome):
        sides = (("simulated", figures_of(each.simulated)), ("measured", figures_of(each.measured)))
        figures = {f"{what}_{key}": found[key] for what, found in sides for key in _BESIDE}
        rows.append({"variant": each.variant, "metric": each.metric, **figures, "place": str(each.place)})
    return rows


def _troubles(outcome: Outcome) -> str:
    """What went wrong first, and how a file allows it."""
    from kgctl.simulate.report.tables import trouble_lines

    return f"{trouble_lines(outcome)[0]}; {_allowed(outcome)}"


def _allowed(outcome: Outcome) -> str:
    """What stderr adds to the first lines of the text, which say what went wrong."""
    from kgctl.simulate.scenario.vocabulary import TROUBLES

    checks = {each.check for each in outcome.troubles}
    return running.how_to_allow([kind.name for kind in TROUBLES.values() if kind.check in checks])


def _verdict(outcome: Outcome) -> str:
    """Expectations are the lines of ``expect:``; each is a case of each variant that it is asked of, and of the play."""
    asked = [*outcome.asked, *(outcome.measured.expectations if outcome.measured else ())]
    broken = [each for each in outcome.failures if not each.is_unasked]
    lines, failed = ({each.check for each in some} for some in (asked, broken))
    cases = "" if len(asked) == len(lines) else f" ({len(broken)} of {len(asked)} cases: one a variant)"
    return f"{len(failed)} of {len(lines)} expectations did not hold{cases}"
